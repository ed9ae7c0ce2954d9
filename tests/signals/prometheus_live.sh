#!/usr/bin/env bash
# A real Prometheus server reads modelled servers; what it says is compared with what they say.
#   prometheus_live.sh PROGRAM MAKER   build/.../prometheus_live, and build/.../metrics_test, which prints our own page
# Skips (exit 77) without prometheus.
set -euo pipefail

if ! command -v prometheus >/dev/null; then
	echo "SKIPPED: no prometheus (apt-get install prometheus)"
	exit 77
fi
folder=$(mktemp -d)
server='' program=''
# shellcheck disable=SC2317  # the trap calls it
leave() {
	for pid in $server $program; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$folder"
}
trap leave EXIT

cp "$(dirname "$0")"/pages/*.prom "$folder"
"$2" --sample >"$folder/preheat.prom"
"$1" "$folder" &
program=$!
until [ -s "$folder/port" ]; do
	kill -0 "$program" 2>/dev/null || { echo "FAILED: $1 ended early"; exit 1; }
	sleep 0.05
done
prometheus --config.file="$folder/prometheus.yml" --storage.tsdb.path="$folder/data" \
	--web.listen-address="127.0.0.1:$(cat "$folder/port")" --log.level=warn >"$folder/log" 2>&1 &
server=$!
status=0
wait "$program" || status=$?
program=''
[ $status -eq 0 ] || tail -20 "$folder/log"
exit $status
