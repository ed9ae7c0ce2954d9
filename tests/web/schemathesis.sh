#!/usr/bin/env bash
# The JSON API as its OpenAPI document has it, asked by schemathesis: whatever is asked, answers have the documented
# status, type and form, wrong requests are refused, and nothing is an error of the server.
# Usage: tests/web/schemathesis.sh PREHEAT. Skips (exit 77) without python3 with venv; with CI=true that is a failure.
set -euo pipefail
preheat=$(realpath "$1")
wanted=tests/web/requirements.txt
cache=${XDG_CACHE_HOME:-$HOME/.cache}/preheat/schemathesis-$(sha256sum "$wanted" | cut -c 1-16)

skip() {
	echo "SKIPPED: $1"
	[ "${CI:-}" != true ] || exit 1
	exit 77
}

install_venv() {
	local made
	made=$(mktemp -d "$cache.XXXXXX")
	python3 -m venv "$made/venv"
	"$made/venv/bin/pip" install -q --disable-pip-version-check -r "$wanted" >"$made/log" 2>&1 || {
		tail -5 "$made/log"
		rm -rf "$made"
		return 1
	}
	mv -T "$made" "$cache" 2>/dev/null || rm -rf "$made" # another run was first
}

command -v python3 >/dev/null || skip "no python3"
python3 -c 'import venv, ensurepip' 2>/dev/null || skip "python3 has no venv (apt-get install python3-venv)"
mkdir -p "${cache%/*}"
[ -d "$cache" ] || install_venv || skip "schemathesis cannot be installed from PyPI"

folder=$(mktemp -d) view=
# shellcheck disable=SC2317  # called by the trap
clean_up() {
	[ -z "$view" ] || { kill "$view" && wait "$view"; } 2>/dev/null || :
	rm -rf "$folder"
}
trap clean_up EXIT

for pool in chat:25 embed:8 nightly:5; do
	"$preheat" generate --shape diurnal:1.8,bursts:3:3h:8m --length 4h --rate "${pool#*:}" --out "$folder/${pool%:*}.csv" 2>/dev/null
done
"$preheat" simulate --draws 1 -f examples/three-pools/pools.yaml --world examples/three-pools/world.yaml --trace "chat=$folder/chat.csv" \
	--trace "embed=$folder/embed.csv" --trace "nightly=$folder/nightly.csv" --out "$folder/out" >/dev/null 2>&1
"$preheat" view "$folder/out" --listen 127.0.0.1:0 >"$folder/said" &
view=$!
until [ -s "$folder/said" ]; do
	kill -0 $view || exit 3
	sleep 0.1
done
address=$(head -1 "$folder/said" | grep -oE 'http://[^ ]+')

# Valid by the document and refused all the same: from after to, a cursor that nobody gave out, the 30th of February.
# The stream of events never ends; tests/unit/web has it.
cd "$folder"
"$cache/venv/bin/python" -m schemathesis.cli run "${address}api/v1/openapi.json" --checks all --exclude-checks positive_data_acceptance \
	--exclude-path /api/v1/events --phases coverage,fuzzing --max-examples 20 --generation-deterministic \
	--request-timeout 60 --no-color >"$folder/report" 2>&1 || {
	grep -vE '^$' "$folder/report" | tail -80
	exit 1
}
tail -3 "$folder/report"
kill -0 $view
