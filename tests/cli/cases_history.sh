# shellcheck shell=bash disable=SC2016,SC2154
# A history.db that is missing, foreign, newer, damaged, locked or read-only; questions that make no sense.

simulated good --shape diurnal,bursts --length 3h --rate 20

# Every verb that reads a history says the same about a bad one.
# bad_history NAME EXIT PATTERN PREPARE
bad_history() {
	for verb in history explain replay cost report; do
		refused "$verb: $1" "$2" "$3" "cp '$scratch/good/history.db' h.db; $4" "preheat $verb --db h.db"
	done
}

bad_history 'missing' '2|3' 'h\.db.*no such file' 'rm h.db'
bad_history 'empty' '2|3' 'h\.db' ': >h.db'
bad_history 'no database' '2|3' 'h\.db' 'head -c 100000 /dev/urandom >h.db'
bad_history 'text' '2|3' 'h\.db' 'yes hello | head -c 100000 >h.db'
bad_history 'a folder' '2|3' 'h\.db' 'rm h.db; mkdir h.db'
bad_history 'of another program' '2|3' 'h\.db' 'rm h.db; sqlite3 h.db "CREATE TABLE t (a); INSERT INTO t VALUES (1)"'
bad_history 'newer' '2|3' 'h\.db.*newer' 'sqlite3 h.db "PRAGMA user_version = 9999"'
bad_history 'truncated to a few pages' '2|3' 'h\.db' 'truncate -s 20480 h.db'
bad_history 'truncated to a few bytes' '2|3' 'h\.db' 'truncate -s 50 h.db'
# Held by another process for as long as the case runs.
for verb in history explain replay; do
	refused "$verb: locked" '2|3' 'h\.db.*lock' "cp '$scratch/good/history.db' h.db; mkfifo hold; : >h.db-wal; : >held" \
		'sqlite3 h.db <hold >/dev/null 2>&1 & exec 9>hold
		printf "%s\n" "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; CREATE TABLE t (a); COMMIT;" ".shell echo >held" >&9
		for _ in $(seq 200); do [ ! -s held ] || break; sleep 0.05; done
		preheat '$verb' --db h.db; code=$?; exec 9>&-; wait; exit $code'
done

if [ "$(id -u)" -eq 0 ] && mkdir -p "$scratch/ro" && mount -t tmpfs -o size=8m tmpfs "$scratch/ro" 2>/dev/null; then
	cp "$scratch/good/history.db" "$scratch/ro"
	mount -o remount,ro "$scratch/ro"
	for verb in history explain replay; do
		found "$verb: on a read-only disk" 0 '' '' "preheat $verb --db '$scratch/ro/history.db'"
	done
	umount "$scratch/ro"
else
	skip 'history, explain and replay on a read-only disk' 'needs root and mount'
fi

found 'replay: the same again' 0 '0 differ' "cp '$scratch/good/history.db' h.db" 'preheat replay --db h.db'
refused 'replay: decided by another version' 2 'ticks up to 99 .*preheat 0\.0\.9.*--from' "cp '$scratch/good/history.db' h.db; \
	sqlite3 h.db \"UPDATE writer SET program = '0.0.9', memory = 'x'; INSERT INTO writer VALUES (100, '0.1.0', '', 0)\"" \
	'preheat replay --db h.db'
refused 'explain: unknown pool' 2 'nobody.*chat' "cp '$scratch/good/history.db' h.db" 'preheat explain --db h.db --pool nobody'
refused 'explain: a tick that is not there' 2 'tick' "cp '$scratch/good/history.db' h.db" 'preheat explain --db h.db --tick 999999999'
refused 'explain: a time that is none' 2 '--at' "cp '$scratch/good/history.db' h.db" 'preheat explain --db h.db --at yesterday'
refused 'explain: tick and largest' 2 'largest' "cp '$scratch/good/history.db' h.db" 'preheat explain --db h.db --tick 1 --largest'
found 'history: changes only' 0 '^720 0 0$' "cp '$scratch/good/history.db' h.db" \
	'preheat history --db h.db --number 1000 -o wide >o; changes=$(preheat history --db h.db --number 1000 -o csv | tail -n +2 | wc -l)
	folded=$(sed -n "s/ tick.* without a change; --all shows .*//p" o); all=$(preheat history --db h.db --all --number 1000 -o csv | tail -n +2 | wc -l)
	[ "$changes" -gt 0 ] && [ "$changes" -lt 400 ] && echo "$all $((all - changes - folded)) $(preheat history --db h.db --all | grep -c without)"'
