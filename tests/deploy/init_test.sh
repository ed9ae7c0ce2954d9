#!/usr/bin/env bash
# preheat init asks a real API server: a service on a GPU node is found, and an account that may not look is told what it lacks.
# Usage: tests/rig/with_rig.sh tests/deploy/init_test.sh PREHEAT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
preheat=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# shellcheck source=tests/deploy/verdicts.sh
. "$here/verdicts.sh"

status=0
"$preheat" init --out "$scratch/none" >"$scratch/out" 2>"$scratch/err" || status=$?
is 'nothing serves: exit code' 1 $status
has 'nothing serves' 'nothing to look after: found no node' "$(cat "$scratch/err")"

kubectl create -f - >/dev/null <<'NODE'
{"apiVersion":"v1","kind":"Node","metadata":{"name":"init-gpu","labels":{"eks.amazonaws.com/nodegroup":"g5-od","node.kubernetes.io/instance-type":"g5.xlarge"}}}
NODE
kubectl patch node init-gpu --subresource=status --type=merge -p '{"status":{"conditions":[{"type":"Ready","status":"True"}],
	"allocatable":{"cpu":"4","memory":"16Gi","pods":"10","nvidia.com/gpu":"1"},"capacity":{"cpu":"4","memory":"16Gi","pods":"10","nvidia.com/gpu":"1"}}}' >/dev/null
kubectl taint node init-gpu node.kubernetes.io/not-ready- >/dev/null 2>&1 || :
kubectl create -f - >/dev/null <<'SERVICE'
apiVersion: apps/v1
kind: Deployment
metadata: { name: init-chat, namespace: default }
spec:
  replicas: 1
  selector: { matchLabels: { app: init-chat } }
  template:
    metadata: { labels: { app: init-chat } }
    spec:
      containers:
        - name: server
          image: vllm/vllm-openai:v0.11.0
          args: [--model, m, --max-num-seqs, "32"]
          ports: [ { name: http, containerPort: 8000 } ]
          resources: { limits: { nvidia.com/gpu: 1 } }
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: { name: init-chat, namespace: default }
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: init-chat }
  maxReplicas: 3
  metrics: [ { type: Pods, pods: { metric: { name: vllm_num_requests_waiting }, target: { type: AverageValue, averageValue: "5" } } } ]
SERVICE
for _ in $(seq 300); do
	[ -z "$(kubectl get pods -l app=init-chat -o 'jsonpath={.items[*].spec.nodeName}')" ] || break
	sleep 0.1
done
status=0
"$preheat" init --out "$scratch/found" >"$scratch/out" 2>"$scratch/err" || status=$?
is 'found: exit code' 0 $status
has 'the service' 'Deployment default/init-chat: vllm, 1 pod of 1 GPU on g5-od (1 node, g5.xlarge)' "$(cat "$scratch/out")"
has 'its sequences' 'maxSequences: 32' "$(cat "$scratch/found/pools.yaml")"
has 'who scales it' '"kind":"HorizontalPodAutoscaler"' "$(cat "$scratch/found/autoscalers.yaml")"
taken 'the check of what was written' "$preheat" check "$scratch/found/pools.yaml"

# An account that may see what serves, and not who scales it.
kubectl create serviceaccount init-half >/dev/null
kubectl create clusterrole init-half --verb=list --resource=nodes,pods,deployments,statefulsets >/dev/null
kubectl create clusterrolebinding init-half --clusterrole=init-half --serviceaccount=default:init-half >/dev/null
"$here/../rig/kubeconfig_for.sh" default init-half >"$scratch/half"
status=0
"$preheat" init --kubeconfig "$scratch/half" --out "$scratch/half-out" >"$scratch/out" 2>"$scratch/err" || status=$?
is 'half of the rights: exit code' 0 $status
has 'what is missing is said' 'horizontalpodautoscalers were not read, and are left out' "$(cat "$scratch/err")"
is 'who scales it is not known' 'pools.yaml' "$(ls "$scratch/half-out")"

kubectl create serviceaccount init-blind >/dev/null
"$here/../rig/kubeconfig_for.sh" default init-blind >"$scratch/blind"
status=0
"$preheat" init --kubeconfig "$scratch/blind" --out "$scratch/blind-out" >"$scratch/out" 2>"$scratch/err" || status=$?
is 'no rights: exit code' 1 $status
for what in nodes deployments statefulsets pods; do
	has "no rights on $what" "$what were not read" "$(cat "$scratch/err")"
done
is 'nothing was written' '' "$(ls "$scratch/blind-out")"
kubectl delete clusterrolebinding,clusterrole init-half >/dev/null
kubectl delete deployment,hpa,serviceaccount init-chat init-blind init-half --ignore-not-found >/dev/null 2>&1
kubectl delete node init-gpu >/dev/null
ended
