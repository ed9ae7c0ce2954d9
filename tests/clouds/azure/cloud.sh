# shellcheck shell=bash
# A tenant of the rig's machines for a test, with keys made on the spot. Sourced; start_azure sets AZURE (https://...),
# PLAIN (http://..., faults and IMDS), CA, WIRE, FOLDER (client.pem with its key, issuer.key). It all ends with the test.

skip() {
	echo "SKIPPED: $*"
	[ "${CI:-}" = true ] && exit 1
	exit 77
}

# start_azure CONFIG [OPTION...]: options are those of the machines.
start_azure() {
	local config=$1 program status=0
	shift
	program=$(tests/rig/build_machines.sh) || status=$?
	[ $status -eq 0 ] || exit $status
	FOLDER=$(mktemp -d)
	trap end_azure EXIT
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=preheat -keyout "$FOLDER/client.key" \
		-out "$FOLDER/client.crt" 2>/dev/null
	cat "$FOLDER/client.key" "$FOLDER/client.crt" >"$FOLDER/client.pem"
	openssl genrsa -out "$FOLDER/issuer.key" 2048 2>/dev/null
	openssl rsa -in "$FOLDER/issuer.key" -pubout -out "$FOLDER/issuer.pub" 2>/dev/null
	cp "$config" "$FOLDER/config.json"
	: >"$FOLDER/said"
	CA=$FOLDER/ca.pem WIRE=$FOLDER/wire
	"$program" --config "$FOLDER/config.json" --listen 127.0.0.1:0 --azure 127.0.0.1:0 --ca "$CA" --wire "$WIRE" "$@" \
		>"$FOLDER/said" 2>"$FOLDER/log" &
	machines=$!
	while ! grep -q '^listening' "$FOLDER/said"; do
		kill -0 $machines 2>/dev/null || { cat "$FOLDER/log"; exit 3; }
		read -rt 0.1 <> <(:) || :
	done
	AZURE=$(sed -n 's/^azure on //p' "$FOLDER/said")
	AZURE=${AZURE/127.0.0.1/localhost}
	PLAIN=$(sed -n 's/^listening on //p' "$FOLDER/said")
	export AZURE PLAIN CA WIRE FOLDER
}

end_azure() {
	local status=$?
	[ -z "${machines:-}" ] || kill "$machines" 2>/dev/null || :
	[ $status -eq 0 ] || [ ! -s "$FOLDER/log" ] || sed 's/^/machines: /' "$FOLDER/log"
	if [ -n "${KEEP:-}" ]; then
		cp -r "$FOLDER" "$KEEP"
	fi
	rm -rf "$FOLDER"
}

# sdk_modules: the folder in which the SDK is installed, outside the checkout, by the lock file.
sdk_modules() {
	local here=tests/clouds/azure sum folder
	command -v node >/dev/null || skip "no node"
	command -v npm >/dev/null || skip "no npm"
	sum=$(cat $here/package.json $here/package-lock.json | sha256sum)
	folder=${XDG_CACHE_HOME:-$HOME/.cache}/preheat/clouds/azure-${sum:0:16}
	mkdir -p "$folder"
	exec 8>"$folder/lock"
	flock 8
	if [ ! -e "$folder/done" ]; then
		cp $here/package.json $here/package-lock.json "$folder"
		npm ci --prefix "$folder" --no-audit --no-fund --ignore-scripts >"$folder/log" 2>&1 ||
			{ cat "$folder/log" >&2; skip "npm ci failed"; }
		touch "$folder/done"
	fi
	exec 8>&-
	echo "$folder"
}

# validate WIRE [--ours]: holds the exchanges against the vendor's description, where the contracts are.
validate() {
	local description=${PREHEAT_SHARED:-../shared}/contracts/azure/aks-agentpools.openapi.json
	if [ ! -e "$description" ]; then
		skip "the contracts are absent: nothing is held against the vendor's OpenAPI"
	fi
	node tests/clouds/azure/validate.mjs "$1" "$description" "${@:2}"
}
