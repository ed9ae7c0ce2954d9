#!/usr/bin/env bash
# Every source that parses is a fuzzer's, or tests/fuzz/parsers says why not; every fuzzer stands there, and has seeds.
set -euo pipefail
cd "${1:-.}"
wrong=0
say() {
	echo "$1"
	wrong=1
}
# what bytes become values with
calls='\b(decode_plan_new|decode_record|text_decode|yaml_parse|yaml_parse_source|json_open|xml_read|strtoll|strtoull|strtol|strtoul|strtod|sscanf)\('
while read -r source; do
	grep -qE "^([a-z_]+|-)( .*)? $source( |\$)" tests/fuzz/parsers || say "$source: parses, and tests/fuzz/parsers does not name it"
done < <(grep -rlE "$calls" --include=*.c base controller providers signals state | LC_ALL=C sort)
for fuzzer in tests/fuzz/*/*_fuzz.c; do
	name=$(basename "$fuzzer" .c)
	grep -q "^$name " tests/fuzz/parsers || say "$fuzzer: does not stand in tests/fuzz/parsers"
	[ -n "$(ls -A "${fuzzer%.c}" 2>/dev/null)" ] || say "$fuzzer: has no seeds in ${fuzzer%.c}"
	[ -f "tests/fuzz/corpora/$name.tar.gz" ] || say "$fuzzer: what it learnt is not kept: tests/keep_corpus.sh build/fuzz"
done
while read -r name sources; do
	[ "$name" = - ] || ls tests/fuzz/*/"$name.c" >/dev/null 2>&1 || say "tests/fuzz/parsers: there is no $name"
	[ "$name" != - ] || sources=${sources%% *}
	for source in $sources; do
		[ -f "$source" ] || say "tests/fuzz/parsers: there is no $source"
	done
done < <(grep -v '^#' tests/fuzz/parsers)
exit "$wrong"
