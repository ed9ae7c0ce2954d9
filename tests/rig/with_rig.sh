#!/usr/bin/env bash
# Runs a command beside a rig of its own, which is taken down whatever happens.
# Usage: tests/rig/with_rig.sh [OPTION of ./dev rig up...] COMMAND [ARGUMENT...]
# The command sees KUBECONFIG (cluster admin), RIG_DIR (audit.log, log/, kubeconfig; ./dev rig restart-apiserver uses it)
# and kubectl in its PATH. Exit code: the command's; 77 with the reason where no servers can be had; 3 when they fail.
# KEEP=DIR keeps the logs and audit.log there.
set -euo pipefail
rooms=$(cd "$(dirname "$0")" && pwd)

up=()
while [[ ${1:-} == --* ]]; do
	up+=("$1" "${2:-}")
	shift
	[ $# -eq 0 ] || shift
done
[ $# -gt 0 ] || { echo "usage: tests/rig/with_rig.sh [OPTION of ./dev rig up...] COMMAND [ARGUMENT...]" >&2; exit 2; }

RIG_DIR=$(mktemp -d "${TMPDIR:-/tmp}/rig.XXXXXX")
export RIG_DIR KUBECONFIG=$RIG_DIR/kubeconfig

# shellcheck disable=SC2317  # called on exit
take_down() {
	"$rooms/rig.sh" down
	if [ -n "${KEEP:-}" ]; then
		mkdir -p "$KEEP"
		cp -r "$RIG_DIR/log" "$RIG_DIR/audit.log" "$KEEP" || true
	fi
	rm -rf "$RIG_DIR"
}
trap take_down EXIT
trap 'exit 143' INT TERM HUP

# Who is killed outright cannot clean up: this one sees to it.
# shellcheck disable=SC2016  # for the inner shell
setsid bash -c 'tail --pid="$1" -f /dev/null; [ ! -d "$RIG_DIR" ] || { "$2/rig.sh" down; rm -rf "$RIG_DIR"; }' \
	_ $$ "$rooms" >/dev/null 2>&1 </dev/null &

"$rooms/rig.sh" up ${up[@]+"${up[@]}"}
PATH=$RIG_DIR/bin:$PATH
# In the background, so that a signal ends the wait at once.
"$@" <&0 &
command=$!
trap 'kill $command 2>/dev/null; wait $command 2>/dev/null; exit 143' INT TERM HUP
status=0
wait $command || status=$?
exit $status
