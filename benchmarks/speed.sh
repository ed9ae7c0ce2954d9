#!/usr/bin/env bash
# The first two rows of the table of numbers to hold, and the bytes of a history.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=benchmarks/pool.sh
. benchmarks/pool.sh
preheat=build/release/preheat out=build/bench/speed
mkdir -p "$out"

# best COMMAND...: the least of five, in seconds of wall clock
best() {
	local TIMEFORMAT=%R
	for _ in 1 2 3 4 5; do
		{ time "$@" >/dev/null 2>&1; } 2>&1
	done | sort -n | head -1
}

$preheat generate --shape diurnal,bursts --length 14d --rate 1.1574 --seed 1 --out $out/fortnight.csv 2>/dev/null
pool_manifest 40 380 650 0 >$out/pool.yaml
simulate=("$preheat" simulate -f "$out/pool.yaml" --trace "$out/fortnight.csv" --warm-up 1d --draws 1 --out "$out/run" --force)
seconds=$(best "${simulate[@]}")
ticks=$(($(wc -l <$out/run/timeline.csv) - 1))
decide=$(build/release/decide_speed)
bytes=$(stat -c %s $out/run/history.db)

printf '\n| what | measured | to hold |\n|---|---|---|\n'
printf '| simulate 14 days once, %d requests, %d ticks, all results written | %s s | 2 s |\n' \
	$(($(wc -l <$out/fortnight.csv) - 1)) $ticks "$seconds"
printf '| decide | %s | 200 us |\n' "$decide"
printf '| history.db | %d bytes, %d a pool and tick | 300 |\n' "$bytes" $((bytes / ticks))
