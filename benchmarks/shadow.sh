#!/usr/bin/env bash
# The shadow of a rule against a real run of that rule, per public case: mean GPUs and late share of the whole run.
# Usage: benchmarks/shadow.sh [PATTERN]
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=benchmarks/pool.sh
. benchmarks/pool.sh
traces=${PREHEAT_SHARED:-../shared}/traces
preheat=build/release/preheat
results=build/bench/shadow
rules=(28 40 44 54 59 76)

[ -f "$traces/cases.json" ] || { echo "benchmarks: no $traces/cases.json; name its folder by PREHEAT_SHARED" >&2; exit 3; }
mkdir -p "$results"
pool_manifest 700 380 650 0 >"$results/pool.yaml"

# row CASE RULE: one run of one rule
row() {
	local case=$1 rule=$2 file k length jitter=()
	read -r file k length < <(jq -r --arg c "$case" '.cases[] | select(.case == $c)
		| [.files.bins // .files.requests, .k, .length_s] | join(" ")' "$traces/cases.json")
	[ "$k" -le 6 ] || jitter=(--jitter)
	"$preheat" simulate --draws 1 -f "$results/pool.yaml" --trace "$traces/$file" --scale "$k" ${jitter[@]+"${jitter[@]}"} \
		--policy "preheat:rule=$rule" --out "$results/run" --force >/dev/null 2>&1
	"$preheat" explain --db "$results/run/history.db" --tick $((length / 15 - 1)) --output json |
		jq -r --arg case "$case" --slurpfile real "$results/run/summary.json" '
			def two: . * 100 | round / 100 | tostring;
			def three: . * 1000 | round / 1000 | tostring;
			.decision as $d | $real[0].pools.chat as $r
			| ($d.rule_gpu_milli / 1000) as $told | ($r.gpu_hours / ($real[0].simulated_s / 3600)) as $came
			| [ $case, "\($d.margin_permille / 10) % / \($d.hold_ms / 1000) s / \($d.chase_permille / 1000)",
				($told | two), ($came | two), ($told / $came | three),
				($d.rule_late_ppm / 10000 | two) + " %", ($r.late_share * 100 | two) + " %",
				(if $r.late_share > 0 then $d.rule_late_ppm / 1000000 / $r.late_share | two else "-" end) ]
			| "| " + join(" | ") + " |"'
}

printf '\n| case | rule: margin / hold / chase | shadow, mean GPUs | real | shadow / real | shadow, late | real | shadow / real |\n'
printf '|---|---|---|---|---|---|---|---|\n'
jq -r '.cases[] | select(.length_s >= 86400) | .case' "$traces/cases.json" | while read -r case; do
	[[ $case =~ ${1:-.} ]] || continue
	for rule in "${rules[@]}"; do
		row "$case" "$rule"
	done
done
