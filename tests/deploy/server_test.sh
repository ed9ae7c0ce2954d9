#!/usr/bin/env bash
# What deploy/ says, asked of a real API server: WarmPools that make sense are taken and others refused, as `preheat check`
# does it; defaults and columns; and what Preheat's account may do, and no more.
# Usage: tests/deploy/server_test.sh PREHEAT. Exit code 77 with the reason where no servers can be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
preheat=$(realpath "$1")

"$preheat" crd | cmp - "$root/deploy/crd.yaml" ||
	{ echo "deploy/crd.yaml is not what the manifest's table says: preheat crd >deploy/crd.yaml"; exit 1; }
if [ -z "${RIG_DIR:-}" ]; then
	exec "$root/tests/rig/with_rig.sh" "$here/server_test.sh" "$preheat"
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0 checks=0

# verdict NAME 1|0 SAID
verdict() {
	checks=$((checks + 1))
	[ "$2" -ne 1 ] || return 0
	failed=$((failed + 1))
	printf 'FAILED: %s\n%s\n' "$1" "$3"
}

# is NAME WANTED FOUND
is() { verdict "$1" "$([ "$2" = "$3" ] && echo 1 || echo 0)" "wanted: $2
found:  $3"; }

# both NAME good|bad PATTERN: p.yaml, from standard input, to the program and to the server
both() {
	local said server=good program=good
	cat >"$scratch/p.yaml"
	"$preheat" check "$scratch/p.yaml" >"$scratch/said" 2>&1 || program=bad
	said=$(kubectl apply --dry-run=server -f "$scratch/p.yaml" 2>&1) || server=bad
	is "$1: preheat check" "$2" "$program"
	verdict "$1: API server" "$([ "$server" = "$2" ] && grep -qE -- "$3" <<<"$said" && echo 1 || echo 0)" "$server: $said"
}

# spec NAME good|bad PATTERN LINE...: lines of a spec that has an objective and a node group unless they say other ones
spec() {
	local name=$1 wanted=$2 pattern=$3
	shift 3
	{ # no pipe: what it counts would be lost
		printf 'apiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: { name: p }\nspec:\n'
		printf '%s\n' "$@" | grep -qE '^(objective|violationCost):' || echo '  objective: { queueWait: 2s, attainment: 99% }'
		printf '%s\n' "$@" | grep -qE '^nodeGroups:' || echo '  nodeGroups: [ { name: g } ]'
		printf '  %s\n' "$@"
	} >"$scratch/spec"
	both "$name" "$wanted" "$pattern" <"$scratch/spec"
}

warm_pools() {
	kubectl apply --server-side -f "$root/deploy/crd.yaml" >/dev/null
	kubectl wait --for=condition=Established crd/warmpools.preheat.dev --timeout=60s >/dev/null
	local good='created|configured' any='invalid|Invalid|strict decoding'
	cat "$root"/examples/*/pool*.yaml | grep -o 'namespace: [a-z]*' | cut -d' ' -f2 | sort -u |
		xargs -n 1 kubectl create namespace >/dev/null
	for file in "$root"/examples/*/pool*.yaml; do
		both "examples/${file##*/examples/}" good "$good" <"$file"
	done

	spec 'the least' good "$good" ''
	spec 'a price in place of a share' good "$good" 'violationCost: 0.01'
	spec 'all durations' good "$good" 'leadTime: { total: { p50: 1h30m, p95: 1d } }' 'scaleDown: { after: 7d }'
	spec 'a number as text' good "$good" 'workload: { maxSequences: "2k", tokensPerSecond: 66k, prefillTokensPerSecond: 1.5M }'
	spec 'days as text and list' good "$good" \
		'headroom: { schedule: [ { days: Monday-fri, from: "08:00", to: "19:00", min: 2 }, { days: [sat, sun], from: "08:00", to: "9:00", min: 1 } ] }'
	spec 'a window by cron' good "$good" 'headroom: { schedule: [ { cron: "0 8 * * mon-fri", for: 11h, min: 2 } ] }'
	spec 'no cap of headroom' good "$good" 'headroom: { min: 2, max: none }'

	spec 'no objective' bad 'needs objective' 'objective:' 'class: batch'
	spec 'an empty objective' bad 'attainment' 'objective: {}'
	spec 'a share alone' bad 'queueWait' 'objective: { attainment: 99% }'
	spec 'a share too high' bad '99.999%' 'objective: { queueWait: 2s, attainment: 100% }'
	spec 'a share as a part of one' bad "$any" 'objective: { queueWait: 2s, attainment: 0.99 }'
	spec 'a share and a price' bad 'violationCost' 'objective: { queueWait: 2s, attainment: 99%, violationCost: 1 }'
	spec 'a price twice' bad 'violationCost' 'objective: { violationCost: 1 }' 'violationCost: 1'
	spec 'a wait without unit' bad "$any" 'objective: { queueWait: 2, attainment: 99% }'
	spec 'a wait of two hours' bad 'up to|from|1h' 'objective: { queueWait: 2h, attainment: 99% }'
	spec 'a wait of a day' bad '1h' 'objective: { queueWait: 1d, attainment: 99% }'
	spec 'an unknown key' bad 'unknown field' 'headroon: { min: 1 }'
	spec 'an unknown class' bad 'Unsupported value' 'class: interactiv'
	spec 'no node groups' bad 'nodeGroups' 'nodeGroups: []'
	spec 'a group without a name' bad 'name' 'nodeGroups: [ { max: 3 } ]'
	spec 'a group twice' bad 'once' 'nodeGroups: [ { name: g }, { name: g } ]'
	spec 'min above max' bad 'at most max' 'nodeGroups: [ { name: g, min: 5, max: 4 } ]'
	spec 'a negative size' bad 'greater than or equal' 'nodeGroups: [ { name: g, min: -1 } ]'
	spec 'more standby than nodes' bad 'standby' 'nodeGroups: [ { name: g, max: 2, standby: { max: 3 } } ]'
	spec 'standby of no price' bad 'price' 'nodeGroups: [ { name: g, pricePerHour: 0, standby: { max: 3 } } ]'
	spec 'two clouds' bad 'provider' \
		'nodeGroups: [ { name: g, eks: { cluster: c, nodegroup: ng, region: r }, aks: { subscription: s, resourceGroup: r, cluster: c, pool: p } } ]'
	spec 'the block of another cloud' bad 'provider' \
		'nodeGroups: [ { name: g, provider: aks, eks: { cluster: c, nodegroup: ng, region: r } } ]'
	spec 'half a block' bad 'nodegroup' 'nodeGroups: [ { name: g, eks: { cluster: c, region: r } } ]'
	spec 'nodes too small' bad 'gpusPerNode' 'workload: { gpusPerReplica: 8 }' 'nodeGroups: [ { name: g, gpusPerNode: 4 } ]'
	spec 'no GPU resource' bad 'gpuResource' 'workload: { gpuResource: gpu }'
	spec 'replicas of nothing' bad 'scaleTargetRef' 'workload: { warm: replicas }'
	spec 'half a sequence' bad "$any" 'workload: { maxSequences: "0.5" }'
	spec 'too many sequences' bad "$any" 'workload: { maxSequences: 2M }'
	spec 'p50 above p95' bad 'p95' 'leadTime: { total: { p50: 10m, p95: 5m } }'
	spec 'total beside stages' bad 'total' \
		'leadTime: { total: { p50: 5m, p95: 10m }, load: { p50: 1m, p95: 2m } }'
	spec 'headroom upside down' bad 'at most max' 'headroom: { min: 3, max: 2 }'
	spec 'a window above max' bad 'headroom.max' \
		'headroom: { max: 2, schedule: [ { from: "08:00", to: "19:00", min: 3 } ] }'
	spec 'a window without an end' bad 'from and to' 'headroom: { schedule: [ { from: "08:00", min: 3 } ] }'
	spec 'a window of two forms' bad 'one of the two' \
		'headroom: { schedule: [ { from: "08:00", to: "9:00", cron: "0 8 * * mon", for: 1h, min: 3 } ] }'
	spec 'cron without for' bad 'together' 'headroom: { schedule: [ { cron: "0 8 * * mon", min: 3 } ] }'
	spec 'an hour that is none' bad "$any" 'headroom: { schedule: [ { from: "25:00", to: "19:00", min: 3 } ] }'
	spec 'a day that is none' bad "$any" 'headroom: { schedule: [ { days: Mond, from: "8:00", to: "19:00", min: 3 } ] }'
	spec 'lent to itself' bad 'own class' 'lend: { to: [ interactive ] }'
	spec 'a budget that min exceeds' bad 'budget' 'nodeGroups: [ { name: g, min: 3, pricePerHour: 2 } ]' 'budget: { dollarsPerHour: 5 }'
	spec 'two sources' bad 'prometheus' 'signals: { scrape: { port: 1 }, prometheus: { url: "http://p" } }'
	spec 'no URL' bad "$any" 'signals: { prometheus: { url: "ftp://p" } }'
	spec 'pods that are scraped' bad 'pods' 'signals: { engine: pods, scrape: { port: 1 } }'
	spec 'pods of two sequences' bad 'maxSequences' 'signals: { engine: pods }' 'workload: { maxSequences: 2 }'
	both 'a name with capitals' bad 'metadata.name' <<'POOL'
apiVersion: preheat.dev/v1alpha1
kind: WarmPool
metadata: { name: Chat }
spec: { violationCost: 1, nodeGroups: [ { name: g } ] }
POOL
}

defaults_and_columns() {
	kubectl apply -f - >/dev/null <<'POOL'
apiVersion: preheat.dev/v1alpha1
kind: WarmPool
metadata: { name: p }
spec: { objective: { queueWait: 2s, attainment: 99% }, nodeGroups: [ { name: g } ] }
POOL
	is 'defaults that are fixed' 'interactive act 10 nvidia.com/gpu 1 vllm none auto' "$(kubectl get wp p -o \
		'jsonpath={.spec.class} {.spec.mode} {.spec.shrinkPriority} {.spec.workload.gpuResource} {.spec.workload.gpusPerReplica} {.spec.signals.engine} {.spec.headroom.max} {.spec.scaleDown.after}')"
	is 'none where it matters that they are written' '{"name":"g"} ' \
		"$(kubectl get wp p -o 'jsonpath={.spec.nodeGroups[0]} {.spec.workload.maxSequences}')"
	kubectl get wp p -o yaml >"$scratch/defaulted.yaml"
	kubectl patch wp p --subresource=status --type=merge -p '{"status":{"observedGeneration":1,"hot":3,"standby":2,
		"demand":"2.4","headroom":"0.6","leadTime":"6m20s/10m50s","wait":"0ms","lastChange":"2026-01-02T03:04:05Z",
		"lastDecision":{"tick":7,"wished":4,"decided":3,"heldBy":"max","reason":"r"},
		"nodeGroups":[{"name":"g","nodes":3,"desired":3,"heldBy":"max"}],
		"conditions":[{"type":"Ready","status":"True","reason":"Acting","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}' >/dev/null
	is 'columns' 'NAME CLASS HOT STANDBY HEADROOM DEMAND LEAD TIME WAIT LAST CHANGE' \
		"$(kubectl get warmpools | head -1 | tr -s ' ' | sed 's/ $//')"
	is 'their values' 'p interactive 3 2 0.6 2.4 6m20s/10m50s 0ms' \
		"$(kubectl get warmpools --no-headers | tr -s ' ' | cut -d' ' -f1-8)"
	is 'wide' 'act max Acting' "$(kubectl get wp -o wide --no-headers | tr -s ' ' | cut -d' ' -f10-12)"
	is 'the spec is not changed by status' 1 "$(kubectl get wp p -o 'jsonpath={.metadata.generation}')"
	is 'explained' 1 "$(kubectl explain warmpool.spec.objective.attainment | grep -c 'share of requests that must not be late')"
}

# may yes|no VERB RESOURCE[.GROUP][/SUBRESOURCE] [NAMESPACE [NAME]]
may() {
	local resource=${3%%/*} group='' sub='' allowed=no
	[[ $3 != */* ]] || sub=${3#*/}
	[[ $resource != *.* ]] || group=${resource#*.}
	kubectl --kubeconfig "$scratch/account" create --validate=false -o 'jsonpath={.status.allowed}' -f - >"$scratch/allowed" <<-REVIEW
		{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes":
		{"verb": "$2", "resource": "${resource%%.*}", "group": "$group", "subresource": "$sub",
		"namespace": "${4:-}", "name": "${5:-}"}}}
	REVIEW
	! grep -q true "$scratch/allowed" || allowed=yes
	is "$2 $3 ${4:-} ${5:-}" "$1" "$allowed"
}

rights() {
	kubectl apply -f "$root/deploy/rbac.yaml" >/dev/null
	"$root/tests/rig/kubeconfig_for.sh" preheat preheat >"$scratch/account"
	for what in nodes pods resourcequotas poddisruptionbudgets.policy jobs.batch jobsets.jobset.x-k8s.io \
		podgroups.scheduling.x-k8s.io workloads.kueue.x-k8s.io warmpools.preheat.dev; do
		may yes list "$what" llm
		may yes watch "$what" llm
		may no create "$what" llm
		may no delete "$what" llm
		may no deletecollection "$what" llm
		may no update "$what" llm
	done
	may yes patch nodes
	may no patch pods llm
	may yes create pods/eviction llm
	may yes patch warmpools.preheat.dev/status llm
	may no patch warmpools.preheat.dev llm
	may yes update deployments.apps/scale llm
	may yes get statefulsets.apps/scale llm
	may no patch deployments.apps llm
	may no create deployments.apps llm
	may no get deployments.apps llm
	may yes create events.events.k8s.io llm
	may no delete events.events.k8s.io llm
	may yes create leases.coordination.k8s.io preheat
	may yes update leases.coordination.k8s.io preheat preheat
	may no update leases.coordination.k8s.io preheat other
	may no update leases.coordination.k8s.io kube-system kube-scheduler
	may no create leases.coordination.k8s.io kube-system
	for what in secrets configmaps serviceaccounts serviceaccounts/token pods/exec pods/log; do
		may no get "$what" llm
		may no create "$what" llm
	done
	may no impersonate users
	may no create clusterrolebindings.rbac.authorization.k8s.io
	may no '*' '*'
	kubectl create namespace placed >/dev/null
	sed 's/namespace: llm/namespace: placed/' "$root/deploy/placeholders.yaml" | kubectl apply -f - >/dev/null
	may yes create deployments.apps placed
	may no create deployments.apps llm
	may no delete deployments.apps placed
	is 'the Deployment is taken' 'deployment.apps/preheat created (server dry run)' \
		"$(kubectl apply --dry-run=server -f "$root/deploy/controller.yaml" 2>&1)"
}

warm_pools
defaults_and_columns
rights
[ "$failed" -eq 0 ] || { echo "$failed of $checks checks failed"; exit 1; }
echo "$checks checks"
