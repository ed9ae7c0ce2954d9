#!/usr/bin/env bash
# Prints the path of Helm of a major version, 3 or 4 (4 when left out): the one in PATH if it is of that, else built once from
# its Go module, a few minutes on two cores, and kept outside the checkout. Exit 77, with the reason, where there is no Go that can.
# Usage: tests/deploy/helm.sh [VERSION]
set -euo pipefail
version=${1:-4}
cd "$(dirname "$0")/helm$version"
export GOTOOLCHAIN=${GOTOOLCHAIN:-local} CGO_ENABLED=0

skip() {
	echo "SKIPPED: Helm cannot be had: $*" >&2
	exit 77
}

if found=$(command -v helm) && [[ $(helm version --short 2>/dev/null) == v"$version".* ]]; then
	echo "$found"
	exit
fi
command -v go >/dev/null || skip 'there is no Go'
said=$(go list -m 2>&1) || skip "$(go version) does not do: $(tail -n 1 <<<"$said")"
sum=$(cat go.mod go.sum | sha256sum)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/preheat/helm-${sum:0:16}
if [ ! -x "$folder/helm" ]; then
	mkdir -p "$folder"
	exec 8>"$folder/lock"
	flock 8
	if [ ! -x "$folder/helm" ]; then
		echo "building Helm $version from its Go module, once; a few minutes" >&2
		go build -p 2 -buildvcs=false -trimpath -ldflags '-s -w' -o "$folder/helm.part" "helm.sh/helm/v$version/cmd/helm" || {
			echo 'Helm cannot be built' >&2
			exit 3
		}
		mv "$folder/helm.part" "$folder/helm"
	fi
fi
echo "$folder/helm"
