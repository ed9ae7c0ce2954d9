#!/usr/bin/env bash
# WarmPools in a real API server: what it refuses, fills in and shows. Each manifest of the table goes to the server and
# to `preheat check`, and both must say the same.
# Usage: tests/rig/with_rig.sh tests/rig/crd_test.sh PREHEAT
set -uo pipefail
preheat=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
	failed=$((failed + 1))
	printf 'FAILED: %s\n' "$*"
}

"$root/tests/rig/apply_crd.sh" || exit 3
for condition in NonStructuralSchema KubernetesAPIApprovalPolicyConformant; do
	found=$(kubectl get crd warmpools.preheat.dev \
		-o jsonpath="{.status.conditions[?(@.type==\"$condition\")].message}")
	[ -z "$found" ] || fail "CRD: $condition: $found"
done
kubectl create namespace llm >/dev/null

# A server that has just learned of a kind may not serve it yet.
for _ in 1 2 3 4 5 6 7 8 9 10; do
	kubectl get warmpools -A >/dev/null 2>&1 && break
	sleep 0.5
done

# verdicts NAME EXPECTED FILE: accepted and refused are what both say; alone: the server cannot know, check refuses.
verdicts() {
	local name=$1 expected=$2 file=$3 server=accepted check=accepted
	kubectl create --dry-run=server -f "$file" >"$work/server" 2>&1 || server=refused
	"$preheat" check "$file" >"$work/check" 2>&1
	case $? in
	0) ;;
	1) check=refused ;;
	*) check="did not run" ;;
	esac
	# A refusal for another reason than the manifest would look like one.
	if [ "$server" = refused ] && ! grep -qE 'is invalid|unknown field|strict decoding|cannot unmarshal' "$work/server"; then
		server="$(cat "$work/server")"
	fi
	local wanted_server=$expected wanted_check=$expected
	if [ "$expected" = alone ]; then
		wanted_server=accepted wanted_check=refused
	fi
	[ "$server" = "$wanted_server" ] || fail "$name: the server: $server, expected $wanted_server: $(cat "$work/server")"
	[ "$check" = "$wanted_check" ] || fail "$name: check: $check, expected $wanted_check: $(cat "$work/check")"
}

# both EXPECTED NAME SPEC
both() {
	printf 'apiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: { name: chat, namespace: llm }\nspec: { %s }\n' \
		"$3" >"$work/pool.yaml"
	verdicts "$2" "$1" "$work/pool.yaml"
}

# named EXPECTED NAME
named() {
	printf 'apiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: { name: "%s", namespace: llm }\nspec: { %s, %s }\n' \
		"$2" "$O" "$G" >"$work/pool.yaml"
	verdicts "name $2" "$1" "$work/pool.yaml"
}

O='objective: { queueWait: 2s, attainment: 99% }'
G='nodeGroups: [ { name: g5 } ]'
T='scaleTargetRef: { name: llama }'

both accepted 'the least' "$O, $G"
both refused 'an empty spec' ''
both refused 'no node groups' "$O"
both refused 'no groups in the list' "$O, nodeGroups: []"
both refused 'an unknown key' "$O, $G, nodegroup: 3"
both refused 'an unknown key within' "objective: { queueWait: 2s, attainment: 99%, goal: 3 }, $G"
both refused 'a list for a map' "objective: [ 2s ], $G"
both refused 'a text for a list' "$O, nodeGroups: g5"

