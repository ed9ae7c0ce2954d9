#!/usr/bin/env bash
# The lines of each parser that its fuzzer covers, with its seeds, what is kept (tests/fuzz/corpora) and what it found in
# build/fuzz/corpus since.
# Usage: tests/fuzz_coverage.sh BUILD [FUZZER...]
set -euo pipefail
build=$1
shift
cmake -G Ninja -B "$build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang -DPREHEAT_FUZZ=ON \
	-DCMAKE_C_FLAGS="-O1 -fprofile-instr-generate -fcoverage-mapping -fsanitize=fuzzer-no-link" >"$build.log"
[ $# -gt 0 ] || mapfile -t -O 0 chosen < <(awk '/^[a-z]/ { print $1 }' tests/fuzz/parsers)
[ $# -eq 0 ] || chosen=("$@")
printf '%-26s %-48s %8s %8s %7s\n' fuzzer source lines covered share
for fuzzer in "${chosen[@]}"; do
	ninja -C "$build" "$fuzzer" >>"$build.log" 2>&1
	read -r -a row < <(grep "^$fuzzer " tests/fuzz/parsers)
	inputs=()
	mkdir -p "$build/corpus"
	[ ! -f "tests/fuzz/corpora/$fuzzer.tar.gz" ] || tar -C "$build/corpus" -xzf "tests/fuzz/corpora/$fuzzer.tar.gz"
	for folder in tests/fuzz/*/"$fuzzer" "$build/corpus/$fuzzer" build/fuzz/corpus/"$fuzzer"; do
		[ ! -d "$folder" ] || inputs+=("$folder")
	done
	[ ${#inputs[@]} -gt 0 ] || inputs=(/dev/null)
	LLVM_PROFILE_FILE=$build/$fuzzer.profraw "$build/$fuzzer" -runs=0 "${inputs[@]}" >>"$build.log" 2>&1
	llvm-profdata-14 merge -o "$build/$fuzzer.profdata" "$build/$fuzzer.profraw"
	for source in "${row[@]:1}"; do
		[ -f "$source" ] || continue
		llvm-cov-14 export -summary-only -instr-profile="$build/$fuzzer.profdata" "$build/$fuzzer" "$PWD/$source" |
			jq -r --arg fuzzer "$fuzzer" --arg source "$source" '.data[0].totals.lines | [$fuzzer, $source, .count,
				.covered, (.percent | floor)] | @tsv' |
			while IFS=$'\t' read -r name file lines covered share; do
				printf '%-26s %-48s %8s %8s %6s%%\n' "$name" "$file" "$lines" "$covered" "$share"
			done
	done
done
