#!/usr/bin/env bash
# The client against a real API server: a rig of its own, an identity without rights, the test program.
# Usage: tests/live/run.sh PROGRAM. Exit code 77 with the reason where no servers can be had.
set -euo pipefail
rooms=$(cd "$(dirname "$0")/../rig" && pwd)
export RIG_SH=$rooms/rig.sh

if [ -z "${RIG_DIR:-}" ]; then
	exec "$rooms/with_rig.sh" "$0" "$@"
fi
kubectl create namespace live >/dev/null
kubectl -n live create serviceaccount nobody >/dev/null
export NOBODY=$RIG_DIR/nobody
"$rooms/kubeconfig_for.sh" live nobody >"$NOBODY"
"$1"
