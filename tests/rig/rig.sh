#!/usr/bin/env bash
# A real control plane on loopback: etcd, kube-apiserver, kube-scheduler, kube-controller-manager, with certificates,
# RBAC and an audit log. See docs/testing.md.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
rooms=$root/tests/rig
# shellcheck source=tests/rig/certificates.sh
. "$rooms/certificates.sh"
# shellcheck source=tests/rig/parts.sh
. "$rooms/parts.sh"

usage() {
	cat <<-'END'
		usage: ./dev rig VERB [--dir DIR] [OPTION...]

		  up                   start it and write DIR/kubeconfig; builds the servers first where need be
		    --port PORT          of the API server; default: a free one
		    --node-grace TIME    after which a silent node is not ready; default: 40s
		  status               components, process, port, health; exit 1 unless all are well
		  path                 print DIR/kubeconfig: export KUBECONFIG=$(./dev rig path)
		  restart-apiserver    kill -9, and start again
		    --after SECONDS      be away for so long; default: 0
		  compact              forget old resource versions: kill -9, compact etcd, start again;
		                       watches resumed from before get "expired" (410)
		  down                 stop everything; logs and DIR/audit.log stay
		  build                only build the servers, or say why that cannot be done here

		DIR is build/rig by default, or RIG_DIR. Exit codes: 0 done, 1 not all well, 2 wrong use,
		3 failed, 77 no servers to be had here (neither KUBEBUILDER_ASSETS nor Go).
	END
}

say() {
	printf '%s\n' "$*" >&2
}

wrong_use() {
	say "./dev rig: $*"
	say "./dev rig help tells the verbs and options"
	exit 2
}

is_port() {
	[[ $1 =~ ^[0-9]{1,5}$ ]] && [ "$1" -ge 1 ] && [ "$1" -le 65535 ]
}

options() {
	while [ $# -gt 0 ]; do
		[ $# -ge 2 ] || wrong_use "$1 needs a value"
		[ -n "$2" ] || wrong_use "$1 needs a value, not an empty one"
		case $verb:$1 in
		*:--dir) dir=$2 ;;
		up:--port)
			is_port "$2" || wrong_use "--port is a number from 1 to 65535, not \"$2\""
			wished_port=$2
			;;
		up:--node-grace)
			[[ $2 =~ ^[1-9][0-9]*(s|m|h)$ ]] || wrong_use "--node-grace is a time like 40s or 5m, not \"$2\""
			node_grace=$2
			;;
		restart-apiserver:--after)
			[[ $2 =~ ^[0-9]{1,4}$ ]] || wrong_use "--after is a number of seconds up to 9999, not \"$2\""
			away=$2
			;;
		*) wrong_use "$verb has no option $1" ;;
		esac
		shift 2
	done
}

verb_up() {
	local programs part
	need_tools
	if all_well; then
		say "already up: $dir/kubeconfig"
		return
	fi
	if [ -z "$(parts_here)" ]; then
		programs=$("$rooms/binaries.sh") || exit $?
		prepare "$programs"
	fi
	trap 'say "giving up: stopping what was started (logs: $dir/log)"; verb_down' EXIT
	for part in $(parts_here); do
		alive "$part" || start "$part"
		await "$part"
	done
	first_objects
	trap - EXIT
	say "up: export KUBECONFIG=$dir/kubeconfig"
}

verb_status() {
	local part health pid status=0
	[ -d "$dir/run" ] || { say "no rig in $dir: ./dev rig up"; return 1; }
	printf '%-24s %-8s %-6s %s\n' COMPONENT PID PORT HEALTH
	for part in $(parts_here); do
		pid=- health=stopped
		if alive "$part"; then
			pid=$(pid_of "$part")
			health=$(is_well "$part" && echo ok || echo 'not ready')
		fi
		[ "$health" = ok ] || status=1
		printf '%-24s %-8s %-6s %s\n' "$part" "$pid" "$(port_of "$part")" "$health"
	done
	return $status
}

verb_restart_apiserver() {
	is_up
	kill_part kube-apiserver
	sleep "$away"
	start kube-apiserver
	await kube-apiserver
}

# The server's own cache of recent events would answer old watches from memory: it has to go, too.
verb_compact() {
	local etcd revision
	is_up
	etcd=http://127.0.0.1:$(port_of etcd)
	kill_part kube-apiserver
	revision=$(curl -sS --max-time 10 -X POST -d '{"key":"AA=="}' "$etcd/v3/kv/range" | sed -n 's/.*"revision":"\([0-9]*\)".*/\1/p')
	curl -sS --max-time 60 -X POST -d "{\"revision\":\"$revision\",\"physical\":true}" -o "$dir/log/compact" -f "$etcd/v3/kv/compaction" ||
		say "etcd had been compacted to revision $revision before"
	start kube-apiserver
	await kube-apiserver
	say "compacted to resource version $revision"
}

verb_down() {
	local part
	for part in kube-controller-manager kube-scheduler kube-apiserver etcd; do
		stop_part "$part"
	done
	rm -rf "${dir:?}/run" "${dir:?}/etcd"
}

is_up() {
	alive etcd || { say "no rig is up in $dir: ./dev rig up, ./dev rig status"; exit 3; }
}

need_tools() {
	local tool
	for tool in openssl curl flock setsid; do
		command -v $tool >/dev/null || { say "the rig needs $tool: apt-get install openssl curl util-linux"; exit 3; }
	done
}

verb=${1:-help}
[ $# -eq 0 ] || shift
dir=${RIG_DIR:-$root/build/rig} wished_port='' node_grace=40s away=0
case $verb in
up | status | path | restart-apiserver | compact | down | build) options "$@" ;;
esac
dir=$(realpath -m "$dir")
case $verb in
up) verb_up ;;
status) verb_status ;;
path) echo "$dir/kubeconfig" ;;
restart-apiserver) verb_restart_apiserver ;;
compact) verb_compact ;;
down) verb_down ;;
build) "$rooms/binaries.sh" ;;
help | --help | -h) usage ;;
*) wrong_use "no verb \"$verb\"" ;;
esac