found 'history: nothing but ticks without a change' 0 '^1 tick without a change; --all shows it\.$' \
	"cp '$scratch/good/history.db' h.db" 'for t in $(seq 0 60); do
		preheat history --db h.db --from +$((t * 15))s --to +$((t * 15 + 15))s >o; if grep -q "^1 tick" o; then cat o; break; fi; done'
refused 'history: unknown limit' 2 'budget' "cp '$scratch/good/history.db' h.db" 'preheat history --db h.db --limit bugdet'
refused 'history: unknown group' 2 'g5' "cp '$scratch/good/history.db' h.db" 'preheat history --db h.db --group nobody'
refused 'history: from after to' 2 'from|--to' "cp '$scratch/good/history.db' h.db" \
	'preheat history --db h.db --from 2024-02-02T00:00:00Z --to 2024-02-01T00:00:00Z'
refused 'replay: with a manifest that is wrong' 2 'p\.yaml' "cp '$scratch/good/history.db' h.db; echo nothing >p.yaml" \
	'preheat replay --db h.db --with p.yaml'

# What goes is gone.
kept='preheat history --db h.db --all --number 1000 -o csv | tail -n +2 | wc -l'
refused 'history: retain with nobody to ask' 2 'h\.db: 241 of 720 ticks would be dropped for good, 2024-01-01 .* to .*; found no terminal.*do: add --yes' \
	"cp '$scratch/good/history.db' h.db" 'preheat history --db h.db --retain 1h'
found 'history: nothing went' 0 '^720$' "cp '$scratch/good/history.db' h.db" "preheat history --db h.db --retain 1h; $kept"
found 'history: retain with --yes' 0 '^241 ticks dropped, 479 left' "cp '$scratch/good/history.db' h.db" \
	'preheat history --db h.db --retain 1h --yes </dev/null'
found 'history: nothing old, nothing to ask' 0 '^0 ticks dropped, 720 left' "cp '$scratch/good/history.db' h.db" \
	'preheat history --db h.db --retain 30d'
for answer in y:479 YES:479 n:720 :720 yesterday:720; do
	found "history: retain on a terminal, answered '${answer%:*}'" 0 "^asked ${answer#*:}\$" "cp '$scratch/good/history.db' h.db" \
		"echo '${answer%:*}' | script -qec '$preheat_path history --db h.db --retain 1h' /dev/null >said
		grep -q 'Drop them? .y/N.' said && echo \"asked \$($kept)\""
done
refused 'history: --yes to nothing' 2 'history: --yes: found without --retain, where it has no effect' "cp '$scratch/good/history.db' h.db" \
	'preheat history --db h.db --yes'
refused 'history: hours of a stretch' 2 'history: --from: found beside --hours, where it has no effect' "cp '$scratch/good/history.db' h.db" \
	'preheat history --db h.db --hours --from -1h'

refused 'history: moves of a group' 2 '--pool, --from, --to, --number' "cp '$scratch/good/history.db' h.db" \
	'preheat history --db h.db --moves --group g5'
