#!/usr/bin/env bash
# Does the model inside the policy tell the truth? On the cases with bins, cold starts only:
# the shadow of a rule against a real run of that rule, and the price curve of the first half against what the
# second half then cost. Usage: benchmarks/agree.sh [PATTERN]
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=benchmarks/pool.sh
. benchmarks/pool.sh
traces=${PREHEAT_SHARED:-../shared}/traces
preheat=build/release/preheat
results=build/bench/agree
price=1.21
pattern=${1:-.}

[ -f "$traces/cases.json" ] || { echo "benchmarks: no $traces/cases.json; name its folder by PREHEAT_SHARED" >&2; exit 3; }
command -v jq >/dev/null || { echo "benchmarks: jq is missing: apt-get install jq" >&2; exit 3; }

# simulate OUT ATTAINMENT WARM_UP ARGUMENTS...: the case in $file, $k and $peak
simulate() {
	local out=$1 attainment=$2 warm_up=$3
	shift 3
	mkdir -p "$out"
	pool_manifest "$peak" 380 650 0 | sed "s/attainment: 99%/attainment: $attainment%/" >"$out/pool.yaml"
	"$preheat" simulate --pool "$out/pool.yaml" --trace "$file" --scale "$k" ${jitter[@]+"${jitter[@]}"} --warm-up "${warm_up}s" \
		--out "$out/run" --force "$@" >"$out/printed"
}

# decided OUT TICK: the decision as JSON
decided() {
	"$preheat" explain --db "$1/run/history.db" --tick "$2" --output json
}

shadow_rows() {
	local out=$results/$case/rule last rules rule
	simulate "$results/$case/own" 99 "$warm_up"
	last=$((length / 15 - 1))
	# The rule in force at the end, and its neighbours in price at 5 % and 0.1 % late.
	rules=$(decided "$results/$case/own" $last | jq -r '[.decision.rule,
		(.prices[] | select(.late_ppm == 50000 or .late_ppm == 1000) | .rule)] | map(select(. != null)) | unique[]')
	for rule in $rules; do
		simulate "$out-$rule" 99 0 --policy "preheat:rule=$rule"
		jq -rn --arg case "$case" --arg rule "$rule" --slurpfile run "$out-$rule/run/summary.json" \
			--argjson told "$(decided "$out-$rule" $last)" '
			def places(n): . * pow(10; n) | round / pow(10; n) | tostring;
			$run[0].pools.chat as $real | ($told.decision.record_hours_milli / 1000) as $hours
			| ($told.decision.rule_gpu_milli / 1000) as $shadow | ($real.gpu_hours / ($run[0].simulated_s / 3600)) as $gpus
			| ($told.decision.rule_late_ppm / 1e6) as $late
			| "| \($case) | \($rule) | \($shadow | places(2)) | \($gpus | places(2)) | \(($shadow / $gpus - 1) * 100 | places(2)) % | \($late * 100 | places(2)) % | \($real.late_share * 100 | places(2)) % | \(if $real.late_share > 0 then $late / $real.late_share | places(2) else "-" end) |"'
	done
}

price_rows() {
	local half=$((length / 2)) curve level mean
	curve=$(decided "$results/$case/own" $((half / 15)))
	# Mean demand of the second half over that of the first, in replica-seconds of work that ran.
	mean=$(awk -F, -v half=$half 'NR > 1 { if ($1 <= half) { a += $7; n++ } else { b += $7; m++ } } END { printf "%.4f", (b / m) / (a / n) }' \
		"$results/$case/own/run/timeline.csv")
	for level in 95 98 99 99.5 99.9; do
		simulate "$results/$case/at-$level" "$level" $half
		jq -rn --arg case "$case" --arg level "$level" --argjson mean "$mean" --argjson price $price \
			--argjson curve "$curve" --slurpfile run "$results/$case/at-$level/run/summary.json" '
			def places(n): . * pow(10; n) | round / pow(10; n) | tostring;
			((1e6 - ($level | tonumber) * 1e4) | round) as $ppm
			| ($curve.prices[] | select(.late_ppm == $ppm) | if .dollars_per_hour then .dollars_per_hour / 1e6 else null end) as $said
			| $run[0].pools.chat.scored as $half | ($half.dollars / (($run[0].simulated_s - $run[0].warm_up_s) / 3600)) as $paid
			| "| \($case) | \($level) % | \(if $said then "$" + ($said | places(2)) else "none" end) | \($mean | places(3)) | $\($paid | places(2)) | \(if $said then $paid / $said / $mean | places(3) else "-" end) | \($half.late_share * 100 | places(2)) % |"'
	done
}

each_case() {
	local row
	while read -r row; do
		case=$(jq -r .case <<<"$row")
		[[ $case =~ $pattern ]] || continue
		file=$traces/$(jq -r .files.bins <<<"$row")
		read -r k peak length < <(jq -r '[.k, (.replicas.max * 2 | ceil), .length_s] | join(" ")' <<<"$row")
		jitter=() warm_up=86400
		[ "$k" -le 6 ] || jitter=(--jitter)
		[ "$length" -ge 172800 ] || warm_up=$((length / 10))
		"$1"
	done < <(jq -c '.cases[] | select(.files.bins)' "$traces/cases.json")
}

printf '\n| case | rule | GPUs by its shadow | GPUs really | difference | late by its shadow | late really | ratio |\n'
printf '|---|---|---|---|---|---|---|---|\n'
each_case shadow_rows
printf '\n| case | objective | dollars an hour, said at half time | demand of the second half / first | dollars an hour, second half | '
printf 'paid / said, for that demand | late |\n|---|---|---|---|---|---|---|\n'
each_case price_rows
