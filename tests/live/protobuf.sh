#!/usr/bin/env bash
# What we read of Protobuf, against the published descriptors and against a real API server's own JSON.
# Usage: tests/live/protobuf.sh PROTOBUF_LINES. Exit code 77 with the reason where no servers can be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../rig/with_rig.sh" --node-grace 1h python3 "$here/protobuf.py" "$1"
