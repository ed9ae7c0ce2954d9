#!/usr/bin/env bash
# Litestream copies a history that is written to an object store (moto speaks S3); the volume is lost; what is restored is
# the history up to the last copy, can be asked and replayed, and is gone on with.
#   litestream_test.sh PREHEAT GROW    build/.../preheat and build/.../history_grow
# Skips (exit 77) without Go, gcc or python3 with venv; with CI=true that is a failure.
set -euo pipefail
preheat=$(realpath "$1") grow=$(realpath "$2")
cd "$(dirname "$0")/../.."
. tests/clouds/aws/cloud.sh

litestream=$(tests/backup/build_litestream.sh) || { [ $? -ne 77 ] || skip "no Litestream"; exit 3; }
packages=$(python_packages)
root=$PWD
folder=$(mktemp -d)
pids=()
# shellcheck disable=SC2317  # the trap calls it
leave() {
	kill "${pids[@]}" 2>/dev/null || true
	wait || true
	rm -rf "$folder"
}
trap leave EXIT
fail() {
	echo "FAILED: $*"
	tail -n 5 "$folder"/*.log
	exit 1
}
# until_true WHAT COMMAND...
until_true() {
	local what=$1
	shift
	for _ in $(seq 6000); do
		! "$@" 2>/dev/null || return 0
		sleep 0.02
	done
	fail "$what: not within two minutes"
}

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$packages/venv/bin/moto_server" -H 127.0.0.1 -p "$port" >"$folder/moto.log" 2>&1 &
pids+=($!)
until_true 'moto answers' curl -sf -o /dev/null "http://127.0.0.1:$port/moto-api/"
export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_REGION=us-east-1
curl -sf -X PUT "http://127.0.0.1:$port/histories" >/dev/null

cd "$folder"
example=$root/examples/first-try
"$preheat" simulate --draws 1 -f "$example/pool.yaml" --trace "$example/requests.csv.gz" --world "$example/world.yaml" --out week >/dev/null
cat >litestream.yml <<END
dbs:
  - path: $folder/volume/history.db
    replicas:
      - { type: s3, bucket: histories, path: prod, endpoint: "http://127.0.0.1:$port", force-path-style: true, sync-interval: 100ms }
END
mkdir volume
mkfifo ask
"$grow" week/history.db volume/history.db 200 <ask >written.log 2>grow.log &
writer=$!
pids+=("$writer")
exec 9>ask
until_true 'the writer is ready' grep -q ready written.log
"$litestream" replicate -config litestream.yml >litestream.log 2>&1 &
copier=$!
pids+=("$copier")
has_lines() { [ "$(wc -l <written.log)" -ge "$1" ]; }
for i in $(seq 100); do
	echo >&9
	until_true "tick $i is written" has_lines $((i + 1))
done
newest=$(tail -1 written.log)
restore() {
	rm -f "$1" && "$litestream" restore -config litestream.yml -o "$1" volume/history.db >restore.log 2>&1
}
holds() { restore "$2" && [ "$(sqlite3 "$2" 'SELECT max(id) FROM tick')" = "$1" ]; }
until_true "tick $newest is in the object store" holds "$newest" seen.db

# The node goes with its volume.
kill -9 "$writer" "$copier"
rm -rf volume
restore back.db || fail 'nothing to restore'
[ "$(sqlite3 back.db 'PRAGMA integrity_check')" = ok ] || fail 'what was restored is damaged'
[ "$(sqlite3 back.db 'SELECT max(id) FROM tick')" = "$newest" ] || fail "tick $newest is missing"
"$preheat" replay --db back.db | grep -q ' 0 differ' || fail 'what was restored does not replay'
"$preheat" explain --db week/history.db --tick "$newest" >a.txt
"$preheat" explain --db back.db --tick "$newest" >b.txt
cmp a.txt b.txt || fail 'it explains something else'
"$preheat" history copy --db week/history.db --target back.db >/dev/null || fail 'it cannot be gone on with'
"$preheat" replay --db back.db | grep -q '^5760 ticks replayed, 0 differ' || fail 'gone on with, it does not replay'
echo "restored from an object store after tick $newest, replayed and gone on with"