both refused 'no objective' "$G"
both refused 'an empty objective' "objective: {}, $G"
both refused 'a wait alone' "objective: { queueWait: 2s }, $G"
both refused 'a share without its wait' "objective: { attainment: 99% }, $G"
both accepted 'a cost in the objective' "objective: { violationCost: 0.01 }, $G"
both accepted 'a cost and a wait' "objective: { violationCost: 0.01, queueWait: 5s }, $G"
both accepted 'a cost beside the objective' "violationCost: 0.01, $G"
both accepted 'a cost beside a wait' "violationCost: 0.01, objective: { queueWait: 5s }, $G"
both refused 'share and cost' "objective: { queueWait: 2s, attainment: 99%, violationCost: 1 }, $G"
both refused 'share, cost outside' "violationCost: 1, $O, $G"
both refused 'two costs' "violationCost: 1, objective: { violationCost: 1 }, $G"
both refused 'a cost of nothing' "violationCost: 0, $G"

both refused 'a duration without unit' "objective: { queueWait: 2, attainment: 99% }, $G"
both refused 'a duration below 0' "objective: { queueWait: -2s, attainment: 99% }, $G"
both refused 'a duration of nothing' "objective: { queueWait: 0s, attainment: 99% }, $G"
both refused 'a wait of a day' "objective: { queueWait: 1d, attainment: 99% }, $G"
both refused 'a wait of two hours' "objective: { queueWait: 2h, attainment: 99% }, $G"
both accepted 'a wait of an hour' "objective: { queueWait: 60m, attainment: 99% }, $G"
both accepted 'a wait in two units' "objective: { queueWait: 1m30s, attainment: 99% }, $G"
both refused 'units upside down' "objective: { queueWait: 30s1m, attainment: 99% }, $G"
both refused 'a unit twice' "objective: { queueWait: 1s1s, attainment: 99% }, $G"
both accepted 'half a second' "objective: { queueWait: 0.5s, attainment: 99% }, $G"
both refused 'half a millisecond' "objective: { queueWait: 0.5ms, attainment: 99% }, $G"
both refused 'a share without sign' "objective: { queueWait: 2s, attainment: 99 }, $G"
both refused 'a share in quotes' "objective: { queueWait: 2s, attainment: \"0.99\" }, $G"
both refused 'a share too small' "objective: { queueWait: 2s, attainment: 49.9999% }, $G"
both accepted 'the smallest share' "objective: { queueWait: 2s, attainment: 50% }, $G"
both accepted 'the largest share' "objective: { queueWait: 2s, attainment: 99.999% }, $G"
both refused 'all of them' "objective: { queueWait: 2s, attainment: 100% }, $G"

both refused 'another class' "$O, $G, class: chat"
both refused 'a class in capitals' "$O, $G, class: Batch"
both accepted 'mode observe' "$O, $G, mode: observe"
both refused 'mode off' "$O, $G, mode: off"

