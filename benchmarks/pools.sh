#!/usr/bin/env bash
# Memory and the time of a tick by number of pools, each with a node group of its own, and what a change of one of them
# costs where they are WarmPools of the API server: preheat run --dry-run, on a rig of its own.
# Usage: benchmarks/pools.sh [POOLS...]; default: 1 10 100 1000 5000. PREHEAT=... for another binary; CHANGED=... for
# another number of pools of which one changes, 0 for none; default: 1000.
# A chart of the first table: benchmarks/pools.sh | docs/images/draw.py pools
set -euo pipefail
cd "$(dirname "$0")/.."
preheat=$(realpath "${PREHEAT:-build/release/preheat}")

pool_manifests() {
	local i
	for ((i = 0; i < $1; i++)); do
		cat <<-END
			---
			apiVersion: preheat.dev/v1alpha1
			kind: WarmPool
			metadata: { name: pool-$i, namespace: team-$((i % 40)) }
			spec:
			  objective: { queueWait: 2s, attainment: 99% }
			  workload: { selector: { matchLabels: { app: app-$i } }, gpusPerReplica: 1 }
			  nodeGroups:
			    - { name: g-$i, external: { label: group, value: g-$i }, gpusPerNode: 1, pricePerHour: 1.2, max: 8 }
		END
	done
}

# measure POOLS FOLDER: after two ticks, and over the next four
measure() {
	local pools=$1 dir=$2 pid url before after
	url=$(free_address)
	pool_manifests "$pools" >"$dir/pools.yaml"
	"$preheat" run -f "$dir/pools.yaml" --dry-run --no-election --db "$dir/history.db" --interval 5s \
		--listen "$url" --web-listen off --log-format json >"$dir/log" 2>&1 &
	pid=$!
	until [ "$(ticks "$url")" -ge 2 ]; do
		kill -0 "$pid" || { cat "$dir/log" >&2; return 1; }
		sleep 1
	done
	before=$(tick_seconds "$url")
	until [ "$(ticks "$url")" -ge 6 ]; do sleep 1; done
	after=$(tick_seconds "$url")
	awk -v n="$pools" -v b="$before" -v a="$after" '/^VmRSS/ { kib = $2 }
		END { printf "| %s | %.0f | %.0f | %.1f |\n", n, kib / 1024, kib / n, (a - b) / 4 * 1000 }' "/proc/$pid/status"
	kill "$pid"
	wait "$pid" || true
}

# changes POOLS FOLDER: CPU time that changes of one pool, one after the other, cost beyond as long without any
changes() {
	local pools=$1 dir=$2 rounds=10 each=5 pid url idle=0 busy=0 begun i
	url=$(free_address)
	tests/rig/apply_crd.sh
	for ((i = 0; i < 40; i++)); do kubectl create namespace "team-$i" >/dev/null; done
	pool_manifests "$pools" >"$dir/pools.yaml"
	kubectl create -f "$dir/pools.yaml" >/dev/null
	"$preheat" run --watch-pools --dry-run --no-election --db "$dir/history.db" --interval 1s \
		--listen "$url" --web-listen off --log-format json >"$dir/log" 2>&1 &
	pid=$!
	until [ "$(ticks "$url")" -ge 2 ]; do
		kill -0 "$pid" || { cat "$dir/log" >&2; return 1; }
		sleep 1
	done
	for ((i = 0; i < rounds; i++)); do # by turns, as the machine does other things; from tick to tick
		change_pool "$((i * (each + 1)))" 1 "$dir/log"
		begun=${EPOCHREALTIME/./}
		busy=$((busy + $(cpu_of "$pid" change_pool "$((i * (each + 1) + 1))" "$each" "$dir/log")))
		idle=$((idle + $(cpu_of "$pid" sleep $(((${EPOCHREALTIME/./} - begun) / 1000))e-3)))
	done
	printf '\n| pools | a change, ms of CPU |\n|---|---|\n| %s | %s |\n' "$pools" \
		"$(awk -v busy="$busy" -v idle="$idle" -v n=$((rounds * each)) 'BEGIN { printf "%.1f", (busy - idle) / n }')"
	kill "$pid"
	wait "$pid" || true
}

# change_pool BEFORE TIMES LOG: each change is in force before the next; ends well after the tick that takes up the last
change_pool() {
	local i
	for ((i = $1 + 1; i <= $1 + $2; i++)); do
		kubectl patch warmpool pool-7 -n team-7 --type merge -p "{\"spec\":{\"scaleDown\":{\"after\":\"$((60 + i))s\"}}}" >/dev/null
		until [ "$(grep -c manifest-in-force "$3")" -ge "$i" ]; do sleep 0.1; done
	done
	sleep 0.3
}

# cpu_of PID COMMAND...: milliseconds of CPU that the process takes meanwhile
cpu_of() {
	local pid=$1 before
	shift
	before=$(cpu "$pid")
	"$@"
	echo $(($(cpu "$pid") - before))
}

cpu() {
	awk '{ sum += $1 } END { printf "%d\n", sum / 1000000 }' /proc/"$1"/task/*/schedstat
}

free_address() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print("127.0.0.1:%d" % s.getsockname()[1])'
}

metric() {
	{ curl -s "$1/metrics" || true; } | awk -v name="$2" '$1 == name { sum += $2 } END { printf "%.9f", sum }'
}

ticks() {
	metric "$1" preheat_tick_duration_seconds_count | cut -d. -f1
}

tick_seconds() {
	metric "$1" preheat_tick_duration_seconds_sum
}

if [ -z "${KUBECONFIG:-}" ]; then
	exec tests/rig/with_rig.sh "$0" "$@"
fi
[ $# -gt 0 ] || set -- 1 10 100 1000 5000
printf '| pools | resident, MiB | KiB a pool | a tick, ms |\n|---|---|---|---|\n'
for pools; do
	dir=$(mktemp -d)
	measure "$pools" "$dir"
	rm -rf "$dir"
done
if [ "${CHANGED:=1000}" -gt 0 ]; then
	dir=$(mktemp -d)
	changes "$CHANGED" "$dir"
	rm -rf "$dir"
fi
