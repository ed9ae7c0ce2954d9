# shellcheck shell=bash disable=SC2016,SC2154
# Every verb that answers, in every form: the same values, and nothing but them on standard output.

answers=$scratch/answers
simulated answers --length 2h --rate 2

# reads FORM: whether standard input is in that form, not empty, and made of equal rows.
reads() {
	python3 -B -c '
import csv, json, sys
form, text = sys.argv[1], sys.stdin.read()
if form == "json":
    ok = bool(json.loads(text))
elif form == "csv":
    rows = list(csv.reader(text.splitlines()))
    ok = len(rows) > 1 and all(len(r) == len(rows[0]) for r in rows)
elif form == "yaml":
    ok = ":" in text and "\t" not in text and not text.lstrip("- ").startswith("{")
else:
    ok = len(text.splitlines()) > 0 and "\033" not in text
sys.exit(not ok)' "$1" && echo "reads as $1"
}

# answers_in_every_form VERB... [OPTION...]
answers_in_every_form() {
	local form name="answers: $*"
	for form in table wide json csv yaml; do
		found "$name: $form" 0 "^reads as $form$" "cp -r '$answers/history.db' history.db; cp '$example/pool.yaml' pool.yaml; sed s/spec:/spek:/ pool.yaml >bad.yaml" \
			"preheat $* -o $form 2>/dev/null | reads $form"
	done
}

answers_in_every_form history --number 3
answers_in_every_form explain
answers_in_every_form replay --from -5m
answers_in_every_form replay --with pool.yaml
answers_in_every_form cost
answers_in_every_form cost --by class
answers_in_every_form report
answers_in_every_form status --db history.db
answers_in_every_form version
answers_in_every_form check bad.yaml
answers_in_every_form simulate -f pool.yaml --trace "$scratch/answers.csv"
answers_in_every_form history export --out days

# Every table as it comes without -o wide, with what clusters have in theirs: names of nodes, outcomes in words.
lived='sqlite3 history.db "INSERT INTO engine_move (uid, asked_at, pod, pool, share, slot, is_wake, why, tick, term, outcome, took, ended_at)
	SELECT \"u\", max(at), \"llm/chat-7d9f8b6c5-x2x7z\", \"llm/chat\", \"llm/small\", \"ip-10-0-12-117.ec2.internal/gpu-7\", 1, \"requests wait\", 1, 1,
		\"done\", 900, max(at) + 900 FROM tick;
	INSERT INTO launch (token, node_group, verb, target, machines, tick, term, asked_at, outcome, ended_at)
	SELECT \"k\", \"g5-on-demand\", 0, 12, \"i-0123456789abcdef0 i-0123456789abcdef1\", 1, 1, max(at), \"insufficient-capacity\", max(at) + 90000 FROM tick;
	INSERT INTO drain (node, asked_at, machine, pool, node_group, fate, why, tick, term, released_at, outcome, ended_at, unmarked_at)
	SELECT \"ip-10-0-12-117.ec2.internal\", max(at), \"i-0123456789abcdef0\", \"llm/chat\", \"g5-on-demand\", \"remove\", \"release\", 1, 1, 0, \"done\",
		max(at) + 90000, max(at) + 90000 FROM tick"'
for verb in status cost 'cost --by class' 'cost --excess' 'cost --alternatives' report history 'history --all' 'history --hours' 'history --launches' \
	'history --drains' 'history --moves' advise lead-time incidents replay 'replay --objective 5s,95%' 'explain --full'; do
	found "answers: $verb fits 80 columns" 0 '^0$' "cp '$answers/history.db' history.db; $lived" \
		"COLUMNS=80 preheat $verb --db history.db --utc 2>/dev/null >said; grep '   ' said | grep -vE '^(Decided|Seen|Engines|Expected|Rule|Why|Held by|It costs|Self-test|More|  )' | grep -cE '^.{81}' || true"
done
found 'answers: what replay says of its table fits 80 columns' 0 '^2$' "cp '$answers/history.db' history.db" \
	'for objective in 5s,95% 2s,99% 2s,99.9%; do preheat replay --db history.db --objective $objective 2>/dev/null; done >said
	grep -q "explain --full" said && ! grep -E "^.{81}" said && grep -c "explain --full" said'
found 'simulate: what comes next can be pasted as it stands' 0 ' 0 differ$' '' \
	"preheat simulate --draws 1 -f '$example/pool.yaml' --trace '$scratch/answers.csv' --out out >said 2>/dev/null
	$(printf %s 'eval "set -e; $(sed -n "/^Next:/,\$s/^  preheat/preheat/p" said)"')"
found 'answers: launches, drains and moves are there' 0 '^1 1 1$' "cp '$answers/history.db' history.db; $lived" \
	'echo $(for of in launches drains moves; do preheat history --$of --db history.db | grep -cE "(g5-on-demand|ec2.internal|wake) "; done)'
for verb in "check $example/pool.yaml" "simulate --draws 2 -f $example/pool.yaml --trace $scratch/answers.csv --out out"; do
	found "answers: ${verb%% *} fits 80 columns" 0 '^0$' '' \
		"COLUMNS=80 preheat $verb >said 2>/dev/null; grep '   ' said | grep -vE '[│└]|^ +0 +|^  ' | grep -cE '^.{81}' || true"
done
found 'simulate: what it says of its tables fits 80 columns' 0 '^1 1 0$' '' \
	"preheat simulate --draws 2 --warm-up 1h --compare --rivals static -f '$example/pool.yaml' --trace '$scratch/answers.csv' --out out 2>/dev/null >said
	echo \$(grep -c '^All figures' said) \$(grep -c '^cheapest: ' said) \$(grep -vE '[│└]|   ' said | grep -cE '^.{81}')"
found 'answers: -o alone names the forms' 0 '^table.*wide.*json.*csv.*yaml' '' 'for verb in history explain replay cost report status version check simulate; do
	preheat $verb -o 2>&1 | sed "s/.*allowed: //" | tr "|" " "; done | sort -u'
found 'answers: times for programs are RFC 3339 in any zone' 0 '^1$' "cp '$answers/history.db' history.db" \
	'for zone in Asia/Tokyo America/New_York UTC; do TZ=$zone preheat history --number 2 -o json; TZ=$zone preheat explain -o json; TZ=$zone preheat status --db . -o csv 2>/dev/null; done |
	grep -oE "[\",][0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+Z?" | grep -vcE "T[0-9:.]+Z$" | grep -c "^0$"'
found 'answers: people see their zone, or UTC' 0 '^2024-01-01 11:00:00 2024-01-01 02:00:00$' "cp '$answers/history.db' history.db" \
	'echo $(for flag in "" --utc; do TZ=Asia/Tokyo preheat history --all --number 1 $flag | tail -1 | cut -c 1-19; done)'
found 'answers: a zone that is not known is told' 0 "TZ is 'Mars/Base', which this machine does not know" "cp '$answers/history.db' history.db" \
	'TZ=Mars/Base preheat history --number 1 2>&1 >/dev/null'
