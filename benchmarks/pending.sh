#!/usr/bin/env bash
# How long 100 pending GPU pods wait until machines that boot at once serve them: Preheat's default pool and a real Karpenter by
# turns, on one rig. Usage: benchmarks/pending.sh. Needs Go for the rig and for Karpenter.
set -euo pipefail
cd "$(dirname "$0")/.."
preheat=$(realpath "${PREHEAT:-build/release/preheat}") machines=$(tests/rig/build_machines.sh)
exec tests/rig/with_rig.sh --node-grace 1h python3 -B benchmarks/pending.py --preheat "$preheat" --machines "$machines" --speed 1
