#!/usr/bin/env bash
# Runs a scenario against a rig of its own. Usage: tests/scenario/run.sh NAME PREHEAT [OPTION of the scenario...]
# Exit code: 0 all held, 1 something did not (logs in build/scenario/NAME), 77 with the reason where it cannot run.
set -euo pipefail
rooms=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 2 ] || { echo "usage: tests/scenario/run.sh NAME PREHEAT [OPTION...]" >&2; exit 2; }
name=$1 preheat=$(realpath "$2")
shift 2
command -v python3 >/dev/null || { echo "scenario/$name is skipped: python3 is absent" >&2; exit 77; }
status=0
machines=$("$rooms/../rig/build_machines.sh") || status=$?
if [ "$status" -ne 0 ]; then
	echo "scenario/$name is skipped: there are no machines" >&2
	exit "$status"
fi
PYTHONDONTWRITEBYTECODE=1 exec "$rooms/../rig/with_rig.sh" --node-grace 5m \
	python3 "$rooms/$name.py" --preheat "$preheat" --machines "$machines" "$@"
