#!/usr/bin/env bash
# Every public case, untuned, at 99 % within 2 s, beside each rival's cheapest setting and the clairvoyant bound.
# Usage: benchmarks/cases.sh [PATTERN [VARIANT...]]
#
# Variants: hot (cold lead time p50 380 s, p95 650 s), standby (beside it: p50 90 s, p95 150 s, 2 % of the price),
# lent (standby, and 30 % of the mean lent to batch), hot90, hot900, standby900 (other cold lead times). With a
# case above six times production there is each of the first three again as *-multiplied: the correlated worst case.
# COMPARE=no leaves the rivals out.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=benchmarks/pool.sh
. benchmarks/pool.sh
traces=${PREHEAT_SHARED:-../shared}/traces
preheat=build/release/preheat
results=build/bench/cases
price=1.21 # dollars a GPU hour, in benchmarks/pool.sh
pattern=${1:-.}
[ $# -eq 0 ] || shift
chosen=("$@")

[ -f "$traces/cases.json" ] || { echo "benchmarks: no $traces/cases.json; name its folder by PREHEAT_SHARED" >&2; exit 3; }
command -v jq >/dev/null || { echo "benchmarks: jq is missing: apt-get install jq" >&2; exit 3; }

is_chosen() {
	[ ${#chosen[@]} -eq 0 ] || [[ " ${chosen[*]} " == *" $1 "* ]]
}

# run CASE VARIANT: one simulation, and its replay
run() {
	local case=$1 variant=$2 row file k mean peak length p50=380 p95=650 standby=0 lent=0 jitter=() compare=()
	row=$(jq -c --arg c "$case" '.cases[] | select(.case == $c)' "$traces/cases.json")
	file=$traces/$(jq -r '.files.bins // .files.requests' <<<"$row")
	read -r k mean peak length < <(jq -r '[.k, .replicas.mean, (.replicas.max * 2 | ceil), .length_s] | join(" ")' <<<"$row")
	case $variant in
	*900) p50=900 p95=1539 ;;
	*90) p50=90 p95=154 ;;
	esac
	case $variant in standby* | lent*) standby=$peak ;; esac
	case $variant in lent*) lent=$(awk -v m="$mean" 'BEGIN { printf "%d", 0.3 * m + 0.5 }') ;; esac
	case $variant in
	*-multiplied) ;;
	*) [ "$k" -le 6 ] || jitter=(--jitter) ;;
	esac
	case $variant in lent*) ;; *) [ "${COMPARE:-yes}" = no ] || compare=(--compare) ;; esac
	local out=$results/$case/$variant
	mkdir -p "$out"
	pool_manifest "$peak" "$p50" "$p95" "$standby" "$lent" >"$out/pool.yaml"
	world_file "$lent" >"$out/world.yaml"
	local world=()
	[ "$lent" -eq 0 ] || world=(--world "$out/world.yaml")
	# Scored after the first day, of a case shorter than two days after its first tenth.
	local warm_up=86400
	[ "$length" -ge 172800 ] || warm_up=$((length / 10))
	"$preheat" simulate --draws 1 -f "$out/pool.yaml" --trace "$file" --scale "$k" ${jitter[@]+"${jitter[@]}"} \
		${world[@]+"${world[@]}"} --warm-up "${warm_up}s" ${compare[@]+"${compare[@]}"} --out "$out/run" --force \
		>"$out/printed" 2>"$out/errors" || { cat "$out/errors" >&2; return 1; }
	"$preheat" replay --db "$out/run/history.db" >"$out/replayed" || true
}