both accepted 'quantities' "$O, $G, workload: { maxSequences: 1k, tokensPerSecond: 3.5k, prefillTokensPerSecond: 25000 }"
both refused 'a quantity of part' "$O, $G, workload: { maxSequences: 1.5 }"
both refused 'a quantity of part of a text' "$O, $G, workload: { maxSequences: \"1.5\" }"
both refused 'a quantity of nothing' "$O, $G, workload: { maxSequences: 0 }"
both refused 'a quantity too large' "$O, $G, workload: { maxSequences: 2M }"
both refused 'a quantity below 0' "$O, $G, workload: { maxSequences: -1 }"
both refused 'a unit that is none' "$O, $G, workload: { tokensPerSecond: 3x }"
both refused 'GPUs in quotes' "$O, $G, workload: { gpusPerReplica: \"1\" }"
both refused 'no GPU' "$O, $G, workload: { gpusPerReplica: 0 }"
both refused 'half a GPU' "$O, $G, workload: { gpusPerReplica: 0.5 }"
both accepted 'a slice' "$O, $G, workload: { gpuResource: nvidia.com/mig-1g.10gb }"
both refused 'a resource without domain' "$O, $G, workload: { gpuResource: gpu }"
both refused 'a resource in capitals' "$O, $G, workload: { gpuResource: NVIDIA.com/gpu }"
both refused 'a resource that ends in a dash' "$O, $G, workload: { gpuResource: nvidia.com/gpu- }"
both accepted 'cost labels' "$O, $G, costLabels: { costCenter: example.com/cost-center, product: app_1 }"
both refused 'a cost label with blanks' "$O, $G, costLabels: { product: the product }"
both refused 'a cost label without name' "$O, $G, costLabels: { workloadType: example.com/ }"
both accepted 'labels' "$O, $G, workload: { selector: { matchLabels: { app: llama } } }"
both refused 'a label that is a number' "$O, $G, workload: { selector: { matchLabels: { app: 3 } } }"
both refused 'labels in a list' "$O, $G, workload: { selector: { matchLabels: [ app ] } }"
both refused 'expressions' "$O, $G, workload: { selector: { matchExpressions: [] } }"
both refused 'a target without name' "$O, $G, workload: { scaleTargetRef: { kind: Deployment } }"
both refused 'a target of a wrong name' "$O, $G, workload: { scaleTargetRef: { name: Llama_1 } }"
both accepted 'replicas of a target' "$O, $G, workload: { $T, warm: replicas }"
both refused 'replicas of nothing' "$O, $G, workload: { warm: replicas }"
both refused 'placeholders of nothing' "$O, $G, workload: { warm: placeholders }"
both accepted 'images ahead' "$O, $G, workload: { $T, prefetch: image }"
both refused 'images of nothing' "$O, $G, workload: { prefetch: image }"
both refused 'images of a kind without a template of its own' "$O, $G, workload: { scaleTargetRef: { apiVersion: ray.io/v1, kind: RayCluster, name: r }, prefetch: image }"
both accepted 'only a metric' "$O, $G, workload: { warm: metric }"
both accepted 'microseconds' "$O, $G, workload: { interTokenLatency: 500us }"
both refused 'a token a minute' "$O, $G, workload: { interTokenLatency: 1m }"
both alone 'rates that disagree' "$O, $G, workload: { maxSequences: 1, tokensPerSecond: 99999, interTokenLatency: 1s }"

