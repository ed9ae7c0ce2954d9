#!/usr/bin/env bash
# A release in one folder: image (OCI archive), chart, Debian packages, their bills of material, checksums and provenance. The same
# sources on the same base give the same bytes.
# Usage: packaging/release.sh [--base IMAGE] OUT
#        packaging/release.sh --gather DEB IMAGE OUT     of what deb.sh and image.sh built
set -euo pipefail
usage() {
	echo "usage: packaging/release.sh [--base IMAGE] OUT" >&2
	exit 2
}
base=() image=
if [ "${1:-}" = --gather ]; then
	[ $# -eq 4 ] || usage
	deb=$(realpath "$2") image=$(realpath "$3")
	shift 3
elif [ "${1:-}" = --base ]; then
	[ $# -eq 3 ] || usage
	base=(--base "$2")
	shift 2
fi
[ $# -eq 1 ] || usage
mkdir -p "$1"
out=$(realpath "$1")
cd "$(dirname "$0")/.."
SOURCE_DATE_EPOCH=$(packaging/date.sh)
export SOURCE_DATE_EPOCH
version=$(sed -n 's/^project(preheat VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
architecture=$(dpkg --print-architecture)

parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
if [ -z "$image" ]; then
	deb=$parts/deb image=$parts/image
	packaging/image.sh ${base[@]+"${base[@]}"} "$image"
	packaging/deb.sh "$deb"
fi

# Nothing of a former release stays beside this one; what else lies there is somebody's.
released() {
	find "$out" -maxdepth 1 -type f \( -name 'preheat_*.deb' -o -name 'preheat-dbgsym_*.deb' -o -name 'preheat_*.spdx.json' \
		-o -name 'preheat-image-*.spdx.json' -o -name 'preheat-image-*.oci.tar' -o -name 'preheat-[0-9]*.tgz' \) "$@"
}
released -delete
rm -f "$out"/SHA256SUMS "$out"/provenance.intoto.json
cp "$deb"/*.deb "$out"
cp "$deb/preheat.spdx.json" "$out/preheat_${version}_$architecture.deb.spdx.json"
cp "$image/preheat-image.tar" "$out/preheat-image-$version-$architecture.oci.tar"
cp "$image/preheat.spdx.json" "$out/preheat-image-$version-$architecture.spdx.json"
# As `helm package` lays it out, without the time of the call.
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode='u=rw,go=r,a+X' --format=ustar \
	-C deploy/charts -cf - preheat | gzip -9n >"$out/preheat-$version.tgz"
(cd "$out" && released -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum >SHA256SUMS)
python3 -B packaging/provenance.py "$out/SHA256SUMS" "$(cat "$image/digest")" ${base[@]+"${base[1]}"} >"$out/provenance.intoto.json"
(cd "$out" && cat SHA256SUMS)
