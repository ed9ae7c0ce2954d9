# shellcheck shell=bash
# An account of the rig's machines for a test. Sourced; start_aws sets AWS (https://..., all services), PLAIN (http://...,
# faults, IMDS and Pod Identity), CA, WIRE and FOLDER, and the environment by which SDKs find them. It all ends with the test.

skip() {
	echo "SKIPPED: $*" >&2
	[ "${CI:-}" = true ] && exit 1
	exit 77
}

# start_aws CONFIG [OPTION...]: options are those of the machines. Once more: another account, at other addresses.
start_aws() {
	local config=$1 program status=0
	shift
	program=$(tests/rig/build_machines.sh) || status=$?
	[ $status -eq 0 ] || exit $status
	if [ -n "${machines:-}" ]; then
		kill "$machines"
		wait "$machines" || :
	else
		FOLDER=$(mktemp -d)
		trap end_aws EXIT
	fi
	: >"$FOLDER/said"
	CA=$FOLDER/ca.pem WIRE=$FOLDER/wire
	"$program" --config "$config" --listen 127.0.0.1:0 --aws 127.0.0.1:0 --ca "$CA" --wire "$WIRE" "$@" \
		>"$FOLDER/said" 2>"$FOLDER/log" &
	machines=$!
	while ! grep -q '^listening' "$FOLDER/said"; do
		kill -0 $machines 2>/dev/null || { cat "$FOLDER/log"; exit 3; }
		read -rt 0.1 <> <(:) || :
	done
	AWS=$(sed -n 's/^aws on //p' "$FOLDER/said")
	PLAIN=$(sed -n 's/^listening on //p' "$FOLDER/said")
	# Nothing of this machine's own may be found by an SDK.
	unset AWS_PROFILE AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN
	export AWS PLAIN CA WIRE FOLDER AWS_ENDPOINT_URL=$AWS AWS_REGION=eu-west-1 AWS_CA_BUNDLE=$CA NODE_EXTRA_CA_CERTS=$CA \
		AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null AWS_EC2_METADATA_DISABLED=true NODE_NO_WARNINGS=1
}

end_aws() {
	local status=$?
	[ -z "${machines:-}" ] || kill "$machines" 2>/dev/null || :
	[ -z "${moto:-}" ] || kill "$moto" 2>/dev/null || :
	[ $status -eq 0 ] || [ $status -eq 77 ] || [ ! -s "$FOLDER/log" ] || sed 's/^/machines: /' "$FOLDER/log"
	if [ -n "${KEEP:-}" ]; then
		cp -r "$FOLDER" "$KEEP"
	fi
	rm -rf "$FOLDER"
}

# once NAME FILE... -- COMMAND...: runs the command in a folder of the cache that belongs to the files' content, once, and
# prints the folder. The files are copied into it first.
once() {
	local name=$1 files=() sum folder
	shift
	while [ "$1" != -- ]; do
		files+=("$1")
		shift
	done
	shift
	sum=$(cat "${files[@]}" | sha256sum)
	folder=${XDG_CACHE_HOME:-$HOME/.cache}/preheat/clouds/$name-${sum:0:16}
	mkdir -p "$folder"
	exec 8>"$folder/lock"
	flock 8
	if [ ! -e "$folder/done" ]; then
		cp "${files[@]}" "$folder"
		(cd "$folder" && "$@") >"$folder/log" 2>&1 || {
			tail -n 5 "$folder/log" >&2
			skip "cannot be installed: $*"
		}
		touch "$folder/done"
	fi
	exec 8>&-
	echo "$folder"
}

# sdk_modules: the folder in which the SDK for JavaScript is installed by the lock file.
sdk_modules() {
	command -v node >/dev/null || skip "no node"
	command -v npm >/dev/null || skip "no npm"
	once aws tests/clouds/aws/package.json tests/clouds/aws/package-lock.json -- \
		npm ci --no-audit --no-fund --ignore-scripts
}

install_python() {
	python3 -m venv venv && venv/bin/pip install --disable-pip-version-check --no-deps -r requirements.txt
}

# python_packages: the folder with a venv of moto and botocore.
python_packages() {
	command -v python3 >/dev/null || skip "no python3"
	python3 -c 'import venv, ensurepip' 2>/dev/null || skip "python3 has no venv (apt-get install python3-venv)"
	once aws-python tests/clouds/aws/requirements.txt -- install_python
}
