#!/usr/bin/env bash
# gcc and clang decide alike: the example simulated by both gives the same bytes, and so does a second run.
# Usage: tests/check_compilers.sh PREHEAT OTHER_PREHEAT
set -euo pipefail
example=examples/first-try
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# run PREHEAT NAME
run() {
	"$1" simulate -f $example/pool.yaml --trace $example/requests.csv.gz --world $example/world.yaml \
		--out "$out/$2" >/dev/null 2>"$out/$2.errors" || { cat "$out/$2.errors"; exit 1; }
	sqlite3 "$out/$2/history.db" .dump >"$out/$2.sql"
}

same() {
	if cmp -s "$out/$1" "$out/$2"; then
		echo "same bytes: $(basename "$1"), $(stat -c %s "$out/$1") bytes, $3"
	else
		echo "differs: $1, $3"
		diff <(head -c 100000000 "$out/$1") <(head -c 100000000 "$out/$2") | head -5 | cut -c 1-200
		exit 1
	fi
}

run "$1" first
run "$1" again
run "$2" other
for pair in 'again twice the same seed' 'other two compilers'; do
	name=${pair%% *}
	for file in timeline.csv summary.json; do
		same "first/$file" "$name/$file" "${pair#* }"
	done
	same first.sql "$name.sql" "${pair#* }"
done