both accepted 'a scrape' "$O, $G, signals: { engine: sglang, scrape: { port: 30000, path: /metrics, interval: 10s } }"
both refused 'another engine' "$O, $G, signals: { engine: ollama }"
both refused 'a port too large' "$O, $G, signals: { scrape: { port: 65536 } }"
both refused 'a path without slash' "$O, $G, signals: { scrape: { path: metrics } }"
both refused 'a scrape ten times a second' "$O, $G, signals: { scrape: { interval: 100ms } }"
both accepted 'names of a server without a table' "$O, $G, signals: { engine: custom, metrics: { running: 'r{state=\"running\"}', waiting: 'a:b', queueWait: w_seconds } }"
both refused 'a custom server without names' "$O, $G, signals: { engine: custom }"
both refused 'names of a server with a table' "$O, $G, signals: { engine: vllm, metrics: { running: r, waiting: w } }"
both refused 'names without what waits' "$O, $G, signals: { engine: custom, metrics: { running: r } }"
both refused 'an expression as a name' "$O, $G, signals: { engine: custom, metrics: { running: 'sum(r)', waiting: w } }"
both refused 'two labels' "$O, $G, signals: { engine: custom, metrics: { running: 'r{a=\"b\",c=\"d\"}', waiting: w } }"
both accepted 'a scrape over TLS' "$O, $G, signals: { scrape: { scheme: https, auth: { bearerTokenFile: /etc/preheat/credentials/t }, tls: { caFile: /etc/preheat/credentials/ca.crt, serverName: p.x } } }"
both refused 'TLS over http' "$O, $G, signals: { scrape: { tls: { verify: nothing } } }"
both accepted 'Prometheus' "$O, $G, signals: { prometheus: { url: \"http://prometheus:9090\", labels: { job: llama } } }"
both refused 'Prometheus nowhere' "$O, $G, signals: { prometheus: { labels: { job: llama } } }"
both refused 'Prometheus over ftp' "$O, $G, signals: { prometheus: { url: \"ftp://prometheus\" } }"
both refused 'an address without host' "$O, $G, signals: { prometheus: { url: \"http:///x\" } }"
both accepted 'Prometheus with a token' "$O, $G, signals: { prometheus: { url: \"http://p\", interval: 30s, auth: { bearerTokenFile: /etc/preheat/credentials/t }, tls: { caFile: /etc/preheat/credentials/ca.crt, serverName: p.x } } }"
both refused 'a token and a password' "$O, $G, signals: { prometheus: { url: \"http://p\", auth: { bearerTokenFile: /etc/preheat/credentials/t, basic: { username: u, passwordFile: /etc/preheat/credentials/p } } } }"
both accepted 'a queue by PromQL' "$O, $G, signals: { queue: { promql: sum(x), url: \"http://p\", counts: unfinished } }"
both accepted 'a queue of pods' "$O, $G, signals: { engine: pods, queue: { json: { url: \"http://q\", path: \"a[].b\" } } }"
both accepted 'an endpoint picker' "$O, $G, signals: { prometheus: { url: \"http://p\" }, queue: { endpointPicker: { pool: chat } } }"
both refused 'no queue in it' "$O, $G, signals: { queue: { interval: 5s } }"
both refused 'two queues' "$O, $G, signals: { queue: { promql: x, url: \"http://p\", endpointPicker: { pool: p } } }"
both refused 'a queue of no server' "$O, $G, signals: { queue: { promql: x } }"
both refused 'a url too many' "$O, $G, signals: { queue: { url: \"http://p\", json: { url: \"http://q\", path: a } } }"
both accepted 'GPUs' "$O, $G, signals: { devices: { url: \"http://p\", labels: { job: dcgm } } }"
both refused 'GPUs of no server' "$O, $G, signals: { devices: {} }"
both refused 'two sources' "$O, $G, signals: { scrape: {}, prometheus: { url: \"http://p\" } }"
both accepted 'pods' "$O, $G, signals: { engine: pods }"
both accepted 'pods, one at a time' "$O, $G, signals: { engine: pods }, workload: { maxSequences: 1 }"
both refused 'pods, many at a time' "$O, $G, signals: { engine: pods }, workload: { maxSequences: 8 }"
both refused 'pods scraped' "$O, $G, signals: { engine: pods, scrape: { port: 8000 } }"
both refused 'pods in Prometheus' "$O, $G, signals: { engine: pods, prometheus: { url: \"http://p\" } }"
both accepted 'the stock of a share' "$O, $G, signals: { engine: share }"
both refused 'slots, many at a time' "$O, $G, signals: { engine: share }, workload: { maxSequences: 8 }"
both refused 'a stock scraped' "$O, $G, signals: { engine: share, scrape: { port: 8000 } }"
both refused 'a stock with a queue' "$O, $G, signals: { engine: share, queue: { json: { url: \"http://q\", path: a } } }"
both refused 'a stock that lends' "$O, $G, signals: { engine: share }, lend: { to: [batch] }"
both refused 'slots of two GPUs' "$O, $G, signals: { engine: share }, workload: { gpusPerReplica: 2 }"
both refused 'a stock in a share' "$O, $G, signals: { engine: share }, share: { name: s }"
both refused 'a stock of training' "$O, $G, class: training, signals: { engine: share }"

