#!/usr/bin/env bash
# Keeps what the fuzzers of a build learnt: of the seeds and BUILD/corpus the fewest inputs that reach all that they do,
# each of 2 KiB at most, in tests/fuzz/corpora, from where tests/run_fuzz.sh and ./dev coverage take them.
# Usage: tests/keep_corpus.sh BUILD
set -euo pipefail
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p tests/fuzz/corpora
for fuzzer in "$build"/*_fuzz; do
	name=$(basename "$fuzzer") inputs=()
	for folder in tests/fuzz/*/"$name" "$build/corpus/$name"; do
		[ ! -d "$folder" ] || inputs+=("$folder")
	done
	mkdir "$work/$name"
	"$fuzzer" -merge=1 -set_cover_merge=1 -max_len=2048 "$work/$name" "${inputs[@]}" >"$work/log" 2>&1
	find "$work/$name" -type f -size +2048c -delete
	tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf - "$name" | gzip -n9 >"tests/fuzz/corpora/$name.tar.gz"
	printf '%-28s %5d inputs\n' "$name" "$(find "$work/$name" -type f | wc -l)"
done
