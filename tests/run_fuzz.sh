#!/usr/bin/env bash
# Runs every fuzzer of a build for so many seconds each, as many at once as there are cores.
# Usage: tests/run_fuzz.sh BUILD SECONDS [SEED]. What was learnt before is in tests/fuzz/corpora (tests/keep_corpus.sh) and
# goes on in BUILD/corpus; a finding ends with exit 1. With a seed each run in a new build tries the same inputs in the
# same order, as many as it has time for.
set -euo pipefail
build=$1 seconds=$2 seed=${3:-0} # to libFuzzer 0 means another one each time
mapfile -t fuzzers < <(find "$build" -maxdepth 1 -name '*_fuzz' -type f | LC_ALL=C sort)
[ ${#fuzzers[@]} -gt 0 ] || { echo "no fuzzers in $build"; exit 1; }

# words FUZZER: a dictionary, of the texts in the sources of its parsers and what is written by hand
words() {
	local row
	read -r -a row < <(grep "^$1 " tests/fuzz/parsers)
	cat tests/fuzz/*/"$1".dict 2>/dev/null || true
	grep -hv '^#include' "${row[@]:1}" | grep -oE '"[][A-Za-z0-9_.:/{} @=-]{2,60}(>[][A-Za-z0-9_.:/@-]+)*"' | tr -d '"' | tr '>' '\n' |
		awk 'length >= 2 && !seen[$0]++ { print "\"" $0 "\"" }'
}

# one FUZZER SECONDS SEED
one() {
	local name corpus seeds=() words=()
	name=$(basename "$1")
	corpus=$(dirname "$1")/corpus/$name
	mkdir -p "$corpus"
	[ -n "$(ls -A "$corpus")" ] || [ ! -f "tests/fuzz/corpora/$name.tar.gz" ] ||
		tar -C "$(dirname "$corpus")" -xzf "tests/fuzz/corpora/$name.tar.gz"
	for folder in tests/fuzz/*/"$name"; do
		[ ! -d "$folder" ] || seeds+=("$folder")
	done
	words "$name" >"$corpus.dict"
	[ ! -s "$corpus.dict" ] || words=(-dict="$corpus.dict")
	if "$1" -seed="$3" -max_total_time="$2" -timeout=60 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
		-artifact_prefix="$corpus-finding-" ${words[@]+"${words[@]}"} "$corpus" "${seeds[@]}" >"$corpus.log" 2>&1; then
		printf '%-28s %9s runs, no finding\n' "$name" "$(awk '/number_of_executed_units/ { print $2 }' "$corpus.log")"
	else
		printf '%-28s FINDING, see %s\n' "$name" "$corpus.log"
		tail -40 "$corpus.log"
		return 1
	fi
}
export -f one words
# shellcheck disable=SC2016  # the parameters belong to the inner shell
printf '%s\0' "${fuzzers[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'one "$2" "$0" "$1"' "$seconds" "$seed"
