#!/usr/bin/env bash
# The live controller beside a rig with 5,000 nodes and 50,000 pods: first LIST, memory, CPU; and start to first decision on
# a small cluster. Usage: benchmarks/live.sh [NODES PODS]. Needs Go for the rig, and some 12 GB of memory at that size.
set -euo pipefail
cd "$(dirname "$0")/.."
nodes=${1:-5000} pods=${2:-50000} preheat=${PREHEAT:-build/release/preheat}
[ -x "$preheat" ] || { echo "benchmarks/live.sh: no $preheat: build the preset release first" >&2; exit 3; }
machines=$(tests/rig/build_machines.sh)
exec tests/rig/with_rig.sh --node-grace 24h python3 -B benchmarks/live.py --preheat "$preheat" --machines "$machines" \
	--nodes "$nodes" --pods "$pods"