# Names that no cloud and no cluster can have.
for bad in 'eks: { cluster: "-c", nodegroup: n1, region: r }' 'eks: { cluster: c, nodegroup: "a b", region: r }' \
	'eks: { cluster: c, nodegroup: n1, region: eu.west.1 }' 'eks: { cluster: c, nodegroup: n1, region: r, tags: "a,,b" }' \
	'aks: { subscription: prod, resourceGroup: r, cluster: c, pool: p }' \
	'aks: { subscription: 00000000-0000-0000-0000-000000000000, resourceGroup: "r.", cluster: c, pool: p }' \
	'aks: { subscription: 00000000-0000-0000-0000-000000000000, resourceGroup: r, cluster: "c!", pool: p }' \
	'aks: { subscription: 00000000-0000-0000-0000-000000000000, resourceGroup: r, cluster: c, pool: gpu-1 }' \
	'karpenter: { nodePool: GPU }' 'clusterApi: { machineDeployment: d_1, namespace: n1, label: l, value: v }' \
	'external: { label: "a b", value: v }' 'external: { label: l, value: "v-" }'; do
	both refused "a name: $bad" "$O, nodeGroups: [ { name: a, provider: ${bad%%:*}, $bad } ]"
done
both accepted 'tags with blanks' "$O, nodeGroups: [ { name: a, eks: { cluster: c, nodegroup: n1, region: r, tags: \"a=1, b\" } } ]"
both accepted 'a resource group of brackets' \
	"$O, nodeGroups: [ { name: a, provider: aks, aks: { subscription: 00000000-0000-0000-0000-000000000000, resourceGroup: \"(r)_ü\", cluster: c, pool: p } } ]"
both accepted 'an EKS group' "$O, nodeGroups: [ { name: a, eks: { cluster: c, nodegroup: n1, region: r } } ]"
both accepted 'an AKS group, told twice' \
	"$O, nodeGroups: [ { name: a, provider: aks, aks: { subscription: 00000000-0000-0000-0000-000000000000, resourceGroup: r, cluster: c, pool: p } } ]"
both accepted 'a simulated group' "$O, nodeGroups: [ { name: a, simulated: { endpoint: \"http://127.0.0.1:1\" } } ]"
both accepted 'an EKS group with everything' \
	"$O, nodeGroups: [ { name: a, eks: { cluster: c, nodegroup: n1, region: r, autoScalingGroup: g, clusterAutoscalerTags: ignore, launch: instances, warmPool: nodegroup, protection: group, endpoint: \"https://x.vpce.amazonaws.com\" } } ]"
both refused 'protection by the setting of a group that EKS manages' \
	"$O, nodeGroups: [ { name: a, eks: { cluster: c, nodegroup: n1, region: r, protection: group } } ]"
both refused 'an Auto Scaling group named and searched' \
	"$O, nodeGroups: [ { name: a, eks: { cluster: c, nodegroup: n1, region: r, autoScalingGroup: g, tags: t } } ]"
both refused 'standby of spot machines on EKS' \
	"$O, nodeGroups: [ { name: a, capacityType: spot, standby: { max: 1 }, eks: { cluster: c, nodegroup: n1, region: r } } ]"
both refused 'a first wake that is faster than the later ones' \
	"$O, nodeGroups: [ { name: a, pricePerHour: 1, standby: { max: 1, leadTime: { p50: 90s, p95: 5m }, firstLeadTime: { p50: 2m, p95: 4m } } } ]"
both refused 'half of an EKS group' "$O, nodeGroups: [ { name: a, eks: { cluster: c } } ]"
both refused 'two clouds' \
	"$O, nodeGroups: [ { name: a, eks: { cluster: c, nodegroup: n1, region: r }, simulated: { endpoint: \"http://x\" } } ]"
