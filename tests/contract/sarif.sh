#!/usr/bin/env bash
# What `preheat check -o sarif` writes of good, bad and ignored objects and of mistakes in pools is SARIF 2.1.0.
# Usage: tests/contract/sarif.sh PREHEAT. Skips (77) without node or npm; with CI=true that is a failure.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
preheat=$(realpath "$1")
cases=$here/../unit/contract/cases

skip() {
	echo "skipped: $1"
	[ "${CI:-}" != true ] || exit 1
	exit 77
}

modules() {
	local sum folder
	sum=$(cat "$here/package.json" "$here/package-lock.json" | sha256sum)
	folder=${XDG_CACHE_HOME:-$HOME/.cache}/preheat/contract-${sum:0:16}
	mkdir -p "$folder"
	exec 8>"$folder/lock"
	flock 8
	if [ ! -e "$folder/done" ]; then
		cp "$here/package.json" "$here/package-lock.json" "$folder"
		npm ci --prefix "$folder" --no-audit --no-fund --ignore-scripts >"$folder/log" 2>&1 || { cat "$folder/log" >&2; return 1; }
		touch "$folder/done"
	fi
	exec 8>&-
	echo "$folder"
}

for program in node npm; do
	command -v $program >/dev/null || skip "no $program"
done
folder=$(modules) || skip 'npm ci failed'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for file in "$cases"/*.bad.yaml "$cases/clean.yaml" "$cases/ignored.yaml"; do
	"$preheat" check -o sarif "$file" >"$scratch/$(basename "$file").sarif" || [ $? -eq 1 ]
done
# Mistakes, and names that no URI may hold as they are.
printf 'apiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nspec: { "a\\"b": 1 }\n' >"$scratch/50% \"of\" ümlaut #1.yaml"
"$preheat" check -o sarif "$scratch"/50*.yaml >"$scratch/mistakes.sarif" || [ $? -eq 1 ]
"$preheat" check -o sarif "$scratch/nowhere" >"$scratch/nowhere.sarif" 2>/dev/null || [ $? -eq 2 ]
node "$here/validate.mjs" "$folder" "$scratch"/*.sarif
