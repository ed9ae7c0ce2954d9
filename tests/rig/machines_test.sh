#!/usr/bin/env bash
# The rig's machines, tested by themselves: the cloud's states, the engine, kubelets before a made-up API server.
set -euo pipefail
cd "$(dirname "$0")/machines"

command -v go >/dev/null || {
	echo "SKIPPED: the rig's machines are written in Go, and there is no Go (go not in PATH)" >&2
	exit 77
}
export GOTOOLCHAIN=${GOTOOLCHAIN:-local}
unformatted=$(gofmt -l .)
[ -z "$unformatted" ] || {
	echo "gofmt would change: $unformatted" >&2
	exit 1
}
go vet -p 2 .
go test -p 2 -count=1 .
