#!/usr/bin/env bash
# shellcheck disable=SC2317  # what check calls
# Proves the rig: it starts, its RBAC, tokens, audit log, controllers and scheduler are real, it survives what the
# scenario does to it, and nothing of it is left. Exit 77 where no servers can be had.
set -euo pipefail
rooms=$(cd "$(dirname "$0")" && pwd)
rig=$rooms/rig.sh
passed=0 failed=0
scratch=$(mktemp -d "${TMPDIR:-/tmp}/rig_test.XXXXXX")
trap '"$rig" down --dir "$scratch/bare" 2>/dev/null; rm -rf "$scratch"' EXIT

# check NAME COMMAND...: the command must succeed
check() {
	local name=$1
	shift
	if "$@" >"$scratch/said" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAILED: %s\n' "$name"
		tail -n 15 "$scratch/said" | sed 's/^/    /'
	fi
}

# ends STATUS PATTERN COMMAND...: with that exit code, and one message that matches
ends() {
	local wanted=$1 pattern=$2 status=0 said
	shift 2
	said=$("$@" 2>&1) || status=$?
	printf '%s\nexit %d\n' "$said" "$status"
	[ "$status" -eq "$wanted" ] && grep -qE -- "$pattern" <<<"$said"
}

# eventually COMMAND...: within a minute; the servers work by themselves and are not to be hurried
eventually() {
	local start=$SECONDS
	until "$@"; do
		[ $((SECONDS - start)) -lt 60 ] || return 1
		sleep 0.2
	done
}

server() { kubectl config view --raw --minify -o 'jsonpath={.clusters[0].cluster.server}'; }
as_admin() { curl -s --cacert "$RIG_DIR/pki/ca.crt" --cert "$RIG_DIR/pki/admin.crt" --key "$RIG_DIR/pki/admin.key" "$@"; }
code_of() { "$@" -o /dev/null -w '%{http_code}'; }
is() { printf 'found "%s", wanted "%s"\n' "$1" "$2"; [ "$1" = "$2" ]; }

identities() {
	local account=$scratch/account
	check 'a stranger is refused' is "$(code_of curl -s --cacert "$RIG_DIR/pki/ca.crt" "$(server)/api/v1/nodes")" 403
	check 'a certificate of another authority is refused' refuses_foreign_certificate
	kubectl create serviceaccount nobody >/dev/null
	"$rooms/kubeconfig_for.sh" default nobody >"$account"
	check 'a token says who it is' is "$(kubectl --kubeconfig "$account" auth whoami -o 'jsonpath={.status.userInfo.username}')" \
		system:serviceaccount:default:nobody
	check 'an account without a role is refused' ends 1 Forbidden kubectl --kubeconfig "$account" get nodes
	kubectl create clusterrole looks --verb=list --resource=nodes >/dev/null
	kubectl create clusterrolebinding nobody-looks --clusterrole=looks --serviceaccount=default:nobody >/dev/null
	check 'with a role it may' eventually kubectl --kubeconfig "$account" get nodes
	check 'and no more than that' ends 1 Forbidden kubectl --kubeconfig "$account" get pods
	check 'the audit log knows who did what' audited system:serviceaccount:default:nobody list nodes 200
	check 'and who was refused' audited system:serviceaccount:default:nobody list pods 403
}

refuses_foreign_certificate() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /O=system:masters/CN=admin \
		-keyout "$scratch/foreign.key" -out "$scratch/foreign.crt"
	is "$(code_of curl -s --cacert "$RIG_DIR/pki/ca.crt" --cert "$scratch/foreign.crt" --key "$scratch/foreign.key" \
		"$(server)/api/v1/nodes")" 401
}

# audited USER VERB RESOURCE CODE
audited() {
	grep -F "\"username\":\"$1\"" "$RIG_DIR/audit.log" | grep -F "\"verb\":\"$2\"" | grep -F "\"resource\":\"$3\"" |
		grep -qF "\"code\":$4"
}

