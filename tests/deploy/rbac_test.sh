#!/usr/bin/env bash
# What deploy/ says, asked of a real API server: the defaults and columns of a WarmPool (which ones it takes:
# tests/rig/crd_test.sh), and what Preheat's account may do, and no more.
# Usage: tests/rig/with_rig.sh tests/deploy/rbac_test.sh PREHEAT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
preheat=$(realpath "$1")

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# shellcheck source=tests/deploy/verdicts.sh
. "$here/verdicts.sh"

defaults_and_columns() {
	"$root/tests/rig/apply_crd.sh"
	kubectl apply -f - >/dev/null <<'POOL'
apiVersion: preheat.dev/v1alpha1
kind: WarmPool
metadata: { name: p }
spec: { objective: { queueWait: 2s, attainment: 99% }, nodeGroups: [ { name: g } ] }
POOL
	is 'defaults that are fixed' 'interactive observe 10 nvidia.com/gpu 1 vllm none auto' "$(kubectl get wp p -o \
		'jsonpath={.spec.class} {.spec.mode} {.spec.shrinkPriority} {.spec.workload.gpuResource} {.spec.workload.gpusPerReplica} {.spec.signals.engine} {.spec.headroom.max} {.spec.scaleDown.after}')"
	is 'none where it matters that they are written' '{"name":"g"} ' \
		"$(kubectl get wp p -o 'jsonpath={.spec.nodeGroups[0]} {.spec.workload.maxSequences}')"
	kubectl patch wp p --subresource=status --type=merge -p '{"status":{"observedGeneration":1,"hot":3,"standby":2,
		"demand":"2.4","headroom":"0.6","leadTime":"6m20s/10m50s","wait":"0ms","lastChange":"2026-01-02T03:04:05Z",
		"lastDecision":{"tick":7,"wished":4,"decided":3,"heldBy":"max","reason":"r"},
		"nodeGroups":[{"name":"g","nodes":3,"desired":3,"heldBy":"max"}],
		"conditions":[{"type":"Ready","status":"True","reason":"Acting","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}' >/dev/null
	is 'columns' 'NAME CLASS HOT STANDBY HEADROOM DEMAND LEAD TIME WAIT LAST CHANGE' \
		"$(kubectl get warmpools | head -1 | tr -s ' ' | sed 's/ $//')"
	is 'their values' 'p interactive 3 2 0.6 2.4 6m20s/10m50s 0ms' \
		"$(kubectl get warmpools --no-headers | tr -s ' ' | cut -d' ' -f1-8)"
	is 'wide' 'observe max Acting' "$(kubectl get wp -o wide --no-headers | tr -s ' ' | cut -d' ' -f10-12)"
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

# The component watch-only: not one right to change anything, and what records under it misses none.
watch_only() {
	local account=system:serviceaccount:preheat:preheat
	mkdir "$scratch/watch"
	printf 'resources: [%s]\ncomponents: [%s]\n' "$(realpath --relative-to="$scratch/watch" "$root/deploy/base")" \
		"$(realpath --relative-to="$scratch/watch" "$root/deploy/components/watch-only")" >"$scratch/watch/kustomization.yaml"
	kubectl apply --server-side -k "$scratch/watch" >/dev/null
	is 'it records' 'record --watch-pools' "$(kubectl get sts preheat -n preheat -o 'jsonpath={.spec.template.spec.containers[0].args[*]}' | cut -d' ' -f1-2)"
	for namespace in preheat llm; do
		is "nothing but looking, in $namespace" '' "$(kubectl auth can-i --list --as="$account" -n "$namespace" --no-headers |
			grep -vE '^selfsubject|^ +\[' | grep -E 'create|update|patch|delete|bind|impersonate|escalate|\*' || :)"
	done
	has 'but looking' '[list watch]' "$(kubectl auth can-i --list --as="$account" --no-headers | grep '^pods ')"
	"$root/tests/rig/kubeconfig_for.sh" preheat preheat >"$scratch/watcher"
	cat >"$scratch/watched.yaml" <<-'POOL'
		apiVersion: preheat.dev/v1alpha1
		kind: WarmPool
		metadata: { name: p }
		spec:
		  objective: { queueWait: 2s, attainment: 99% }
		  workload: { selector: { matchLabels: { app: p } }, maxSequences: 8 }
		  nodeGroups: [ { name: e, external: { label: pool, value: gpu } } ]
	POOL
	"$preheat" record -f "$scratch/watched.yaml" --kubeconfig "$scratch/watcher" --db "$scratch/watched.db" --for 8s --interval 2s \
		--listen 127.0.0.1:0 >"$scratch/said" 2>&1 || :
	has 'it got so far as to sum up' 'ticks' "$(cat "$scratch/said")"
	is 'and was refused nothing' '' "$(grep -i forbidden "$scratch/said" || :)"
	kubectl delete -k "$scratch/watch" --wait >/dev/null
}

rights() {
	kubectl apply -f "$root/deploy/base/namespace.yaml" -f "$root/deploy/base/rbac.yaml" >/dev/null
	"$root/tests/rig/kubeconfig_for.sh" preheat preheat >"$scratch/account"
	for what in nodes pods events resourcequotas poddisruptionbudgets.policy jobs.batch jobsets.jobset.x-k8s.io \
		podgroups.scheduling.x-k8s.io podgroups.scheduling.k8s.io podgroups.scheduling.volcano.sh \
		podgroups.scheduling.run.ai workloads.kueue.x-k8s.io persistentvolumeclaims persistentvolumes \
		namespaces storageclasses.storage.k8s.io resourceclaims.resource.k8s.io resourceslices.resource.k8s.io \
		deviceclasses.resource.k8s.io warmpools.preheat.dev; do
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
	may yes get deployments.apps llm
	may no list deployments.apps llm
	may yes list horizontalpodautoscalers.autoscaling llm
	may no patch horizontalpodautoscalers.autoscaling llm
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
	kubectl create namespace shared >/dev/null
	kubectl create rolebinding preheat-share -n shared --clusterrole=preheat-share --serviceaccount=preheat:preheat >/dev/null
	may yes patch pods shared
	may no create pods shared
	may no delete pods shared
	kubectl create namespace held >/dev/null
	kubectl create rolebinding preheat-activator -n held --clusterrole=preheat-activator --serviceaccount=preheat:preheat >/dev/null
	may yes get services held
	may yes patch endpointslices.discovery.k8s.io held
	may yes delete endpointslices.discovery.k8s.io held
	may no patch services held
	may no patch endpointslices.discovery.k8s.io llm
	may no delete endpointslices.discovery.k8s.io llm
	kubectl create namespace placed >/dev/null
	kubectl create rolebinding preheat-placeholders -n placed --clusterrole=preheat-placeholders \
		--serviceaccount=preheat:preheat >/dev/null
	kubectl create namespace ahead >/dev/null
	kubectl create rolebinding preheat-prefetch -n ahead --clusterrole=preheat-prefetch --serviceaccount=preheat:preheat >/dev/null
	may yes get deployments.apps ahead
	may yes create pods ahead
	may yes delete pods ahead
	may no patch pods ahead
	may yes create deployments.apps placed
	may no create deployments.apps llm
	may no delete deployments.apps placed
	may no patch pods placed
	may no create pods placed
	may no delete pods placed
}

# Groups that are objects of the cluster, as `preheat provider check` finds them before and after their role is given.
node_objects() {
	local denied
	cat >"$scratch/pool.yaml" <<-'POOL'
		apiVersion: preheat.dev/v1alpha1
		kind: WarmPool
		metadata: { name: p }
		spec:
		  objective: { queueWait: 2s, attainment: 99% }
		  nodeGroups:
		    - { name: k, karpenter: { nodePool: gpu } }
		    - { name: c, clusterApi: { machineDeployment: gpu, namespace: capi, label: pool, value: gpu } }
		    - { name: e, external: { label: pool, value: others } }
	POOL
	for denied in 10 0; do
		"$preheat" provider check --kubeconfig "$scratch/account" -f "$scratch/pool.yaml" -o json >"$scratch/told" || :
		is "$denied permissions denied" "$denied" "$(grep -c '"state":"denied"' "$scratch/told" || :)"
		is 'all others granted' $((13 - denied)) "$(grep -c '"state":"granted"' "$scratch/told" || :)"
		is 'who asks' 3 "$(grep -c '"identity":"system:serviceaccount:preheat:preheat"' "$scratch/told" || :)"
		kubectl apply -f "$root/deploy/components/node-objects/rbac.yaml" >/dev/null
	done
	is 'a group with all that it needs' 1 "$(grep -c '"name":"e",.*"verdict":"fine"' "$scratch/told" || :)"
	is 'groups that are not there' 2 "$(grep -c '"verdict":"refused"' "$scratch/told" || :)"
}

# What page and API beyond the pod need, and what those may who look.
# looks yes|no VERB PATH
looks() {
	local allowed=no
	kubectl create --validate=false -o 'jsonpath={.status.allowed}' -f - >"$scratch/allowed" <<-REVIEW
		{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": "someone",
		"groups": ["$looker"], "nonResourceAttributes": {"verb": "$2", "path": "$3"}}}
	REVIEW
	! grep -q true "$scratch/allowed" || allowed=yes
	is "$looker: $2 $3" "$1" "$allowed"
}

page_and_api() {
	may no create tokenreviews.authentication.k8s.io
	may no create subjectaccessreviews.authorization.k8s.io
	kubectl apply -f "$root/deploy/components/web/rbac.yaml" >/dev/null
	may yes create tokenreviews.authentication.k8s.io
	may yes create subjectaccessreviews.authorization.k8s.io
	may no get secrets llm
	may no '*' '*'
	kubectl create clusterrolebinding lookers --clusterrole=preheat-viewer --group=lookers >/dev/null
	kubectl create clusterrolebinding askers --clusterrole=preheat-what-if --group=askers >/dev/null
	looker=lookers
	looks yes get /
	looks yes get /assets/page.js
	looks yes get /api/v1
	looks yes get /api/v1/what-if/7
	looks no post /api/v1/what-if
	looks no delete /api/v1/what-if/7
	looks no get /metrics
	looks no get /replica
	looker=askers
	looks yes post /api/v1/what-if
	looks yes delete /api/v1/what-if/7
	looks no get /api/v1/pools
	looks no post /api/v1/pools
}

watch_only
defaults_and_columns
rights
node_objects
page_and_api
ended
