#!/usr/bin/env bash
# Builds the rig's machines once, and prints the path of the program. Exit code 77: there is no Go.
set -euo pipefail
cd "$(dirname "$0")/machines"

command -v go >/dev/null || {
	echo "rig machines: Go is absent (go not in PATH), so nothing that needs them can run" >&2
	exit 77
}
hash=$({ go version; cat go.mod go.sum ./*.go; } | sha256sum | cut -c1-16)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/preheat/rig/machines-$hash
if [ ! -x "$folder/machines" ]; then
	echo "building the rig's machines into $folder" >&2
	mkdir -p "$folder"
	GOTOOLCHAIN=local go build -p 2 -trimpath -ldflags "-s -w" -o "$folder/machines.$$" .
	mv "$folder/machines.$$" "$folder/machines"
fi
echo "$folder/machines"