# A node that says it is ready, and a workload on it, as far as they are without a kubelet.
objects() {
	kubectl create deployment web --image=none.invalid/web >/dev/null
	kubectl create poddisruptionbudget web --selector=app=web --min-available=1 >/dev/null
	check 'a deployment gets its pod' eventually pod_is_there
	check 'which waits for a node' eventually pod_condition PodScheduled False
	node_status False | kubectl create -f - >/dev/null
	check 'a new node is tainted' grep -qw node.kubernetes.io/not-ready <<<"$(kubectl get node one -o yaml)"
	kubectl patch node one --subresource=status --type=merge -p "$(node_status True)" >/dev/null
	check 'until it is ready, then the pod is bound' eventually pod_condition PodScheduled True
	kubectl patch "$(pod)" --subresource=status --type=merge -p '{"status":{"phase":"Running","conditions":[
		{"type":"PodScheduled","status":"True"},{"type":"Ready","status":"True"}]}}' >/dev/null
	check 'the budget counts it' eventually budget_counts 1
	check 'and forbids its eviction' is "$(evict)" 429
	kubectl delete pdb web >/dev/null
	check 'which is granted without' eventually evicted
}

# node_status READY: a node as a kubelet registers it
node_status() {
	cat <<-END
		{"apiVersion":"v1","kind":"Node","metadata":{"name":"one"},"status":{"conditions":[{"type":"Ready","status":"$1"}],
		"allocatable":{"cpu":"4","memory":"8Gi","pods":"10"},"capacity":{"cpu":"4","memory":"8Gi","pods":"10"}}}
	END
}

