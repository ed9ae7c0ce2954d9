#!/usr/bin/env bash
# The model against a real API server, scheduler and controllers: a rig of its own, the test program.
# Usage: tests/live/model.sh PROGRAM. Exit code 77 with the reason where no servers can be had.
set -euo pipefail
rooms=$(cd "$(dirname "$0")/../rig" && pwd)
export RIG_SH=$rooms/rig.sh
exec "$rooms/with_rig.sh" --node-grace 1h "$1"
