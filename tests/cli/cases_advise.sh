# shellcheck shell=bash disable=SC2016,SC2154
# What to change: each change tried on recorded traffic, and asked wrongly.

if [ ! -e "$scratch/floored/history.db" ]; then
	# A floor of six replicas that hardly any traffic needs.
	sed 's/^  headroom: .*/  headroom: { min: 6, max: 10 }/' "$example/pool.yaml" >"$scratch/floored.yaml"
	"$preheat_path" generate --length 6h --rate 8 --seed 1 --out "$scratch/floored.csv" 2>/dev/null
	"$preheat_path" simulate -f "$scratch/floored.yaml" --trace "$scratch/floored.csv" --out "$scratch/floored" >/dev/null 2>&1
fi

found 'advise: a floor that nobody needs' 0 '^chat +headroom\.min: 0 +\$[1-9]' "cp '$scratch/floored/history.db' h.db" 'preheat advise --db h.db'
found 'advise: what the floor saves is what the run without it costs less' 0 '^true$' \
	"cp '$scratch/floored/history.db' h.db; preheat simulate --recording h.db -f '$example/pool.yaml' --out without >/dev/null 2>&1" \
	'saved=$(preheat advise --db h.db -o json | jq "map(select(.change == \"headroom.min: 0\"))[0].saves_dollars_a_day")
	now=$(preheat cost --db h.db -o json | jq ".[0].dollars"); then=$(preheat cost --db without -o json | jq ".[0].dollars")
	jq -n "($saved / 4) / ($now - $then) | . > .8 and . < 1.25"'
# A size of three that four days of bursts pass.
if [ ! -e "$scratch/capped/history.db" ]; then
	sed 's/^      max: 20/      max: 3/; s/standby: { max: 10,/standby: { max: 0,/; s/^  headroom: .*//' "$example/pool.yaml" >"$scratch/capped.yaml"
	"$preheat_path" generate --shape diurnal:1.6,bursts:3:3h:10m --length 4d --rate 14 --bin 30s --seed 2 --out "$scratch/capped.csv" 2>/dev/null
	"$preheat_path" simulate --draws 1 -f "$scratch/capped.yaml" --trace "$scratch/capped.csv" --interval 30s --out "$scratch/capped" >/dev/null 2>&1
fi
found 'advise: what a higher limit makes of the recent incidents' 0 '^5 true$' "cp '$scratch/capped/history.db' h.db" \
	'preheat advise --db h.db --all -o json | jq -r ".[] | select(.change | test(\"max\")) | \"\(.incidents) \(.incidents_late_with < .incidents_late)\""'
found 'advise: every change that was tried' 0 '^true$' "cp '$scratch/floored/history.db' h.db" \
	'[ "$(preheat advise --db h.db --all -o csv | wc -l)" -gt "$(preheat advise --db h.db -o csv | wc -l)" ] && echo true'
found 'advise: at most three' 0 '^[0-3]$' "cp '$scratch/floored/history.db' h.db" 'preheat advise --db h.db -o json | jq length'
found 'advise: the same again' 0 '^same$' "cp '$scratch/floored/history.db' h.db" \
	'preheat advise --db h.db -o json >a; preheat advise --db h.db -o json >b; cmp a b && echo same'
refused 'advise: no ticks there' 2 'no tick lies between' "cp '$scratch/floored/history.db' h.db" 'preheat advise --db h.db --from 2024-02-02T00:00:00Z'
refused 'advise: unknown pool' 2 'nobody.*chat' "cp '$scratch/floored/history.db' h.db" 'preheat advise --db h.db --pool nobody'
refused 'advise: no history' 2 'none\.db' '' 'preheat advise --db none.db'
