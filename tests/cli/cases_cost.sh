# shellcheck shell=bash disable=SC2016,SC2154
# What GPUs did and cost: cost and report on a simulation, on histories of before, and asked wrongly.

simulated costs --shape diurnal,bursts --length 3h --rate 20 -- --world "$example/world.yaml"
if [ ! -e "$scratch/lived.db" ]; then
	# As the program of before wrote it.
	cp "$scratch/costs/history.db" "$scratch/before.db"
	sqlite3 "$scratch/before.db" "DROP TABLE cost; DROP TABLE cost_label; DROP TABLE cost_label_set;
		DROP TABLE quota_hour; DROP TABLE gpu_holding; ALTER TABLE launch DROP COLUMN operation; PRAGMA user_version = 2;
		UPDATE manifest SET text = CAST(readfile('$example/pool.yaml') AS TEXT); DROP TABLE manifest_text"
	# As a controller writes it: with labels, quotas and pods.
	cp "$scratch/costs/history.db" "$scratch/lived.db"
	sqlite3 "$scratch/lived.db" "UPDATE fact SET value = 'run' WHERE name = 'run';
		INSERT INTO cost_label_set VALUES (1, 0, 'ml', 'chat', 'prod', 'inference'), (2, 0, '', '', 'prod', ''), (3, 1, '', '', '', '');
		INSERT INTO cost_label SELECT hour, pool, 1, serving_gpu_ms, serving_micro_dollars FROM cost;
		INSERT INTO cost_label SELECT hour, pool, 2, idle_gpu_ms, idle_micro_dollars FROM cost;
		INSERT INTO cost_label SELECT hour, pool, 3, starting_gpu_ms, starting_micro_dollars + standby_micro_dollars FROM cost;
		INSERT INTO quota_hour SELECT hour, 'llm', 'gpus', 'requests.nvidia.com/gpu', 3600000, 8, 6, 28800000, 18000000 FROM cost;
		INSERT INTO quota_hour SELECT hour, 'research', 'gpus', 'requests.nvidia.com/gpu', 3600000, 4, 1, 14400000, 3600000 FROM cost;
		INSERT INTO gpu_holding SELECT 'u1', 1, 3600000 * min(hour) + 600000, 3600000 * max(hour), 'research', 'tune <b>&', 'n1', 4000,
			-9223372036854775808 FROM cost"
fi

# The same dollars and GPU time as timeline.csv, to the micro-dollar and millisecond.
found 'cost: what the timeline has' 0 '^same$' "cp -r '$scratch/costs' ." \
	'awk -F, "NR > 1 { g += \$13 * 1000; d += \$14 * 1000000; a += \$3; l += \$5 } END { printf \"%.0f|%.0f|%d|%d\n\", g, d, a, l }" costs/timeline.csv >wanted
	sqlite3 costs/history.db "SELECT sum(idle_gpu_ms + lent_gpu_ms + starting_gpu_ms + serving_gpu_ms), sum(idle_micro_dollars
		+ lent_micro_dollars + starting_micro_dollars + serving_micro_dollars + standby_micro_dollars), sum(arrived), sum(late) FROM cost" >told
	cmp wanted told && echo same'
