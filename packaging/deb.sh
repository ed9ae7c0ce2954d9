#!/usr/bin/env bash
# Builds the Debian package, its debug symbols and its SBOM, reproducibly: the same sources and the same packages of Debian
# give the same bytes. Usage: packaging/deb.sh OUT
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: packaging/deb.sh OUT" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
SOURCE_DATE_EPOCH=$(packaging/date.sh)
# Objects of ccache may name the folder of another build.
export SOURCE_DATE_EPOCH CMAKE_C_COMPILER_LAUNCHER=
umask 022
build=$out/build
cmake --preset release -B "$build" -DCMAKE_INSTALL_PREFIX=/usr
cmake --build "$build" --target preheat man
python3 -B packaging/sbom.py "$build/preheat" >"$build/preheat.spdx.json"
(cd "$build" && cpack)

# The debug symbols as Debian packs them: CPack's list of checksums names the folder of the build.
symbols=$build/dbgsym
rm -rf "$symbols"
dpkg-deb -R "$build"/deb/preheat-dbgsym_*.ddeb "$symbols"
(cd "$symbols" && find usr -type f -exec md5sum {} + | LC_ALL=C sort -k 2 >DEBIAN/md5sums)
mkdir -p "$symbols/usr/share/doc"
ln -s preheat "$symbols/usr/share/doc/preheat-dbgsym"
sed -i '/^Package-Type: ddeb$/d' "$symbols/DEBIAN/control"
find "$symbols" -type d -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
rm -f "$out"/*.deb
dpkg-deb --root-owner-group -b "$symbols" "$out"

cp "$build"/deb/*.deb "$build/preheat.spdx.json" "$out"
(cd "$out" && sha256sum ./*.deb ./*.json)
