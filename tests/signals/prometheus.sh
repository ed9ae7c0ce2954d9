# shellcheck shell=bash
# A real Prometheus over samples that are made up. Sourced; the folder of the moment becomes a temporary one, gone at exit.

# scratch_beside_prometheus: skips (exit 77) without prometheus.
scratch_beside_prometheus() {
	if ! command -v prometheus >/dev/null || ! command -v promtool >/dev/null; then
		echo "SKIPPED: no prometheus (apt-get install prometheus)"
		exit 77
	fi
	folder=$(mktemp -d)
	server=''
	trap leave EXIT
	cd "$folder" || exit 3
}

leave() {
	[ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true
	rm -rf "$folder"
}

# serve_samples [OPTION of prometheus...]: metrics.om, in the OpenMetrics format, at 127.0.0.1:$port once it returns.
serve_samples() {
	promtool tsdb create-blocks-from openmetrics metrics.om data >/dev/null 2>&1 ||
		{ echo "promtool took no blocks"; exit 3; }
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	echo 'global: { scrape_interval: 15s }' >prometheus.yml
	prometheus --config.file=prometheus.yml --storage.tsdb.path=data --web.listen-address="127.0.0.1:$port" "$@" \
		--log.level=error >log 2>&1 &
	server=$!
	for _ in $(seq 300); do
		! curl -sf "127.0.0.1:$port/-/ready" >/dev/null || return 0
		kill -0 "$server" 2>/dev/null || break
		sleep 0.1
	done
	cat log
	exit 3
}
