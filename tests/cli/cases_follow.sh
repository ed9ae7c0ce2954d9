# shellcheck shell=bash disable=SC2016,SC2154
# history --follow while another process writes, thins, replaces; history export.

whole=$scratch/followed/history.db cut_at=300
simulated followed --shape diurnal,bursts --length 3h --rate 20

# A history of which the first ticks are there.
half="cp '$whole' h.db; sqlite3 h.db 'DELETE FROM decision WHERE tick > $cut_at; DELETE FROM tick WHERE id > $cut_at;'"

# grow N: writes the next N ticks, as a controller would.
grow() {
	sqlite3 h.db "ATTACH '$whole' AS w; BEGIN;
		INSERT INTO decision SELECT d.* FROM w.decision d, (SELECT max(id) AS n FROM main.tick) WHERE d.tick > n AND d.tick <= n + $1;
		INSERT INTO tick SELECT t.* FROM w.tick t, (SELECT max(id) AS n FROM main.tick) WHERE t.id > n AND t.id <= n + $1;
		COMMIT;"
}

# seen PATTERN FILE: waits until a line of it matches.
seen() {
	for _ in $(seq 600); do
		! grep -qE -- "$1" "$2" || return 0
		sleep 0.05
	done
	echo "never seen in $2: $1"
	return 1
}

# followed OPTION...: follows in the background.
followed() {
	set -m
	"$preheat_path" history --db h.db --follow "$@" >out 2>err &
	follower=$!
}

ended() {
	kill -INT "$follower"
	wait "$follower"
}

found 'follow: what is written comes, and SIGINT ends it' 0 '^once$' "$half" "followed --all --number 2 -o json && seen '\"tick\": $cut_at,' out && grow 3 && seen '\"tick\": $((cut_at + 3)),' out && grow 1 &&
	seen '\"tick\": $((cut_at + 4)),' out && ended && [ \$(wc -l <out) -eq 6 ] && [ ! -s err ] && echo once"
found 'follow: SIGTERM, too' 0 '^done$' "$half" "followed --all --number 1 && seen 2024 out && kill -TERM \$follower && wait \$follower && echo done"
found 'follow: csv has its header once' 0 '^1$' "$half" "followed --all --number 2 -o csv && seen ',$cut_at,' out && grow 2 && seen ',$((cut_at + 2)),' out && ended && grep -c '^time,tick' out"
found 'follow: a table has its header once' 0 '^1 6$' "$half" "followed --all --number 2 -o wide && seen ' $cut_at  ' out && grow 3 && seen ' $((cut_at + 3))  ' out && ended && echo \$(grep -c '^TIME' out) \$(wc -l <out)"
found 'follow: filters hold' 0 '^same$' "$half" "followed --number 1 -o json && seen tick out && grow 400 && last=\$(preheat history --db h.db --number 1 -o csv | tail -1 | cut -d, -f2) &&
	seen \"\\\"tick\\\": \$last,\" out && ended && preheat history --db h.db --number \$(wc -l <out) -o csv | sed 1d | cut -d, -f2 >want &&
	sed 's/.*\"tick\": \\([0-9]*\\),.*/\\1/' out | diff - want && echo same"
found 'follow: thinned meanwhile' 0 '^goes on$' "$half" "followed --all --number 1 -o json && seen tick out && preheat history --db h.db --retain 1m --yes >/dev/null && grow 2 && seen '\"tick\": $((cut_at + 2)),' out && ended && echo goes on"
found 'follow: set aside for another' 0 'h\.db: it is gone; waiting' "$half" "followed --all --number 1 -o json && seen tick out && mv h.db h.db.1 && seen gone err && cp '$whole' new && mv new h.db &&
	seen '\"tick\": $((cut_at + 9)),' out && ended && [ \$(sort out | uniq -d | wc -l) -eq 0 ] && cat err"
found 'follow: replaced at once' 0 'another file is there now' "$half" "followed --all --number 1 -o json && seen tick out && cp '$whole' new && mv new h.db && seen '\"tick\": $((cut_at + 9)),' out && ended && cat err"
found 'follow: ends with its reader' 0 '^141$' "$half" "{ \"\$preheat_path\" history --db h.db --follow --all --number 1; echo \$? >code; } | head -1 >/dev/null; cat code"
refused 'follow: to a time' 2 '--follow.*without --to' "$half" 'preheat history --db h.db --follow --to now'

good="cp '$whole' h.db"
found 'export: every day, whole' 0 '2024-01-01 .* written' "$good" \
	'preheat history export --db h.db --out days; ls days/day=2024-01-01/decisions.csv days/schema.json'
found 'export: a day that was not over is written again' 0 '"over": false, "state": "written"' "$good" \
	'preheat history export --db h.db --out days >/dev/null; preheat history export --db h.db --out days -o json'
found 'export: a day that was over is left alone' 0 'there already' "$good" \
	'preheat history export --db h.db --out days >/dev/null; sed -i s/false/true/ days/day=*/day.json; preheat history export --db h.db --out days'
found 'export: what the history has less of is kept' 0 'kept: the history has less' "$good" \
	'preheat history export --db h.db --out days >/dev/null; preheat history --db h.db --retain 10m --yes >/dev/null; preheat history export --db h.db --out days'
found 'export: as many rows as decisions' 0 '^720 720$' "$good" \
	'preheat history export --db h.db --out days --gzip >/dev/null; preheat history export --db h.db --out - --format jsonl >all
	echo $(zcat days/day=*/decisions.csv.gz | sed 1d | wc -l) $(wc -l <all)'
found 'export: nothing half is left behind' 0 '^day=2024-01-01 schema.json$' "$good" \
	'mkdir -p days/.day=2024-01-01.partial; echo x >days/.day=2024-01-01.partial/decisions.csv; preheat history export --db h.db --out days >/dev/null; echo $(ls -A days)'
found 'export: the schema names what is written' 0 '^same$' "$good" \
	'for t in decisions group_decisions costs launches; do preheat history export --db h.db --out - --table $t | head -1; done >heads
	preheat history export --print-schema | python3 -B -c "import json,sys
for t in json.load(sys.stdin)[\"tables\"]: print(\",\".join(c[\"name\"] for c in t[\"columns\"]))" | diff heads - && echo same'
refused 'export: nowhere' 2 'out is missing' "$good" 'preheat history export --db h.db'
refused 'export: into what is no export' 2 'day=2024-01-01: is there.*--force' "$good; mkdir -p days/day=2024-01-01" \
	'preheat history export --db h.db --out days; code=$?; rm -f days/schema.json; exit $code'
refused 'export: of days that are not there' 2 'goes from 2024-01-01 to 2024-01-01' "$good" \
	'preheat history export --db h.db --out days --from 2023-01-01 --to 2023-01-02'
refused 'export: a stream of gzip' 2 'without --force and --gzip' "$good" 'preheat history export --db h.db --out - --gzip'
