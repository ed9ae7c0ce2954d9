#!/usr/bin/env bash
# Alerts and dashboard: promtool's unit tests; the PrometheusRule is written from the plain files; every alert has its
# runbook; every metric that is asked for exists; a real Prometheus that reads our own page answers every panel.
#   monitoring_test.sh MAKER   MAKER --sample prints a page (build/.../metrics_test)
# Skips (exit 77) without promtool or prometheus; with CI=true that is a failure.
set -euo pipefail

maker=$(realpath "$1")
cd "$(dirname "$0")/../.."
for tool in promtool prometheus python3; do
	command -v $tool >/dev/null && continue
	echo "SKIPPED: no $tool (apt-get install prometheus python3)"
	[ "${CI:-}" != true ] || exit 1
	exit 77
done
folder=$(mktemp -d)
server='' pages=''
# shellcheck disable=SC2317  # the trap calls it
leave() {
	for pid in $server $pages; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$folder"
}
trap leave EXIT

promtool check rules deploy/alerts/*.rules.yaml >"$folder/rules" || { cat "$folder/rules"; exit 1; }
promtool test rules tests/deploy/alerts/*.test.yaml >"$folder/tests" 2>&1 || { cat "$folder/tests"; exit 1; }
deploy/alerts/prometheus_rule.sh | cmp - deploy/alerts/prometheus-rule.yaml ||
	{ echo "FAILED: deploy/alerts/prometheus_rule.sh >deploy/alerts/prometheus-rule.yaml"; exit 1; }

mkdir "$folder/pages"
"$maker" --sample >"$folder/pages/preheat"
cp tests/signals/pages/dcgm.prom "$folder/pages/dcgm"
: >"$folder/pages.log"
python3 -u -m http.server --bind 127.0.0.1 --directory "$folder/pages" 0 >>"$folder/pages.log" 2>&1 &
pages=$!
port_of() { sed -n 's/^Serving HTTP on 127.0.0.1 port \([0-9]*\).*/\1/p' "$folder/pages.log"; }
until [ -n "$(port_of)" ]; do
	kill -0 $pages || { cat "$folder/pages.log"; exit 1; }
	sleep 0.05
done
cat >"$folder/prometheus.yml" <<END
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [ "$PWD/deploy/alerts/*.rules.yaml" ]
scrape_configs:
  - { job_name: preheat, honor_labels: true, metrics_path: /preheat, static_configs: [ { targets: [ "127.0.0.1:$(port_of)" ] } ] }
  - { job_name: dcgm, honor_labels: true, metrics_path: /dcgm, static_configs: [ { targets: [ "127.0.0.1:$(port_of)" ] } ] }
END
listen=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
prometheus --config.file="$folder/prometheus.yml" --storage.tsdb.path="$folder/data" --web.listen-address="127.0.0.1:$listen" \
	--log.level=warn >"$folder/prometheus.log" 2>&1 &
server=$!
python3 -B tests/deploy/monitoring.py "http://127.0.0.1:$listen" || { tail -5 "$folder/prometheus.log"; exit 1; }