found 'history: a share goes over to another rule, after a move of before' 0 '^13:20:00  sleep,14:00:00  rule it sleeps$' "cp '$scratch/good/history.db' h.db" \
	'sqlite3 h.db "INSERT INTO engine_move (uid, asked_at, pod, pool, share, slot, is_wake, why, tick, term, outcome, took, ended_at)
		VALUES (\"u\", 48000000, \"llm/chat-1\", \"llm/chat\", \"llm/small\", \"gpu-7\", 0, \"idle\", 1, 1, \"done\", 900, 48000900);
		INSERT INTO share_choice VALUES (\"llm/small\", 40000000, 50000000, \"\", \"1\"), (\"llm/small\", 50400000, 50400000, \"it sleeps\", \"1\")"
	preheat history --db h.db --moves -o json | jq -r "map([.time[11:19], .node[0:0], .move, (.why | select(. == \"it sleeps\"))] | join(\" \")) | join(\",\")"'
found 'history: a share goes over to another rule, and the pool never moved' 0 '^rule: it sleeps$' \
	"cp '$scratch/good/history.db' h.db; sed 's/^spec:/spec:\\n  share: { name: small }/' '$example/pool.yaml' >p.yaml" \
	'sqlite3 h.db "DELETE FROM manifest_text; UPDATE manifest SET text = CAST(readfile(\"p.yaml\") AS TEXT);
		INSERT INTO share_choice VALUES (\"llm/small\", 40000000, 50000000, \"\", \"1\"),
			(\"llm/small\", 50400000, 50400000, \"it sleeps\", \"1\"), (\"llm/other\", 50400000, 50400000, \"not ours\", \"1\")"
	preheat history --db h.db --moves --pool chat -o json | jq -r "map(\"\(.move): \(.why)\") | join(\",\")"; [ ${PIPESTATUS[0]} = 0 ] || exit 1
	[ -z "$(preheat history --db h.db --moves --pool chat 2>&1 >/dev/null)" ]'
found 'history: moves without a share' 0 'only pools with spec.share' "cp '$scratch/good/history.db' h.db" \
	'preheat history --db h.db --moves 2>&1'
refused 'history: launches of a pool' 2 '--group' "cp '$scratch/good/history.db' h.db" \
	'preheat history --db h.db --launches --pool chat'
found 'history: launches of a simulation' 0 'simulation' "cp '$scratch/good/history.db' h.db" \
	'preheat history --db h.db --launches 2>&1'
found 'history: launches' 0 '7,g5,remove,,i-1 i-2,throttled,1500' "cp '$scratch/good/history.db' h.db; sqlite3 h.db \
	\"INSERT INTO launch VALUES ('t', 'g5', 2, 0, 'i-1' || char(10) || 'i-2', 7, 3, 1704067200000, 'throttled', 1704067201500, '')\"" \
	'preheat history --db h.db --launches -o csv'

found 'history: a reader that leaves early' 0 '^141 0$' "cp '$scratch/good/history.db' h.db" \
	'preheat history --db h.db --all --number 100000 -o json 2>said | head -1 >/dev/null; echo "${PIPESTATUS[0]} $(wc -c <said)"'
if [ -w /dev/full ]; then
	refused 'history: on a full disk' 3 'standard output.*space' "cp '$scratch/good/history.db' h.db" \
		'preheat history --db h.db --all --number 100000 -o json >/dev/full'
fi

# Machines and GPUs are counted as simulate counted them, not as replicas: eight fit a node here.
found 'replay: with the same manifest, nodes of eight GPUs' 0 '^alike$' \
	'sed -E "s/gpusPerNode: 1\b/gpusPerNode: 8/; s/maxSequences: [0-9]+/maxSequences: 10/" "$example/pool.yaml" >p.yaml
	preheat simulate --draws 1 -f p.yaml --trace "$scratch/good.csv" --out out >/dev/null 2>&1' \
	'preheat replay --db out --with p.yaml -o csv >with.csv
	awk -F, -v starts="$(grep -m1 -oE "\"starts\": *[0-9]+" out/summary.json | grep -oE "[0-9]+")" \
		-v hours="$(grep -m1 -oE "\"gpu_hours\": *[0-9.]+" out/summary.json | grep -oE "[0-9.]+$")" \
		"\$2 == \"machines started\" { m = \$3 } \$2 == \"GPU hours\" { h = \$3 }
		END { print (m == starts && m > 0 && h > hours * .97 && h < hours * 1.03) ? \"alike\" : m \" \" starts \" \" h \" \" hours }" with.csv'

# Another objective, budget or size in place of a manifest.
copied="cp '$scratch/good/history.db' history.db"
refused 'replay: an objective that is none' 2 "replay: --objective: found '2x,99%'; allowed: a queue wait" "$copied" \
	'preheat replay --objective 2x,99%'
refused 'replay: an objective of no pool' 2 "replay: --objective: no pool 'other' in the manifest" "$copied" \
	'preheat replay --objective other=2s,99%'
refused 'replay: no budget' 2 "replay: --budget: found '0'; allowed: dollars" "$copied" 'preheat replay --budget 0'
refused 'replay: half a replica' 2 "replay: --max: found '1.5'; allowed: replicas" "$copied" 'preheat replay --max 1.5'
refused 'replay: no cost' 2 "replay: --violation-cost: found ''; allowed: a text" "$copied" \
	"preheat replay --violation-cost ''"
refused 'replay: a manifest and a size' 2 'replay: --with brings a whole manifest' "$copied" 'preheat replay --with x --max 3'
found 'replay: with its own attainment, nothing differs' 0 '^0$' "$copied" \
	'preheat replay --objective 99% -o csv | awk -F, "NR > 1 && \$NF != 0 { n++ } END { print n + 0 }"'
found 'replay: the model knows what came before' 0 '^chat,dollars,1[.]25,1[.]2[4-6],' "$copied" \
	'preheat replay --from -30m --objective 95% -o csv'
found 'replay: was and would the objective be met' 0 '^chat +objective +(met|missed) +(met|missed)(, ./5)? +(met|missed)(, ./5)? +-$' "$copied" \
	'preheat replay --objective 95% | grep " objective "'
found 'replay: what may be late' 0 '^chat,"late allowed, %",1.000,1.000,5.000,4.000$' "$copied" \
	'preheat replay --objective 95% -o csv | grep allowed'
found 'replay: the price that explain has, and whether it agrees' 0 'chat: explain --full prices this objective at [$][0-9.]+,' "$copied" \
	'preheat replay --objective 95%'
found 'replay: of another wait there is no such price' 0 '^0$' "$copied" \
	'preheat replay --objective 9s,95% -o json | grep -c "shadows.*with\":[0-9]"; true'
found 'replay: progress for programs' 0 '^[1-9][0-9]* 0$' "$copied" 'preheat replay --objective 2s,99% --progress -o csv 2>p >o
	echo "$(grep -cE "^[{]\"progress\":[0-9.]+[}]$" p) $(grep -cvE "^[{]\"progress\":[0-9.]+[}]$" p)"'

# The page and the API over a history; what is served is tested in tests/web.
refused 'view: no such file' 2 'view: nothing.db: no such file' : 'preheat view nothing.db'
refused 'view: no history' 2 'view: x.db: ' 'echo hello >x.db' 'preheat view x.db'
refused 'view: two of them' 2 "view: found 'b'; allowed: one history" : 'preheat view a b'
refused 'view: an address that others reach' 2 'view: --listen: .*not a loopback address' "$copied" \
	'preheat view history.db --listen 0.0.0.0:0'
refused 'view: an address that is none' 2 'view: --listen: ' "$copied" 'preheat view history.db --listen here'
found 'view: ends with 0 when it is told to' 0 '^http://127.0.0.1:[0-9]+/ 0$' "$copied" \
	'"$preheat_path" view history.db --listen 127.0.0.1:0 >said & pid=$!
	until [ -s said ]; do sleep 0.1; done; kill -INT $pid; wait $pid; echo "$(head -1 said | cut -d" " -f2) $?"'

# Moments as people say them, and what happened then.
found 'explain: a time of the day' 0 '^chat, 2024-01-01 01:12:00 .*, tick 287$' "$copied" \
	'preheat explain --utc --at 1:12 | head -1'
found 'explain: a date and minutes' 0 '^chat, 2024-01-01 01:12:00 .*, tick 287$' "$copied" \
	"preheat explain --utc --at '2024-01-01 01:12' | head -1"
found 'explain: ten lines at most' 0 '^([1-9]|10)$' "$copied" 'COLUMNS=80 preheat explain --largest | wc -l'
found 'explain: all of it' 0 '^Self-test' "$copied" 'preheat explain --largest --full'
found 'explain: the price of each objective is a table' 0 '^ +5[.]00 % +[$][0-9.]+ +[$][0-9.]+ +[0-9.]+ +[0-9.]+ % *$' "$copied" \
	'preheat explain --full | sed -n "/^What each objective/,\$p"'
found 'explain: the objective in force is marked in it' 0 '^ +1[.]00 % .* yours$' "$copied" 'preheat explain --full'
refused 'explain: yesterday was before' 2 'nothing was decided yet' "$copied" "preheat explain --utc --at 'yesterday 1:12'"
for bad in 25:00 3:60 3: :12 3:1x '3:12:61' 'tomorrow 3:12' 'yesterday'; do
	refused "explain: no time: $bad" 2 "--at: found '$bad'; allowed: a time such as" "$copied" "preheat explain --at '$bad'"
done
found 'explain: after the end of the record' 0 '^Note: --at 2031-01-01T00:00:00Z is after the end of this record; its last decision is of 20[0-9: -]+ UTC[.]$' "$copied" \
	'preheat explain --utc --at 2031-01-01T00:00:00Z 2>&1'
found 'explain: the end of the record' 1 '^0$' "$copied" \
	'preheat explain --utc --at -0s 2>&1 | grep -c "^Note"'
refused 'history copy: no such folder' 2 "copy: --target: found 'no/such/h.db', but there is no folder no/such; do: make it" "$copied" \
	'preheat history copy --target no/such/h.db'
refused 'history copy: into a file as if it were a folder' 2 "there is no folder history.db" "$copied" 'preheat history copy --target history.db/h.db'
for folder in . there/; do
	refused "history copy: a folder, $folder" 2 "found '$folder', which names a folder; do: name a file in it" "$copied" "preheat history copy --target $folder"
done
burst='printf "t_s,n_req,prompt_tokens,output_tokens\n0,600,600000,120000\n" >t.csv
	for i in $(seq 1 119); do [ "$i" = 60 ] && n=40000 || n=600; printf "%d,%d,%d,%d\n" $((i * 60)) $n $((n * 1000)) $((n * 200)); done >>t.csv
	preheat simulate -f "$example/pool.yaml" --trace t.csv --out out >/dev/null 2>&1'
found 'incidents: a burst' 0 '^chat,2024-01-01T01:0[0-9:]*Z,2024-01-01T01:[0-9:]*Z,[0-9.]+,[0-9]{4,},.*,[0-9]+$' "$burst" 'preheat incidents --db out --from +5m -o csv'
found 'incidents: the worst of it is explained' 0 '^chat, 2024-01-01 01:' "$burst" \
	'preheat explain --utc --db out --tick "$(preheat incidents --db out --from +5m -o csv | tail -1 | sed "s/.*,//")"'
found 'incidents: fit 80 columns' 0 '^chat +2024-01-01 01:0.* cold start of [0-9ms]+ in g5$' "$burst" \
	'preheat incidents --utc --db out --from +5m >o; ! grep -E ".{81}" o; cat o'
found 'incidents: what to ask next explains' 0 '^chat, 2024-01-01 01:' "$burst" \
	'eval "preheat $(preheat incidents --utc --db out --from +5m | sed -n "s/.*: [^ ]*preheat explain/explain/p")"'
found 'incidents: programs read them' 0 '^starting$' "$burst" \
	'preheat incidents --db out --from +5m -o json | python3 -c "import json, sys; print(json.load(sys.stdin)[0][\"cause\"])"'
found 'incidents: none' 0 'No incidents: ' "$copied" 'preheat incidents --from -1m'
refused 'incidents: no such pool' 2 'nobody' "$copied" 'preheat incidents --pool nobody'
refused 'incidents: no stretch' 2 'later than --to|no tick' "$copied" 'preheat incidents --from -1m --to -2m'
