#!/usr/bin/env bash
# Builds the image with buildah, without a daemon, reproducibly: the same sources on the same base give the same digest.
# OUT/preheat-image.tar (an OCI archive), OUT/digest and OUT/preheat.spdx.json, its bill of material, are what comes out.
# Usage: packaging/image.sh [--base IMAGE] OUT
set -euo pipefail
usage() {
	echo "usage: packaging/image.sh [--base IMAGE] OUT" >&2
	exit 2
}
base=()
if [ "${1:-}" = --base ]; then
	[ $# -ge 2 ] || usage
	base=(--build-arg "BASE=$2" --pull-never)
	[[ $2 != *@sha256:* ]] || base=(--build-arg "BASE=$2") # whoever holds it, it is the same
	shift 2
fi
[ $# -eq 1 ] || usage
command -v buildah >/dev/null || { echo "packaging/image.sh: needs buildah (apt-get install buildah)" >&2; exit 3; }
# What a tag of the base names changes; a release is of one digest.
if git -C "$(dirname "$0")" describe --exact-match --tags >/dev/null 2>&1 && [[ ${base[*]-} != *@sha256:* ]]; then
	echo "packaging/image.sh: a release needs its base by digest: --base debian:12-slim@sha256:..." >&2
	exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
epoch=$(packaging/date.sh)
cmake -D SOURCE="$PWD" -D OUT="$out/commit.h" -P packaging/commit.cmake
commit=$(sed -n 's/^#define PREHEAT_COMMIT "\(.*\)"/\1/p; s/^#define PREHEAT_MODIFIED 1/-modified/p' "$out/commit.h" | tr -d '\n')
rm "$out/commit.h" 
rm -f "$out/preheat-image.tar"
image=preheat:$(sed -n 's/^project(preheat VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
buildah build --timestamp "$epoch" ${base[@]+"${base[@]}"} --layers=false --build-arg "PREHEAT_COMMIT=$commit" \
	--build-arg "SOURCE_DATE_EPOCH=$epoch" --tag "$image" .
buildah push --digestfile "$out/digest" "$image" "oci-archive:$out/preheat-image.tar:$image"
# One of the blobs is the layer.
tar -tf "$out/preheat-image.tar" | grep 'blobs/sha256/.' | while read -r blob; do
	tar -xOf "$out/preheat-image.tar" "$blob" | tar -xzO usr/share/doc/preheat/preheat.spdx.json 2>/dev/null || :
done >"$out/preheat.spdx.json"
[ -s "$out/preheat.spdx.json" ] || { echo "packaging/image.sh: the image holds no bill of material" >&2; exit 3; }
printf '%s  %s\n' "$(cat "$out/digest")" "$image"
