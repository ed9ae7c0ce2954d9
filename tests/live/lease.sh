#!/usr/bin/env bash
# Two replicas and one lease on a real API server: killed, held still and woken, told to end. The audit log has the proof.
# Usage: tests/live/lease.sh PROGRAM. Exit code 77 with the reason where no servers can be had.
set -euo pipefail
rooms=$(cd "$(dirname "$0")/../rig" && pwd)
if [ -z "${RIG_DIR:-}" ]; then
	exec "$rooms/with_rig.sh" "$0" "$@"
fi
program=$1
logs=$(mktemp -d)
declare -A pid=()

finish() {
	for name in "${!pid[@]}"; do
		kill -9 "${pid[$name]}" 2>/dev/null || true
	done
	rm -rf "$logs"
}
trap finish EXIT

fail() {
	echo "FAILED: $*" >&2
	tail -n 20 "$logs"/* >&2
	exit 1
}

start() { # NAME
	"$program" "$1" >"$logs/$1" 2>&1 &
	pid[$1]=$!
	disown "${pid[$1]}"
}

# Until the last line but one or the last of the replica's output is that.
await() { # NAME LINE
	for _ in $(seq 600); do
		if tail -n 2 "$logs/$1" | grep -qx "$2"; then
			return
		fi
		sleep 0.1
	done
	fail "$1 did not tell \"$2\" within a minute"
}

gone() { # NAME
	for _ in $(seq 600); do
		kill -0 "${pid[$1]}" 2>/dev/null || return 0
		sleep 0.1
	done
	fail "$1 does not end"
}

of_lease() { # FIELD
	kubectl -n live get lease replicas -o "jsonpath={.spec.$1}"
}

# Microseconds of the Unix epoch.
micros() { # TIME
	echo $(($(date -d "$1" +%s%N) / 1000))
}

# No replica writes after another acquired the lease, until it acquires it again.
writes_after() { # NAME TIME
	jq -r --arg agent "lease-live/$1" --arg at "$2" \
		'select(.userAgent == $agent and .verb == "patch" and .stage == "ResponseComplete" and
		.objectRef.resource == "configmaps" and .requestReceivedTimestamp > $at) | .requestReceivedTimestamp' \
		"$RIG_DIR/audit.log"
}

kubectl create namespace live >/dev/null
kubectl -n live create configmap marks >/dev/null

echo "-- one leads, the other knows"
start a
await a won
start b
await b "holder a"
kubectl -n live wait configmap/marks --for=jsonpath='{.data.by}'=a --timeout=60s >/dev/null

echo "-- killed: the other leads when the lease has run out, and not before"
kill -9 "${pid[a]}"
renewed=$(of_lease renewTime)
await b won
acquired=$(of_lease acquireTime)
[ "$(of_lease holderIdentity)" = b ] || fail "$(of_lease holderIdentity) holds it"
[ "$(of_lease leaseTransitions)" = 1 ] || fail "$(of_lease leaseTransitions) transitions"
waited=$(($(micros "$acquired") - $(micros "$renewed")))
echo "   $waited us after the last renewal"
[ "$waited" -ge 3000000 ] || fail "taken over $waited us after the last renewal"

echo "-- back, it follows"
start a
await a "holder b"
[ "$(of_lease leaseTransitions)" = 1 ] || fail "$(of_lease leaseTransitions) transitions"

echo "-- held still for longer than its lease and woken: not one write more"
kubectl -n live wait configmap/marks --for=jsonpath='{.data.by}'=b --timeout=60s >/dev/null
kill -STOP "${pid[b]}"
await a won
acquired=$(of_lease acquireTime)
kill -CONT "${pid[b]}"
await b lost
await b "holder a"
kubectl -n live wait configmap/marks --for=jsonpath='{.data.by}'=a --timeout=60s >/dev/null
[ -n "$(writes_after a "$acquired")" ] || fail "the audit log shows no writes of a"
[ -z "$(writes_after b "$acquired")" ] || fail "b wrote after $acquired: $(writes_after b "$acquired" | head -3)"

echo "-- told to end, it gives the lease back: the other leads at once"
kill -TERM "${pid[a]}"
gone a
await b won
kill -TERM "${pid[b]}"
gone b
[ -z "$(of_lease holderIdentity)" ] || fail "$(of_lease holderIdentity) still holds it"
! grep -E "runtime error|Sanitizer" "$logs"/* || fail "a sanitizer has something to say"
echo "all of it holds"
