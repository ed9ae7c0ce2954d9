#!/usr/bin/env bash
# Histories of several clusters in one PostgreSQL: each answers as its file does, together they answer for the fleet.
# Usage: tests/postgres/central_test.sh PREHEAT. Exit code 77 with the reason where there is no PostgreSQL.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
preheat=$(realpath "$1")
[ -n "${POSTGRES_PORT:-}" ] || exec "$here/with_postgres.sh" "$here/central_test.sh" "$preheat"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
failed=0 checks=0
server=postgresql://admin@127.0.0.1:$POSTGRES_PORT/fleet
sql() { "$POSTGRES_BIN/psql" -X -q -A -t -v ON_ERROR_STOP=1 "$@"; }

# verdict NAME 1|0 SAID
verdict() {
	checks=$((checks + 1))
	[ "$2" -ne 1 ] || return 0
	failed=$((failed + 1))
	printf 'FAILED: %s\n%s\n' "$1" "$3"
}
# is NAME WANTED FOUND
is() { verdict "$1" "$([ "$2" = "$3" ] && echo 1 || echo 0)" "wanted: $2
found:  $3"; }
# says NAME CODE PATTERN COMMAND...: ends with CODE and says PATTERN
says() {
	local name=$1 code=$2 pattern=$3 said status=0
	shift 3
	said=$("$@" 2>&1) || status=$?
	verdict "$name" "$([ $status -eq "$code" ] && grep -qE -- "$pattern" <<<"$said" && echo 1 || echo 0)" "exit $status: $said"
}
# same FILE ADDRESS VERB ARGUMENT...: the same answer from both, but for their names
same() {
	local file=$1 address=$2 shown
	shift 2
	shown=postgresql://127.0.0.1/fleet#${address#*#}
	"$preheat" "$1" --db "$file" "${@:2}" >a.txt 2>&1 || echo "exit $?" >>a.txt
	"$preheat" "$1" --db "$address" "${@:2}" >b.txt 2>&1 || echo "exit $?" >>b.txt
	verdict "$*" "$(sed "s|$shown|$file|g" b.txt | cmp -s a.txt - && echo 1 || echo 0)" "$(diff a.txt b.txt | head -5)"
}

sql "postgresql://admin@127.0.0.1:$POSTGRES_PORT/postgres" -c 'CREATE DATABASE fleet'
example=$root/examples/first-try
for seed in 1 2; do
	"$preheat" simulate --draws 1 -f "$example/pool.yaml" --trace "$example/requests.csv.gz" --world "$example/world.yaml" \
		--seed $seed --out "s$seed" >/dev/null
done
prod=$server#prod lab=$server#lab-1

says 'nothing is there yet' 2 "no history of a cluster 'prod'; there is: none yet" "$preheat" history --db "$prod"
says 'copied' 0 '5760 ticks copied, up to tick 5759' "$preheat" history copy --db s1/history.db --target "$prod"
says 'nothing is copied twice' 0 '0 ticks copied' "$preheat" history copy --db s1/history.db --target "$prod"
says 'a second cluster' 0 '#lab-1: 5760 ticks' "$preheat" history copy --db s2/history.db --target "$lab"

for cluster in "s1/history.db $prod" "s2/history.db $lab"; do
	for question in 'history --number 100' 'history -o csv' 'history --all -o csv' 'history --limit max' 'history --group g5' 'history --hours' \
		'history --launches' 'explain --largest' 'explain -o json' 'explain --at -2h' 'cost' 'cost --by label -o json' \
		'report -o json' 'replay' 'status -o json'; do
		# shellcheck disable=SC2086  # words
		same $cluster $question
	done
done
"$preheat" history copy --db "$lab" --target back.db >/dev/null
is 'there and back again' "$(sqlite3 s2/history.db 'SELECT * FROM decision; SELECT * FROM cost; SELECT id, at FROM tick' | sha256sum)" \
	"$(sqlite3 back.db 'SELECT * FROM decision; SELECT * FROM cost; SELECT id, at FROM tick' | sha256sum)"

is 'the fleet in one question' 'lab-1|5760 prod|5760' \
	"$(sql "$server" -c 'SELECT cluster, count(*) FROM fleet.decision GROUP BY 1 ORDER BY 1' | paste -sd' ')"
"$preheat" status --db "$server" -o json >fleet.json 2>/dev/null
is 'and by status' 'lab-1/chat prod/chat' "$(python3 -c 'import json; print(*(r["cluster"] + "/" + r["name"] for r in json.load(open("fleet.json"))))')"
says 'without a cluster' 2 "ends without the name of a cluster.*there is: lab-1, prod" "$preheat" history --db "$server"
says 'another cluster' 2 "no history of a cluster 'nowhere'; there is: lab-1, prod" "$preheat" explain --db "$server#nowhere"
says 'a name that is none' 2 "found '#Prod'.*allowed: .* lower-case letters" "$preheat" history copy --db s1/history.db --target "$server#Prod"
says 'not over the views' 2 "and not pg_.*fleet" "$preheat" history copy --db s1/history.db --target "$server#fleet"

says 'another history is not mixed in' 2 'not one of this history' "$preheat" history copy --db s2/history.db --target "$prod"
is 'and nothing changed' 5760 "$(sql "$server" -c 'SELECT count(*) FROM prod.decision')"
says 'but kept beside it on request' 0 'it is prod-1 now' "$preheat" history copy --db s2/history.db --target "$prod" --set-aside
same s1/history.db "$server#prod-1" explain --largest
same s2/history.db "$prod" explain --largest

# A copy that was cut off goes on where it stood.
sqlite3 s1/history.db "VACUUM INTO 'half.db'"
sqlite3 half.db 'DELETE FROM decision WHERE tick >= 3000; DELETE FROM tick WHERE id >= 3000; DELETE FROM checkpoint WHERE tick >= 3000'
"$preheat" history copy --db half.db --target "$server#half" >/dev/null
"$preheat" history copy --db s1/history.db --target "$server#ahead" >/dev/null
says 'from a follower that is behind' 0 ': 0 ticks copied' "$preheat" history copy --db half.db --target "$server#ahead"
says 'the rest of it' 0 ': 2760 ticks copied, up to tick 5759' "$preheat" history copy --db s1/history.db --target "$server#half"
same s1/history.db "$server#half" explain --largest
# One that is killed while it copies.
{ timeout -s KILL 0.05 "$preheat" history copy --db s1/history.db --target "$server#cut" || true; } >/dev/null 2>&1
says 'the rest after kill -9' 0 'up to tick 5759' "$preheat" history copy --db s1/history.db --target "$server#cut"
same s1/history.db "$server#cut" explain --largest

# Rights: a cluster's own user writes its own schema and no other, and the operator only reads.
sql "$server" >/dev/null <<END
CREATE ROLE edge LOGIN PASSWORD '$(cut -d: -f5 "$PGPASSFILE")';
CREATE SCHEMA edge AUTHORIZATION edge;
CREATE ROLE asks LOGIN PASSWORD '$(cut -d: -f5 "$PGPASSFILE")';
GRANT USAGE ON SCHEMA prod TO asks;
GRANT SELECT ON ALL TABLES IN SCHEMA prod TO asks;
END
edge=${server/admin@/edge@} asks=${server/admin@/asks@}
says 'its own' 0 'views of the schema fleet are as they were.*permission denied' "$preheat" history copy --db s1/history.db --target "$edge#edge"
says 'not another' 3 'may not use that schema' "$preheat" history copy --db s2/history.db --target "$edge#lab-1"
same s2/history.db "$asks#prod" explain --largest
"$preheat" history copy --db half.db --target "$server#part" >/dev/null
sql "$server" -c 'GRANT USAGE ON SCHEMA part TO asks; GRANT SELECT ON ALL TABLES IN SCHEMA part TO asks'
says 'reading gives no right to write' 3 'may not do that there' "$preheat" history copy --db s1/history.db --target "$asks#part"
says 'a wrong password, which is not shown' 3 'password authentication failed' env PGPASSFILE=/nowhere \
	"$preheat" history --db "postgresql://admin:verysecret@127.0.0.1:$POSTGRES_PORT/fleet#prod"
said=$(PGPASSFILE=/nowhere "$preheat" history --db "postgresql://admin:verysecret@127.0.0.1:$POSTGRES_PORT/fleet#prod" 2>&1 || true)
verdict 'no secret in it' "$(grep -q verysecret <<<"$said" && echo 0 || echo 1)" "$said"
says 'no such database' 3 'database "none" does not exist' "$preheat" history --db "${server/fleet/none}#prod"
says 'no server' 3 'cannot be reached' "$preheat" history --db 'postgresql://127.0.0.1:1/fleet#prod'
sql "$server" -c 'UPDATE prod.preheat_history SET version = 99'
says 'a newer one' 2 'written by a newer preheat \(version 99' "$preheat" history --db "$prod"
sql "$server" -c 'UPDATE prod.preheat_history SET version = 1'
says 'an older one' 2 'copy to it once with this program' "$preheat" history --db "$prod"
says 'is brought up to date' 0 'up to tick 5759' "$preheat" history copy --db s2/history.db --target "$prod"
same s2/history.db "$prod" explain --largest

# Following: what is appended comes; a server that was away is asked again; it ends when told.
sqlite3 s1/history.db "VACUUM INTO 'live.db'"
sqlite3 live.db 'DELETE FROM decision WHERE tick >= 5000; DELETE FROM tick WHERE id >= 5000; DELETE FROM checkpoint WHERE tick >= 5000'
"$preheat" history copy --db live.db --target "$server#live" --follow --every 50ms >follow.txt 2>&1 &
follower=$!
# until PATTERN: in what it printed
until_said() {
	for _ in $(seq 1200); do
		! grep -qE "$1" follow.txt || return 0
		sleep 0.05
	done
	verdict "it says $1" 0 "$(tail -3 follow.txt)"
}
until_said 'up to tick 4999'
says 'one writer' 3 'another preheat writes it' timeout 60 bash -c "until $preheat history copy --db live.db --target '$server#live' 2>&1 | grep 'another preheat'; do :; done; exit 3"
(cd / && $POSTGRES_CTL -m fast stop) >/dev/null
until_said 'tried again'
(cd / && $POSTGRES_CTL -l /dev/null start) >/dev/null
sqlite3 live.db "ATTACH 's1/history.db' AS whole; BEGIN; INSERT INTO tick SELECT * FROM whole.tick WHERE id >= 5000;
	INSERT INTO decision SELECT * FROM whole.decision WHERE tick >= 5000; COMMIT"
until_said 'up to tick 5759'
kill -TERM $follower
status=0
wait $follower || status=$?
is 'it ends by itself on SIGTERM' 0 $status
same s1/history.db "$server#live" explain --largest

printf 'central history: %d checks, %d failed\n' $checks $failed
[ $failed -eq 0 ]
