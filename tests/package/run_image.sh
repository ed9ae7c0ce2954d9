#!/usr/bin/env bash
# Usage: tests/rig/with_rig.sh tests/package/run_image.sh IMAGE; IMAGE is mounted as image.sh does it.
set -euo pipefail
image=$1
cd "$(dirname "$0")/../.."
state=$image/var/lib/preheat
tests/rig/apply_crd.sh
kubectl config view --raw --flatten >"$state/kubeconfig"
chown 65532:65532 "$state/kubeconfig"
sed 's|provider: simulated|external: { label: gpu, value: g5 }|; /standby:/d' examples/first-try/pool.yaml >"$state/pool.yaml"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

env -i PATH="$PATH" chroot --userspec=65532:65532 --groups= "$image" /usr/bin/preheat run --dry-run --no-election --interval 1s \
	-f /var/lib/preheat/pool.yaml --db /var/lib/preheat/run.db --kubeconfig /var/lib/preheat/kubeconfig \
	--listen "127.0.0.1:$port" --log-format json >"$RIG_DIR/run.log" 2>&1 &
preheat=$!
trap 'kill $preheat 2>/dev/null || true' EXIT

ticks() {
	curl -sf --max-time 5 "http://127.0.0.1:$port/metrics" | sed -n 's/^preheat_ticks_total\(.*\) //p' | head -n 1
}

for ((i = 0; i < 600; i++)); do
	said=$(ticks || true)
	[ "${said:-0}" = 0 ] || break
	kill -0 $preheat 2>/dev/null || break
	read -rt 0.2 <> <(:) || :
done
[ "${said:-0}" != 0 ] || { tail -n 20 "$RIG_DIR/run.log"; echo "FAILED: it decides nothing"; exit 1; }
kill -TERM $preheat
status=0
wait $preheat || status=$?
trap - EXIT
[ $status -eq 0 ] || { tail -n 20 "$RIG_DIR/run.log"; echo "FAILED: stopped, it ends with $status"; exit 1; }
echo "-- the controller decided beside a control plane, and ended when it was told"
