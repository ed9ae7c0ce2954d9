# shellcheck shell=bash disable=SC2016,SC2154
# How long starts took, by stage, and what shorter ones would save: from a simulation, and asked wrongly.

if [ ! -e "$scratch/staged/history.db" ]; then
	sed 's/^  leadTime: .*/  leadTime: { provision: { p50: 60s, p95: 90s }, register: { p50: 30s, p95: 40s }, device: { p50: 20s, p95: 30s }, image: { p50: 150s, p95: 250s }, load: { p50: 90s, p95: 120s } }/' \
		"$example/pool.yaml" >"$scratch/staged.yaml"
	"$preheat_path" generate --shape diurnal,bursts --length 6h --rate 20 --seed 1 --out "$scratch/staged.csv" 2>/dev/null
	"$preheat_path" simulate -f "$scratch/staged.yaml" --trace "$scratch/staged.csv" --out "$scratch/staged" >/dev/null 2>&1
fi

found 'lead-time: stages and all of it' 0 '^chat +g5 +cold +image +[0-9]+ +[0-9]' "cp '$scratch/staged/history.db' h.db" \
	'preheat lead-time --db h.db'
found 'lead-time: in the order of a start' 0 '^all,provision,register,device,image,load,$' "cp '$scratch/staged/history.db' h.db" \
	'preheat lead-time --db h.db -o csv | awk -F, "\$3 == \"cold\" { printf \"%s,\", \$4 } END { print \"\" }"'
found 'lead-time: the slowest twentieth is no faster than the 95th percentile' 0 '^true$' "cp '$scratch/staged/history.db' h.db" \
	'preheat lead-time --db h.db -o json | jq "length > 5 and all(.[]; .slowest_s >= .p95_s and .p95_s >= .p50_s and .count > 0)"'
found 'lead-time: what a second is worth' 0 '^true$' "cp '$scratch/staged/history.db' h.db" \
	'preheat lead-time --db h.db -o json | jq "[.[] | select(.start == \"wake\")][0] | (.half_saves_dollars_a_day / (.p50_s / 2) - .second_dollars_a_day | fabs) < .02"'
found 'lead-time: the same again' 0 '^same$' "cp '$scratch/staged/history.db' h.db" \
	'preheat lead-time --db h.db -o json >a; preheat lead-time --db h.db -o json >b; cmp a b && echo same'
found 'lead-time: no starts' 0 '^No start was recorded\.$' \
	'preheat generate --length 30m --rate 1 --seed 1 --out t.csv 2>/dev/null; preheat simulate -f $example/pool.yaml --trace t.csv --out o >/dev/null 2>&1' \
	'preheat lead-time --db o --to +5m'
refused 'lead-time: no ticks there' 2 'no tick lies between' "cp '$scratch/staged/history.db' h.db" \
	'preheat lead-time --db h.db --from 2024-02-02T00:00:00Z'
refused 'lead-time: unknown pool' 2 'nobody.*chat' "cp '$scratch/staged/history.db' h.db" 'preheat lead-time --db h.db --pool nobody'