both refused 'the block of another cloud' "$O, nodeGroups: [ { name: a, provider: aks, simulated: { endpoint: \"http://x\" } } ]"
both refused 'an unknown cloud' "$O, nodeGroups: [ { name: a, provider: gke } ]"
both refused 'a group without name' "$O, nodeGroups: [ { max: 3 } ]"
both refused 'a group twice' "$O, nodeGroups: [ { name: a }, { name: b }, { name: a } ]"
both refused 'min above max' "$O, nodeGroups: [ { name: a, min: 3, max: 2 } ]"
both refused 'min below 0' "$O, nodeGroups: [ { name: a, min: -1 } ]"
both refused 'max of a text' "$O, nodeGroups: [ { name: a, max: many } ]"
both alone 'min above the default of max' "$O, nodeGroups: [ { name: a, min: 11 } ]"
both refused 'a price below 0' "$O, nodeGroups: [ { name: a, pricePerHour: -1 } ]"
both refused 'a price in quotes' "$O, nodeGroups: [ { name: a, pricePerHour: \"1\" } ]"
both alone 'one price of two' "$O, nodeGroups: [ { name: a, pricePerHour: 1 }, { name: b } ]"
both refused 'capacity of another type' "$O, nodeGroups: [ { name: a, capacityType: cheap } ]"
both refused 'an end without a reservation' "$O, nodeGroups: [ { name: a, capacityType: spot, reservedUntil: \"2027-01-31T11:30:00Z\" } ]"
both accepted 'labels and taints' \
	"$O, nodeGroups: [ { name: a, labels: { gpu: h100 }, taints: [ { key: a/b, value: x, effect: NoExecute } ], startupTaints: [ { key: a/b, effect: NoSchedule } ] } ]"
both refused 'a taint without its effect' "$O, nodeGroups: [ { name: a, taints: [ { key: a } ] } ]"
both refused 'a taint of another effect' "$O, nodeGroups: [ { name: a, taints: [ { key: a, effect: Never } ] } ]"
both refused 'a taint that stays and goes' \
	"$O, nodeGroups: [ { name: a, taints: [ { key: a, effect: NoExecute } ], startupTaints: [ { key: a, effect: NoExecute } ] } ]"
both alone 'a label that no object can have' "$O, nodeGroups: [ { name: a, labels: { -a: x } } ]"
both alone 'a label that the zone contradicts' "$O, nodeGroups: [ { name: a, zone: z1, labels: { topology.kubernetes.io/zone: z2 } } ]"
both refused 'an end without a zone' "$O, nodeGroups: [ { name: a, capacityType: reserved, reservedUntil: \"2027-01-31T11:30:00\" } ]"
both refused 'nodes too small' "$O, workload: { gpusPerReplica: 8 }, nodeGroups: [ { name: a, gpusPerNode: 4 } ]"
both alone 'nodes too small by default' "$O, workload: { gpusPerReplica: 8 }, $G"
both accepted 'standby' "$O, nodeGroups: [ { name: a, max: 4, standby: { max: 4, priceShare: 2%, leadTime: { p50: 90s, p95: 2m } } } ]"
both refused 'standby above max' "$O, nodeGroups: [ { name: a, max: 4, standby: { max: 5 } } ]"
both refused 'standby without a price' "$O, nodeGroups: [ { name: a, pricePerHour: 0, standby: { max: 1 } } ]"
both refused 'standby at full price' "$O, nodeGroups: [ { name: a, standby: { max: 1, priceShare: 100% } } ]"

both accepted 'a lead time' "$O, $G, leadTime: { total: { p50: 380s, p95: 650s } }"
both accepted 'a lead time of days' "$O, $G, leadTime: { total: { p50: 1d, p95: 1d12h } }"
both accepted 'equal quantiles' "$O, $G, leadTime: { total: { p50: 60s, p95: 1m } }"
both refused 'half a lead time' "$O, $G, leadTime: { total: { p50: 380s } }"
both refused 'quantiles upside down' "$O, $G, leadTime: { total: { p50: 11m, p95: 650s } }"
both refused 'quantiles of days upside down' "$O, $G, leadTime: { total: { p50: 1d, p95: 650s } }"
both refused 'days among themselves' "$O, $G, leadTime: { total: { p50: 1d12h, p95: 1d } }"
both refused 'a lead time of 0' "$O, $G, leadTime: { total: { p50: 0s, p95: 0s } }"
both refused 'half of the starts at once' "$O, $G, leadTime: { total: { p50: 0s, p95: 10s } }"
both accepted 'a stage of 0' "$O, $G, leadTime: { image: { p50: 0s, p95: 0s } }"
both refused 'a lead time of a month' "$O, $G, leadTime: { total: { p50: 1d, p95: 30d } }"
both accepted 'a lead time of a week' "$O, $G, leadTime: { total: { p50: 1d, p95: 1w } }"
both refused 'a lead time of more' "$O, $G, leadTime: { total: { p50: 1d, p95: 7d1s } }"
both accepted 'stages' "$O, $G, leadTime: { provision: { p50: 1m, p95: 2m }, load: { p50: 2m, p95: 3m } }"
both refused 'total and stages' "$O, $G, leadTime: { total: { p50: 1m, p95: 2m }, load: { p50: 2m, p95: 3m } }"

