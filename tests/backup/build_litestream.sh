#!/usr/bin/env bash
# Builds Litestream once from its published Go module, kept outside the checkout, and prints the path of the program.
# Exit 77, with the reason, where there is no Go or no C compiler.
set -euo pipefail
cd "$(dirname "$0")/litestream"
export GOTOOLCHAIN=${GOTOOLCHAIN:-local} CGO_ENABLED=1

for tool in go gcc; do
	command -v $tool >/dev/null || { echo "SKIPPED: no $tool to build Litestream with" >&2; exit 77; }
done
sum=$(cat go.mod go.sum | sha256sum)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/preheat/litestream-${sum:0:16}
if [ ! -x "$folder/litestream" ]; then
	mkdir -p "$folder"
	exec 8>"$folder/lock"
	flock 8
	if [ ! -x "$folder/litestream" ]; then
		echo "building Litestream, once" >&2
		go build -p 2 -mod=readonly -trimpath -ldflags '-s -w' -o "$folder/litestream.part" github.com/benbjohnson/litestream/cmd/litestream ||
			{ echo "Litestream cannot be built" >&2; exit 3; }
		mv "$folder/litestream.part" "$folder/litestream"
	fi
fi
echo "$folder/litestream"
