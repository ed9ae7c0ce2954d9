#!/usr/bin/env bash
# What deb.sh and image.sh built becomes a release, twice the same; its checksums hold, its provenance names each file, and its
# chart is one for Helm. Skips (77) where they built nothing, or there is no Helm; with CI=true that is a failure.
# Usage: tests/package/release.sh OUT; OUT holds what deb.sh and image.sh built.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: tests/package/release.sh OUT" >&2; exit 2; }
built=$(realpath -m "$1")
cd "$(dirname "$0")/../.."

fail() {
	printf 'FAILED: %s\n' "$*"
	exit 1
}

for file in deb/preheat.spdx.json image/preheat-image.tar; do
	[ -s "$built/$file" ] || { echo "SKIPPED: no $file: first tests/package/deb.sh, tests/package/image.sh"; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/second/preheat-checkout"
touch "$folder/second/preheat-0.0.1.tgz" "$folder/second/preheat-checkout/mine" # of a former one, and somebody's
for out in first second; do
	(umask 077 && packaging/release.sh --gather "$built/deb" "$built/image" "$folder/$out") >"$folder/said"
done
rm "$folder/second/preheat-checkout/mine" || fail "what is no release was deleted"
rmdir "$folder/second/preheat-checkout"
diff -r "$folder/first" "$folder/second" || fail "made again, it is another"
cd "$folder/first"
sha256sum --quiet -c SHA256SUMS
names=$(cut -d ' ' -f 3 SHA256SUMS)
[ "$(printf '%s\n' "$names" SHA256SUMS provenance.intoto.json | LC_ALL=C sort)" = "$(LC_ALL=C ls)" ] || fail "a file has no checksum: $(ls)"
for kind in '_amd64.deb' '.tgz' '.oci.tar' 'image-.*spdx.json' 'deb.spdx.json'; do
	grep -q -- "$kind" <<<"$names" || fail "there is no $kind"
done
python3 -B - "$built/image/digest" <<'END'
import json
import sys

with open("provenance.intoto.json", encoding="utf-8") as file:
    said = json.load(file)
told = {s["name"]: s["digest"]["sha256"] for s in said["subject"]}
with open("SHA256SUMS", encoding="utf-8") as file:
    for line in file:
        digest, name = line.split()
        assert told.pop(name) == digest, name
with open(sys.argv[1], encoding="utf-8") as file:
    assert told == {"preheat": file.read().strip().removeprefix("sha256:")}, told
commit = said["predicate"]["buildDefinition"]["resolvedDependencies"][0]["digest"]["gitCommit"]
assert len(commit) == 40, commit
END
cd - >/dev/null
for version in 3 4; do
	status=0
	helm=$(tests/deploy/helm.sh $version) || status=$?
	[ $status -eq 0 ] || exit $status
	chart=$(echo "$folder"/first/preheat-*.tgz)
	"$helm" lint --strict --kube-version 1.31.0 "$chart" >"$folder/said" || { cat "$folder/said"; fail "Helm $version finds faults"; }
	! grep -i 'icon' "$folder/said" || fail "Helm $version misses an icon"
	diff <("$helm" template p "$chart" --kube-version 1.31.0) <("$helm" template p deploy/charts/preheat --kube-version 1.31.0) ||
		fail "the packed chart is another"
done
echo "a release of $(wc -l <<<"$names") files"
