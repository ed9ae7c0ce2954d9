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
cp "$build"/deb/*.deb "$build"/deb/*.ddeb "$build/preheat.spdx.json" "$out"
(cd "$out" && sha256sum ./*.deb ./*.ddeb ./*.json)
