#!/usr/bin/env bash
# Completion as bash, zsh, fish and kubectl do it: keys typed into the shells themselves, on a history of two pools.
# Usage: tests/cli/shells.sh PREHEAT. Skips (exit 77) without one of the shells; with CI=true that is a failure.
set -euo pipefail
preheat=$(realpath "$1")
here=$PWD

missing=()
for shell in python3 bash zsh fish; do
	command -v $shell >/dev/null || missing+=("$shell")
done
kubectl=$(tests/rig/binaries.sh --if-built 2>/dev/null)/kubectl || kubectl=
[ -x "$kubectl" ] || kubectl=$(command -v kubectl) || missing+=(kubectl)
if [ ${#missing[@]} -gt 0 ]; then
	echo "SKIPPED: not installed: ${missing[*]}"
	[ "${CI:-}" != true ] || exit 1
	exit 77
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/here" "$folder/here/results" "$folder/home"
for name in preheat kubectl-preheat kubectl_complete-preheat; do
	ln -s "$preheat" "$folder/bin/$name"
done
ln -s "$kubectl" "$folder/bin/kubectl"
cd "$folder/here"
"$preheat" generate --length 1h --rate 2 --seed 1 --out day.csv
cp "$here"/examples/first-try/pool.yaml pool.yaml
"$preheat" simulate -f pool.yaml --trace day.csv --out out >/dev/null 2>&1
export PATH=$folder/bin:$PATH HOME=$folder/home LC_ALL=C.UTF-8 TERM=xterm
python3 -B "$here/tests/cli/shells.py"