# What GPUs were held for.
found 'cost: the parts add up, the bound is below' 0 '^true$' "cp -r '$scratch/costs' ." \
	'preheat cost --excess --db costs -o json | jq "(map(select(.part == \"all\"))[0]) as \$all | (map(select(.part == \"bound\"))[0]) as \$bound
		| (map(select(.part != \"all\" and .part != \"bound\").dollars) | add - \$all.dollars | fabs) < .0001
		and \$bound.gpu_hours > 0 and \$bound.gpu_hours < \$all.gpu_hours and map(.part)[0] == \"work\""'
found 'cost: the parts are about the bill' 0 '^true$' "cp -r '$scratch/costs' ." \
	'all=$(preheat cost --excess --db costs -o json | jq "map(select(.part == \"all\"))[0].dollars")
	preheat cost --db costs -o json | jq ".[0].dollars / $all | . > .98 and . < 1.02"'
refused 'cost: parts of classes' 2 '--excess is of pools; found --by class' "cp -r '$scratch/costs' ." \
	'preheat cost --excess --by class --db costs'
# Under what teams run instead.
found 'cost: the same traffic under other fleets' 0 '^true$' "cp -r '$scratch/costs' ." \
	'preheat cost --alternatives --db costs -o json >a; bill=$(preheat cost --db costs -o json | jq ".[0].dollars")
	jq --argjson bill "$bill" "(map(select(.fleet == \"recorded\").dollars) | add - \$bill | fabs) < .001
		and ([.[] | select(.fleet == \"static\").late] | add) == 0
		and (map(.fleet) | index(\"autoscaler\")) != null and all(.model_fits)" a'
found 'cost: what the static fleet costs is what simulate says' 0 '^true$' "cp -r '$scratch/costs' ." \
	'preheat cost --alternatives --db costs -o json >a; n=$(jq -r "map(select(.fleet == \"static\"))[0].setting" a)
	preheat simulate --recording costs/history.db --policy "static:$n" --out o >/dev/null 2>&1
	jq -s "(.[0] | map(select(.fleet == \"static\").gpu_hours) | add) / (.[1].pools | map(.gpu_hours) | add) | . > .98 and . < 1.02" a o/summary.json'
found 'cost: other fleets, the same again' 0 '^same$' "cp -r '$scratch/costs' ." \
	'preheat cost --alternatives --db costs >a; preheat cost --alternatives --db costs >b; cmp a b && echo same'
# What the team had, by the manifest.
found 'cost: the autoscaler that was' 0 '^same$' "sed 's/^spec:/spec:\\n  formerAutoscaler: total=50,min=2,max=9/' '$example/pool.yaml' >p.yaml" \
	"preheat simulate -f p.yaml --trace '$scratch/costs.csv' --out o >/dev/null 2>&1"'
	preheat cost --alternatives --db o -o json | jq -r "map(select(.fleet == \"autoscaler\"))[0].setting" | grep -qx total=50,min=2,max=9 && echo same'
found 'check: an autoscaler that the model does not have' 1 'formerAutoscaler: found totl=50;.*did you mean total' \
	"sed 's/^spec:/spec:\\n  formerAutoscaler: totl=50/' '$example/pool.yaml' >p.yaml" 'preheat check p.yaml 2>&1'
refused 'cost: other fleets of classes' 2 '--alternatives is of pools; found --by class' "cp -r '$scratch/costs' ." \
	'preheat cost --alternatives --by class --db costs'
refused 'cost: two answers' 2 'ask for one of them' "cp -r '$scratch/costs' ." 'preheat cost --alternatives --excess --db costs'
refused 'cost: parts of nobody' 2 'nobody.*chat' "cp -r '$scratch/costs' ." 'preheat cost --excess --pool nobody --db costs'
found 'cost: several pools, one borrows from another' 0 '^same$' '' \
	"preheat generate --shape diurnal,bursts --length 4h --rate 30 --seed 2 --out t.csv 2>/dev/null
	preheat simulate -f '$example/../three-pools/pools.yaml' --world '$example/../three-pools/world.yaml' --trace chat=t.csv \
		--trace embed=t.csv --trace nightly=t.csv --out o >/dev/null 2>&1
	"'awk -F, "NR > 1 { d[\$2] += \$14 * 1000000 } END { for (p in d) printf \"%s|%.0f\n\", p, d[p] }" o/timeline.csv | sort >wanted
	sqlite3 o/history.db "SELECT name, sum(idle_micro_dollars + lent_micro_dollars + starting_micro_dollars + serving_micro_dollars
		+ standby_micro_dollars) FROM cost JOIN pool ON id = pool GROUP BY name ORDER BY name" >told
	cmp wanted told && echo same'

# As a person reads it.

here=$PWD
found 'cost: as a person reads it' 0 '^same$' '' \
	"preheat cost --db '$scratch/costs' --utc >said && preheat cost --db '$scratch/lived.db' --utc --by label >>said
	diff '$here/tests/cli/cost.golden' said && echo same"
found 'report: as a person reads it' 0 '^same$' '' \
	"preheat report --db '$scratch/lived.db' --utc >said && diff '$here/tests/cli/report.golden' said && echo same"

# Histories of before costs were kept: worked out from their decisions, and said.
found 'cost: a history of before' 0 '^near$' '' \
	"preheat cost --db '$scratch/before.db' -o csv 2>notes | awk -F, 'NR == 2 { print \$4 }' >old
	preheat cost --db '$scratch/costs' -o csv 2>/dev/null | awk -F, 'NR == 2 { print \$4 }' >new
	"'grep -q "worked out from its decisions" notes && paste old new | awk "{ print (\$1 > \$2 * .97 && \$1 < \$2 * 1.03) ? \"near\" : \$0 }"'
found 'cost: a history of before is left as it is' 0 '^same$' "cp '$scratch/before.db' h.db; cp h.db was.db" \
	'preheat cost --db h.db >/dev/null 2>&1; preheat report --db h.db >/dev/null 2>&1; cmp h.db was.db && echo same'
found 'report: a history of before' 0 'kept no costs' '' "preheat report --db '$scratch/before.db'"
refused 'cost: labels of before' 2 'not kept in this period' \
	"cp '$scratch/before.db' h.db; sqlite3 h.db \"UPDATE fact SET value = 'run' WHERE name = 'run'\"" \
	'preheat cost --db h.db --by label'
refused 'cost: labels of a simulation' 2 'a simulation has no pods' '' "preheat cost --db '$scratch/costs' --by label=product"

# Sums do not depend on what a decision has for fields.
found 'cost: of another version' 0 '^chat,' "cp '$scratch/costs/history.db' h.db
	sqlite3 h.db \"UPDATE fact SET value = '12345678' WHERE name = 'layout'\"" 'preheat cost --db h.db -o csv'
refused 'cost: of another version, before' 2 'another version of preheat.*program that wrote it' "cp '$scratch/before.db' h.db
	sqlite3 h.db \"UPDATE fact SET value = '12345678' WHERE name = 'layout'\"" 'preheat cost --db h.db'
found 'cost: ticks dropped before' 0 'Ticks before .* were dropped' "cp '$scratch/costs/history.db' h.db
	sqlite3 h.db 'INSERT INTO rollup VALUES (400000, 0, 1, 1, 1, 1, 1, 1, 1)'" 'preheat cost --db h.db 2>&1'
refused 'cost: damaged sums' 2 'damaged: the sums of hour' "cp '$scratch/costs/history.db' h.db
	sqlite3 h.db 'UPDATE cost SET late = -1'" 'preheat cost --db h.db'

refused 'cost: no such file' 2 'no such file' '' 'preheat cost --db h.db'
refused 'report: no such file' 2 'no such file' '' 'preheat report --db h.db'
refused 'cost: empty file' 2 'empty' ': >h.db' 'preheat cost --db h.db'
refused 'cost: no decision yet' 2 'no decisions in it yet' \
	"cp '$scratch/costs/history.db' h.db; sqlite3 h.db 'DELETE FROM tick; DELETE FROM decision'" 'preheat cost --db h.db'
refused 'report: no decision yet' 2 'no decisions in it yet' \
	"cp '$scratch/costs/history.db' h.db; sqlite3 h.db 'DELETE FROM tick; DELETE FROM decision'" 'preheat report --db h.db'
refused 'cost: unknown --by' 2 "found 'team'; allowed: pool, class, label" '' "preheat cost --db '$scratch/costs' --by team"
refused 'cost: unknown label' 2 "found 'label=team'.*label=cost-center" '' "preheat cost --db '$scratch/costs' --by label=team"
refused 'cost: after the end' 2 'nothing in this period; the history is of 2024' '' \
	"preheat cost --db '$scratch/costs' --from 2031-01-01T00:00:00Z"
refused 'cost: before the beginning' 2 'nothing in this period' '' \
	"preheat cost --db '$scratch/costs' --to 2001-01-01T00:00:00Z"
refused 'cost: from after to' 2 'swap them' '' "preheat cost --db '$scratch/costs' --from +2h --to +1h"
refused 'cost: no time' 2 '--from: found .yesterday' '' "preheat cost --db '$scratch/costs' --from yesterday"
refused 'cost: two periods' 2 '--last is a period of its own' '' "preheat cost --db '$scratch/costs' --from +1h --last 1h"
refused 'cost: no duration' 2 "--last.*'soon'" '' "preheat cost --db '$scratch/costs' --last soon"
refused 'cost: unknown pool' 2 "no pool 'nobody'.*there is: chat" '' "preheat cost --db '$scratch/costs' --pool nobody"
refused 'cost: an argument too many' 2 "found 'chat'" '' "preheat cost --db '$scratch/costs' chat"
refused 'report: unknown namespace' 2 "nothing of 'nobody' in .*; there is: llm" '' \
	"preheat report --db '$scratch/costs' --namespace nobody"
refused 'report: unknown namespace, with quotas' 2 'there is: llm, research' '' \
	"preheat report --db '$scratch/lived.db' --namespace nobody"
refused 'report: day and week' 2 'give one of them' '' "preheat report --db '$scratch/costs' --day --week"
refused 'report: a day from' 2 'give one of them' '' "preheat report --db '$scratch/costs' --day --from +1h"
refused 'report: an argument too many' 2 "found 'llm'" '' "preheat report --db '$scratch/costs' llm"
refused 'report: an unknown form' 2 "'pdf'.*table, json or html|'pdf'.*html" '' "preheat report --db '$scratch/costs' -o pdf"

found 'cost: price 0' 0 'pricePerHour 0' 'sed "s/pricePerHour: 1.21/pricePerHour: 0/; /standby/d" "$example/pool.yaml" >p.yaml
	preheat simulate -f p.yaml --trace "$scratch/costs.csv" --out out >/dev/null 2>&1' 'preheat cost --db out 2>&1'
found 'report: price 0' 0 'pricePerHour 0' 'sed "s/pricePerHour: 1.21/pricePerHour: 0/; /standby/d" "$example/pool.yaml" >p.yaml
	preheat simulate -f p.yaml --trace "$scratch/costs.csv" --out out >/dev/null 2>&1' 'preheat report --db out 2>&1'
unpriced="sed '/pricePerHour/d; /standby/d' '$example/pool.yaml' >p.yaml; "'preheat simulate -f p.yaml --trace "$scratch/costs.csv" --out out >/dev/null 2>&1'
for verb in cost 'cost --by class' 'cost --excess' 'cost --alternatives' report explain 'explain --full' 'history --all -o wide' advise \
	'advise --all -o wide' 'lead-time -o wide' 'replay --objective 5s,95%'; do
	found "$verb: no price" 1 '^0$' "$unpriced" "preheat $verb --db out >said 2>/dev/null && grep -c '[$][0-9]' said"
done
found 'cost: no price, for programs' 0 '^null null true$' "$unpriced" \
	'preheat cost --db out -o json 2>/dev/null | jq -r ".[0] | \"\(.dollars) \(.dollars_per_request) \(.gpu_hours > 0)\""'
found 'cost: how to give a price' 0 'Pool chat: its node groups have no price .*; give pricePerHour to its nodeGroups' "$unpriced" 'preheat cost --db out 2>&1'
found 'explain: no price' 0 '^It costs +[0-9.]+ GPU hours an hour after this plan[.]$' "$unpriced" 'preheat explain --db out'
found 'explain: no price, for programs' 0 '^null null$' "$unpriced" \
	'preheat explain --db out -o json | jq -r "\"\(.decision.dollars_per_hour) \(.groups[0].price_per_hour)\""'
found 'history: no price, for programs' 0 '^true$' "$unpriced" \
	'preheat history --all --db out -o json | jq "all(.dollars_per_hour_micro == null)"'
found 'advise: no price' 0 '^null null true$' "$unpriced" \
	'preheat advise --all --db out -o json | jq -r ".[0] | \"\(.saves_dollars_a_day) \(.dollars_a_day) \(.saves_gpu_hours_a_day != null)\""'
found 'advise: no price, GPU hours' 0 ' -?[0-9,.]+ h ' "$unpriced" 'preheat advise --all --db out'
found 'lead-time: no price' 0 '^true$' "$unpriced" 'preheat lead-time --db out -o json | jq "all(.half_saves_dollars_a_day == null)"'
found 'simulate: no price' 1 '^0$' "$unpriced" \
	'preheat simulate -f p.yaml --trace "$scratch/costs.csv" --out again | grep -c "[$][0-9]"'
found 'simulate: no price, for programs' 0 '^null null true$' "$unpriced" \
	'jq -r ".pools.chat | \"\(.dollars) \(.scored.dollars) \(.gpu_hours > 0)\"" out/summary.json'
found 'status: no price' 0 '^chat +[0-9]+ h +[0-9]+ h +- +[0-9]+ h +-$' "$unpriced" \
	'preheat status --utc --db out 2>/dev/null | sed -n "s/^chat  *- /chat 0 h /; p"'
found 'status: how to give a price' 0 '^chat: no price is given, so GPU hours are told; give pricePerHour to its nodeGroups[.]$' "$unpriced" 'preheat status --db out'
found 'status: what cost says' 0 '^true$' "cp -r '$scratch/costs' ." \
	'spent=$(sqlite3 costs/history.db "SELECT sum(micro_dollars) FROM level WHERE width = 0"); preheat cost --db costs -o json 2>/dev/null | jq --argjson spent "$spent" "(.[0].dollars * 1000000 - \$spent | fabs) < 1"'
found 'cost: whole hours' 0 '^2,2$' '' \
	"preheat cost --db '$scratch/costs' --from +1h --to +3h -o json | python3 -c '
import json, sys
row = json.load(sys.stdin)[0]
print(\"%g,%g\" % (row[\"watched_hours\"], row[\"gpu_hours\"] / row[\"gpu_hours\"] * 2))'"
found 'cost: the last hour' 0 '"watched_hours": 1\b' '' "preheat cost --db '$scratch/costs' --last 1h -o json"
found 'report: for programs' 0 '^research 1 10800$' '' \
	"preheat report --db '$scratch/lived.db' -n research -o json | python3 -c '
import json, sys
r = json.load(sys.stdin)
print(r[\"namespace\"], len(r[\"held_for_nothing\"]), round(r[\"quotas\"][0][\"not_used_gpu_hours\"] * 3600 / 3))'"
found 'report: one page that asks nobody' 0 '^whole$' '' \
	"preheat report --db '$scratch/lived.db' -o html >page.html"'
	! grep -qE "<script|https?:|src=|<b>&" page.html && grep -q "tune &lt;b&gt;&amp;" page.html && grep -q "</html>" page.html && echo whole'
found 'cost: a reader that leaves early' 0 '^141 0$' '' \
	"preheat report --db '$scratch/lived.db' -o html 2>said | true; "'echo "${PIPESTATUS[0]} $(wc -c <said)"'
if [ -w /dev/full ]; then
	refused 'report: on a full disk' 3 'standard output.*space' '' "preheat report --db '$scratch/lived.db' -o html >/dev/full"
	refused 'cost: on a full disk' 3 'standard output.*space' '' "preheat cost --db '$scratch/costs' >/dev/full"
fi