# tell CASE VARIANT: a row of the first table. Hours are dollars over the price: a stopped machine counts its 2 %.
tell() {
	local out=$results/$1/$2 rivals=$results/$1/$2/run/compare.json
	local base=$results/$1/${2/#*-multiplied/hot-multiplied}/run/compare.json
	case $2 in standby | lent) base=$results/$1/hot/run/compare.json ;; standby900) base=$results/$1/hot900/run/compare.json ;; esac
	[ -f "$rivals" ] || rivals=/dev/null
	[ -f "$base" ] || base=/dev/null
	jq -rn --arg case "$1" --arg variant "$2" --arg replay "$(tail -1 "$out/replayed")" --argjson price $price \
		--arg equal "$(sed -n 's/.*cost \([0-9.]*\) of ours.*/\1/p' "$out/printed")" \
		--slurpfile us "$out/run/summary.json" --slurpfile rivals "$rivals" --slurpfile base "$base" '
		def cheapest: map(select(.is_cheapest != null and .scored.late_share <= 0.01)) | min_by(.scored.dollars);
		def hours: (.scored.dollars / $price);
		def number: . * 10 | round / 10 | tostring;
		def ratio: . * 1000 | round / 1000 | tostring;
		def share: . * 10000 | round / 100 | tostring | . + " %";
		($us[0].pools.chat) as $u | ($u | hours) as $h
		| (($base[0] // []) | map(select((.uses_standby or .uses_lent) | not)) | cheapest) as $hot
		| (($rivals[0] // []) | cheapest) as $any
		| (($rivals[0] // []) | map(select(.policy == "oracle")) | first) as $bound
		| [ $case, $variant, ($u.scored.late_share | share) + (if $u.scored.late_share > 0.01 then " **missed**" else "" end),
			($h | number), ($u.scored.starts | tostring),
			(if $hot then $hot.policy + " " + $hot.setting else "-" end), (if $hot then ($hot.scored.late_share | share) else "-" end),
			(if $hot then ($hot | hours | number) else "-" end), (if $hot then ($h / ($hot | hours) | ratio) else "-" end),
			(if $any and ($any | (.uses_standby or .uses_lent)) then ($h / ($any | hours) | ratio) else "-" end),
			(if $equal != "" then (1 / ($equal | tonumber) | ratio) else "-" end),
			(if $bound then ($h / $bound.scored.gpu_hours | ratio) else "-" end), $replay ]
		| "| " + join(" | ") + " |"'
}

# families CASE VARIANT: what each family came to, in hindsight and tuned on the first day
families() {
	local file=$results/$1/$2/run/compare.json
	[ -f "$file" ] || return 0
	jq -r --arg case "$1" --arg variant "$2" --argjson price $price '
		def hours: .scored.dollars / $price * 10 | round / 10 | tostring;
		def share: .scored.late_share * 10000 | round / 100 | tostring | . + " %";
		def cell: if . then "\(.setting) | \(share) | \(hours) | \(.scored.starts)" else "none kept it | - | - | -" end;
		map(select(.is_cheapest != null)) | group_by(.policy)[]
		| "| \($case) | \($variant) | \(.[0].policy) | \(map(select(.is_cheapest)) | first | cell) | \(map(select(.is_first_day_choice)) | first | cell) |"' "$file"
}

cases=() variants=()
while read -r case k; do
	[[ $case =~ $pattern ]] || continue
	for variant in hot standby lent hot90 hot900 standby900 hot-multiplied standby-multiplied lent-multiplied; do
		case $variant in *-multiplied) [ "$k" -gt 6 ] || continue ;; esac
		is_chosen "$variant" || continue
		echo "$case, $variant" >&2
		run "$case" "$variant"
		cases+=("$case") variants+=("$variant")
	done
done < <(jq -r '.cases[] | "\(.case) \(.k)"' "$traces/cases.json")

printf '\n| case | variant | late | GPU hours | starts | best hot-only rival in hindsight | its late | its hours | Preheat / it '
printf '| / best rival with standby | at equal late | / clairvoyant bound | replay |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n'
for i in "${!cases[@]}"; do
	tell "${cases[i]}" "${variants[i]}"
done
printf '\n| case | variant | family | cheapest that kept it | late | hours | starts | tuned on the first day | late | hours | starts |\n'
printf '|---|---|---|---|---|---|---|---|---|---|---|\n'
for i in "${!cases[@]}"; do
	families "${cases[i]}" "${variants[i]}"
done