pod() { kubectl get pods -l app=web -o name | head -n 1; }
pod_is_there() { [ -n "$(pod)" ]; }
budget_counts() { [ "$(kubectl get pdb web -o 'jsonpath={.status.currentHealthy}')" = "$1" ]; }
evicted() { [ "$(evict)" = 201 ]; }
pod_condition() {
	[ "$(kubectl get "$(pod)" -o "jsonpath={.status.conditions[?(@.type==\"$1\")].status}")" = "$2" ]
}
evict() {
	local name
	name=$(pod)
	name=${name#*/}
	code_of as_admin -X POST -H 'Content-Type: application/json' "$(server)/api/v1/namespaces/default/pods/$name/eviction" \
		-d "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"$name\"}}"
}

# A watch that goes on from a resource version, as it says for two seconds.
watch_from() {
	as_admin "$(server)/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=2&resourceVersion=$1"
}

disturbances() {
	local version before
	version=$(kubectl get --raw /api/v1/namespaces/default/configmaps | sed 's/.*"metadata":{"resourceVersion":"\([0-9]*\)"},"items.*/\1/')
	kubectl create configmap kept --from-literal=a=b >/dev/null
	check 'a watch goes on from where it was' grep -q '"type":"ADDED"' <<<"$(watch_from "$version")"
	before=$(cat "$RIG_DIR/run/kube-apiserver.pid")
	check 'the API server restarts' "$rig" restart-apiserver
	check 'as another process' test "$before" != "$(cat "$RIG_DIR/run/kube-apiserver.pid")"
	check 'and knows what it knew' kubectl get configmap kept
	check 'etcd is compacted' "$rig" compact
	check 'an old watch is told that it expired' grep -qE '"code": ?410' <<<"$(watch_from "$version")"
	kill -KILL "$(cat "$RIG_DIR/run/kube-scheduler.pid")"
	check 'status tells of a dead part' eventually ends 1 'kube-scheduler +- .* stopped' "$rig" status
	check 'up starts what is dead' "$rig" up
	check 'and nothing was lost' kubectl get configmap kept
}

inside() {
	check 'up again is no harm' ends 0 'already up' "$rig" up
	check 'status tells all is well' "$rig" status
	check 'its version is a real one' grep -qE '^Server Version: v1\.[0-9]+\.[0-9]+$' <<<"$(kubectl version)"
	identities
	objects
	disturbances
	echo "$RIG_DIR" >"$outside/first"
	echo "$passed $failed" >"$outside/counts"
}

wrong_uses() {
	check 'no such verb' ends 2 'no verb "upp"' "$rig" upp
	check 'no such option' ends 2 'has no option --prot' "$rig" up --prot 1
	check 'no such port' ends 2 '1 to 65535, not "99999"' "$rig" up --port 99999
	check 'an option without its value' ends 2 'dir needs a value' "$rig" up --dir
	check 'status without a rig' ends 1 'no rig in' "$rig" status --dir "$scratch/none"
	check 'restart without a rig' ends 3 'no rig is up' "$rig" restart-apiserver --dir "$scratch/none"
	check 'down without a rig is no harm' "$rig" down --dir "$scratch/none"
	check 'nothing is left of wrong use' test ! -e "$scratch/none"
	check 'a command that fails says so' ends 77 'holds no program etcd' \
		env KUBEBUILDER_ASSETS="$scratch" "$rooms/with_rig.sh" true
}

# As a machine without a Go that is new enough, with and without what setup-envtest fetches.
without_go() {
	local programs
	programs=$("$rooms/binaries.sh" 2>/dev/null)
	mkdir -p "$scratch/path" "$scratch/assets"
	printf '#!/bin/sh\necho "go.mod requires more than this"\nexit 1\n' >"$scratch/path/go"
	chmod +x "$scratch/path/go"
	ln -s "$programs"/{etcd,kube-apiserver,kubectl} "$scratch/assets"
	check 'no Go and no KUBEBUILDER_ASSETS: skipped, and why' ends 77 'SKIPPED: .*KUBEBUILDER_ASSETS is not set.*requires more' \
		env -u KUBEBUILDER_ASSETS PATH="$scratch/path:$PATH" "$rig" up --dir "$scratch/bare"
	check 'KUBEBUILDER_ASSETS alone does' ends 0 'no kube-scheduler' \
		env KUBEBUILDER_ASSETS="$scratch/assets" XDG_CACHE_HOME="$scratch/cache" PATH="$scratch/path:$PATH" \
		"$rig" up --dir "$scratch/bare"
	check 'with a pod in it' "$programs/kubectl" --kubeconfig "$scratch/bare/kubeconfig" run alone --image=none.invalid/alone
	check 'a port in use is told' ends 3 'address already in use' \
		"$rig" up --dir "$scratch/second" --port "$(cat "$scratch/bare/run/kube-apiserver.port")"
	check 'it goes down' "$rig" down --dir "$scratch/bare"
	check 'nothing runs on' nobody_mentions "$scratch/bare"
	check 'nor of the first' nobody_mentions "$(cat "$scratch/first")"
}

nobody_mentions() {
	printf '%s' "$1" >"$scratch/pattern"
	! grep -lsFf "$scratch/pattern" /proc/[0-9]*/cmdline
}

if [ "${1:-}" = --inside ]; then
	outside=$2
	inside
	exit $((failed > 0))
fi

status=0
"$rooms/with_rig.sh" "$0" --inside "$scratch" >"$scratch/inside" 2>"$scratch/errors" || status=$?
if [ $status -eq 77 ]; then
	grep SKIPPED "$scratch/errors"
	exit 77
fi
cat "$scratch/inside"
if [ -e "$scratch/counts" ]; then
	read -r passed failed <"$scratch/counts"
else
	cat "$scratch/errors"
	failed=1
fi
wrong_uses
without_go
printf '[==========] %d test(s) run.\n[  PASSED  ] %d test(s).\n' $((passed + failed)) "$passed"
[ "$failed" -eq 0 ] || printf '[  FAILED  ] %d test(s), listed above.\n' "$failed"
exit $((failed > 0))
