#!/usr/bin/env bash
# Runs a command beside a PostgreSQL server of its own on loopback, which nobody else sees:
#   with_postgres.sh COMMAND [ARGUMENT...]     with POSTGRES_PORT, PGPASSFILE and the superuser "admin" set up
# Exit code 77 with the reason where there is none.
set -euo pipefail

bin=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -1) || true
if [ -z "$bin" ]; then
	echo "SKIPPED: no PostgreSQL (apt-get install postgresql)"
	[ "${CI:-}" != true ] || exit 1
	exit 77
fi
folder=$(mktemp -d)
# PostgreSQL does not run as root.
as=()
[ "$(id -u)" -ne 0 ] || { as=(setpriv --reuid=postgres --regid=postgres --clear-groups); chown postgres "$folder"; }
# shellcheck disable=SC2317  # the trap calls it
leave() {
	"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate -w stop >/dev/null 2>&1 || true
	rm -rf "$folder"
}
trap leave EXIT

cd /
password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
POSTGRES_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
PGPASSFILE=$folder/passwords
export POSTGRES_PORT PGPASSFILE
printf '127.0.0.1:*:*:*:%s\n' "$password" >"$PGPASSFILE"
printf '%s\n' "$password" >"$folder/password"
chmod 600 "$PGPASSFILE"
chmod 644 "$folder/password"
chmod 755 "$folder"
"${as[@]}" "$bin/initdb" -D "$folder/data" -U admin --auth=scram-sha-256 --pwfile="$folder/password" --no-sync >"$folder/initdb.log" 2>&1 ||
	{ cat "$folder/initdb.log"; exit 1; }
cat >>"$folder/data/postgresql.conf" <<END
port = $POSTGRES_PORT
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
END
"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -l "$folder/data/log" -w -t 120 start >/dev/null || { cat "$folder/data/log"; exit 1; }
export POSTGRES_BIN=$bin POSTGRES_CTL="${as[*]} $bin/pg_ctl -D $folder/data -w -t 120"
cd "$OLDPWD"
status=0
"$@" || status=$?
exit $status
