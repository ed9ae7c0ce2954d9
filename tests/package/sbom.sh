#!/usr/bin/env bash
# The bills of material of the Debian package and of the image, by the SPDX project's own validator from PyPI, and against what
# both really hold. Skips (77) without python3 with venv; with CI=true that is a failure.
# Usage: tests/package/sbom.sh OUT; OUT holds what deb.sh and image.sh built.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: tests/package/sbom.sh OUT" >&2; exit 2; }
out=$(realpath -m "$1")
cd "$(dirname "$0")/../.."

skip() {
	printf 'SKIPPED: %s\n' "$*"
	exit 77
}

python3 -c 'import venv, ensurepip' 2>/dev/null || skip "python3 has no venv (apt-get install python3-venv)"
for file in deb/preheat.spdx.json image/preheat.spdx.json; do
	[ -s "$out/$file" ] || skip "no $file: first tests/package/deb.sh, tests/package/image.sh"
done

list=tests/package/requirements.txt
folder=${XDG_CACHE_HOME:-$HOME/.cache}/preheat/spdx-$(sha256sum <$list | cut -c1-16)
mkdir -p "$folder"
(
	flock 9
	[ ! -e "$folder/done" ] || exit 0
	python3 -m venv "$folder/venv"
	"$folder/venv/bin/pip" install --disable-pip-version-check --no-deps -r $list
	touch "$folder/done"
) 9>"$folder/lock" >"$folder/log" 2>&1 || { tail -n 5 "$folder/log"; skip "spdx-tools cannot be installed from PyPI"; }
exec "$folder/venv/bin/python" -B tests/package/sbom_test.py "$out"
