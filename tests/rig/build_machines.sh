#!/usr/bin/env bash
# Builds the rig's machines once, kept outside the checkout, and prints the path of the program.
# Exit 77, with the reason, where there is no Go that can.
set -euo pipefail
cd "$(dirname "$0")/machines"
export GOTOOLCHAIN=${GOTOOLCHAIN:-local} CGO_ENABLED=0

skip() {
	echo "SKIPPED: the rig's machines cannot be built: $*" >&2
	exit 77
}

command -v go >/dev/null || skip 'there is no Go'
said=$(go list -m 2>&1) || skip "$(go version) does not do: $(tail -n 1 <<<"$said")"
sources=$(find . -name '*.go' ! -name '*_test.go' | sort)
# shellcheck disable=SC2086 # names of ours, without blanks
sum=$(cat go.mod go.sum $sources | sha256sum)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/preheat/rig/machines-${sum:0:16}
if [ ! -x "$folder/machines" ]; then
	mkdir -p "$folder"
	exec 8>"$folder/lock"
	flock 8
	if [ ! -x "$folder/machines" ]; then
		echo "building the rig's machines, once" >&2
		go build -p 2 -buildvcs=false -trimpath -ldflags '-s -w' -o "$folder/machines.part" . || {
			echo "the rig's machines cannot be built" >&2
			exit 3
		}
		mv "$folder/machines.part" "$folder/machines"
	fi
fi
echo "$folder/machines"
