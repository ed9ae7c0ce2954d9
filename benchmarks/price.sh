#!/usr/bin/env bash
# The price of every objective as the first half of a case tells it, against what the second half then cost when each
# objective was set. The halves differ in demand, so that the last ratio is also given for the demand that came. Usage: benchmarks/price.sh [PATTERN]
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=benchmarks/pool.sh
. benchmarks/pool.sh
traces=${PREHEAT_SHARED:-../shared}/traces
preheat=build/release/preheat
results=build/bench/price
attainments=(95 98 99 99.5 99.8 99.9)

[ -f "$traces/cases.json" ] || { echo "benchmarks: no $traces/cases.json; name its folder by PREHEAT_SHARED" >&2; exit 3; }
mkdir -p "$results"

# simulate_at CASE FILE K HALF ATTAINMENT JITTER...: scored on the second half
simulate_at() {
	pool_manifest 700 380 650 0 | sed "s/attainment: 99%/attainment: $5%/" >"$results/pool.yaml"
	"$preheat" simulate --draws 1 -f "$results/pool.yaml" --trace "$traces/$2" --scale "$3" "${@:6}" --warm-up "${4}s" \
		--out "$results/$1-$5" --force >/dev/null 2>&1
}

# busier CASE HALF: mean running sequences of the second half over those of the first
busier() {
	awk -F, -v half="$2" 'NR > 1 { if ($1 <= half) { a += $7; n++ } else { b += $7; m++ } }
		END { printf "%.4f", (b / m) / (a / n) }' "$results/$1-99/timeline.csv"
}

# tell CASE HALF ATTAINMENT BUSIER
tell() {
	jq -rn --arg case "$1" --arg attainment "$3" --argjson half "$2" --argjson busier "$4" --slurpfile told "$results/$1.json" \
		--slurpfile came "$results/$1-$3/summary.json" '
		def whole: round | tostring;
		def three: . * 1000 | round / 1000 | tostring;
		((100 - ($attainment | tonumber)) * 10000 | round) as $ppm
		| ($told[0].prices[] | select(.late_ppm == $ppm)) as $p | $came[0] as $r
		| ($r.pools.chat.scored.dollars / (($r.simulated_s - $half) / 3600)) as $cost
		| [ $case, $attainment + " %", (if $p.rule then ($p.dollars_per_hour / 1000000 | whole) else "none kept it" end),
			($cost | whole), (if $p.rule then ($cost / $p.dollars_per_hour * 1000000 | three) else "-" end),
			($busier | three), (if $p.rule then ($cost / $p.dollars_per_hour * 1000000 / $busier | three) else "-" end),
			($r.pools.chat.scored.late_share * 100 | three) + " %" ]
		| "| " + join(" | ") + " |"'
}

printf '\n| case | objective | told by the first half, $/h | the second half cost, $/h | cost / told | demand, second / first half | cost / told, for that demand | late in the second half |\n'
printf '|---|---|---|---|---|---|---|---|\n'
jq -r '.cases[] | select(.length_s >= 172800) | [.case, (.files.bins // .files.requests), .k, .length_s] | join(" ")' \
	"$traces/cases.json" | while read -r case file k length; do
	[[ $case =~ ${1:-.} ]] || continue
	half=$((length / 2 - length / 2 % 15)) jitter=()
	[ "$k" -le 6 ] || jitter=(--jitter)
	for attainment in "${attainments[@]}"; do
		simulate_at "$case" "$file" "$k" "$half" "$attainment" ${jitter[@]+"${jitter[@]}"}
	done
	"$preheat" explain --db "$results/$case-99/history.db" --tick $((half / 15)) --output json >"$results/$case.json"
	ratio=$(busier "$case" "$half")
	for attainment in "${attainments[@]}"; do
		tell "$case" "$half" "$attainment" "$ratio"
	done
done
