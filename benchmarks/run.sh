#!/usr/bin/env bash
# Measures; passes and fails nothing. Usage: benchmarks/run.sh [speed|signals|shadow|price|page|page_view|cases [PATTERN]|share [PATTERN]|live]; without a word: all.
# Results lie in build/bench, tables are printed as Markdown for docs/benchmarks.md.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build/bench

machine() {
	printf 'Machine: %s, %s cores; %s; commit %s.\n' \
		"$(awk -F': ' '/model name/ { print $2; exit }' /proc/cpuinfo)" "$(nproc)" \
		"$(build/release/preheat version | awk '/compiler/ { $1 = ""; print substr($0, 2) }')" \
		"$(git rev-parse --short HEAD)"
}

case ${1:-all} in
speed | signals | shadow | price | page | page_view | cases | share | live)
	machine
	exec "benchmarks/$1.sh" "${@:2}"
	;;
all)
	machine
	for part in speed signals shadow price page cases share; do
		"benchmarks/$part.sh"
	done
	;;
*)
	echo "benchmarks/run.sh: no measurement '$1': speed, signals, shadow, price, page, page_view, cases, share or live" >&2
	exit 2
	;;
esac