W='min: 2, from: "08:00", to: "19:00"'
both accepted 'headroom' "$O, $G, headroom: { min: 1, max: 3 }"
both accepted 'headroom without end' "$O, $G, headroom: { min: 1, max: none }"
both refused 'headroom of another word' "$O, $G, headroom: { max: all }"
both refused 'headroom of 0' "$O, $G, headroom: { max: 0 }"
both refused 'headroom upside down' "$O, $G, headroom: { min: 4, max: 3 }"
both alone 'headroom beyond the groups' "$O, $G, headroom: { min: 11 }"
both accepted 'a window' "$O, $G, headroom: { schedule: [ { days: mon-fri, $W, timeZone: Europe/Berlin } ] }"
both accepted 'days apart' "$O, $G, headroom: { schedule: [ { days: \"sat,sun\", $W } ] }"
both accepted 'days written out' "$O, $G, headroom: { schedule: [ { days: Monday-Friday, $W } ] }"
both accepted 'days in a list' "$O, $G, headroom: { schedule: [ { days: [ mon, wed-fri ], $W } ] }"
both refused 'a day that is none' "$O, $G, headroom: { schedule: [ { days: mon-fry, $W } ] }"
both alone 'a number of a day' "$O, $G, headroom: { schedule: [ { days: 1, $W } ] }"
both alone 'no days' "$O, $G, headroom: { schedule: [ { days: [], $W } ] }"
both alone 'a day that is none in a list' "$O, $G, headroom: { schedule: [ { days: [ fry ], $W } ] }"
both refused 'a window without end' "$O, $G, headroom: { schedule: [ { min: 2, from: \"08:00\" } ] }"
both refused 'a window without min' "$O, $G, headroom: { schedule: [ { from: \"08:00\", to: \"19:00\" } ] }"
both refused 'a window from 25:00' "$O, $G, headroom: { schedule: [ { min: 2, from: \"25:00\", to: \"19:00\" } ] }"
both refused 'a window from 24:00' "$O, $G, headroom: { schedule: [ { min: 2, from: \"24:00\", to: \"19:00\" } ] }"
both refused 'a window above max' "$O, $G, headroom: { max: 1, schedule: [ { $W } ] }"
both alone 'a zone that nobody knows' "$O, $G, headroom: { schedule: [ { $W, timeZone: Europe/Nowhere } ] }"
both refused 'a zone of blanks' "$O, $G, headroom: { schedule: [ { $W, timeZone: \"a b\" } ] }"
both accepted 'cron' "$O, $G, headroom: { schedule: [ { min: 2, cron: \"0 8 * * mon-fri\", for: 11h } ] }"
both accepted 'cron, twice a day' "$O, $G, headroom: { schedule: [ { min: 2, cron: \"0 8,18 * * 1-5\", for: 2h } ] }"
both accepted 'cron, every day for a day' "$O, $G, headroom: { schedule: [ { min: 2, cron: \"0 8 * * *\", for: 1d } ] }"
both refused 'cron without for' "$O, $G, headroom: { schedule: [ { min: 2, cron: \"0 8 * * mon-fri\" } ] }"
both refused 'cron with from' "$O, $G, headroom: { schedule: [ { min: 2, cron: \"0 8 * * *\", for: 1h, from: \"08:00\" } ] }"
both alone 'cron with days' "$O, $G, headroom: { schedule: [ { min: 2, cron: \"0 8 * * *\", for: 1h, days: mon } ] }"
both refused 'for without cron' "$O, $G, headroom: { schedule: [ { $W, for: 1h } ] }"
both refused 'cron by the month' "$O, $G, headroom: { schedule: [ { min: 2, cron: \"0 8 1 * *\", for: 1h } ] }"
both refused 'cron in steps' "$O, $G, headroom: { schedule: [ { min: 2, cron: \"*/5 8 * * *\", for: 1h } ] }"
both refused 'cron for seconds' "$O, $G, headroom: { schedule: [ { min: 2, cron: \"0 8 * * *\", for: 90s } ] }"
both refused 'cron at 25' "$O, $G, headroom: { schedule: [ { min: 2, cron: \"0 25 * * *\", for: 1h } ] }"
both refused 'cron for two days' "$O, $G, headroom: { schedule: [ { min: 2, cron: \"0 8 * * *\", for: 2d } ] }"

both accepted 'scale-down after a week' "$O, $G, scaleDown: { after: 1w }"
both accepted 'scale-down by itself' "$O, $G, scaleDown: { after: auto }"
both refused 'scale-down at once' "$O, $G, scaleDown: { after: 0s }"
both refused 'scale-down never' "$O, $G, scaleDown: { after: never }"
both refused 'scale-down after two weeks' "$O, $G, scaleDown: { after: 2w }"
both accepted 'scale-down after a week in hours' "$O, $G, scaleDown: { after: 1d144h }"
both refused 'scale-down after days and too many hours' "$O, $G, scaleDown: { after: 6d100h }"
both accepted 'lending' "$O, $G, lend: { to: [ batch, training ], yieldWithin: 30s }"
both refused 'lending to itself' "$O, $G, lend: { to: [ interactive ] }"
both refused 'lending to itself by name' "$O, $G, class: batch, lend: { to: [ batch ] }"
both refused 'lending to nobody known' "$O, $G, lend: { to: [ cron ] }"
both refused 'lending to a text' "$O, $G, lend: { to: batch }"
both refused 'a priority below 0' "$O, $G, shrinkPriority: -1"
both accepted 'a budget' "$O, $G, budget: { dollarsPerHour: 200, name: team }"
both refused 'a budget of nothing' "$O, $G, budget: { dollarsPerHour: 0 }"
both refused 'a budget without an amount' "$O, $G, budget: { name: team }"
both refused 'a budget of two names' "$O, $G, budget: { dollarsPerHour: 1, name: \"a b\" }"
both refused 'a budget below min' "$O, nodeGroups: [ { name: a, min: 3, pricePerHour: 2 } ], budget: { dollarsPerHour: 5 }"
both accepted 'a budget of just min' "$O, nodeGroups: [ { name: a, min: 3, pricePerHour: 0.1 } ], budget: { dollarsPerHour: 0.3 }"
both alone 'a budget below one node' "$O, nodeGroups: [ { name: a, pricePerHour: 9 } ], budget: { dollarsPerHour: 5 }"
both accepted 'a budget of the default pool' "class: any, $G, budget: { dollarsPerHour: 200, name: team }"
both refused 'an objective of the default pool' "class: any, $O, $G"

named accepted chat-2
named refused Chat
named refused chat.prod
named refused "$(printf 'a%.0s' {1..64})"

kubectl create namespace research >/dev/null
for file in "$root"/examples/*/pool*.yaml; do
	verdicts "$file" accepted "$file"
done

printf '%s failed\n' "$failed"
[ "$failed" -eq 0 ]
