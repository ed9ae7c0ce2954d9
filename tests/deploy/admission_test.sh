#!/usr/bin/env bash
# The scheduling contract at a real API server: deploy/admission refuses what breaks a rule, in every kind that makes pods,
# and takes what does not; `preheat check --cluster` finds live what `preheat check` finds in the files.
# Usage: tests/rig/with_rig.sh tests/deploy/admission_test.sh PREHEAT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
preheat=$(realpath "$1")

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# shellcheck source=tests/deploy/verdicts.sh
. "$here/verdicts.sh"

object() { python3 -B "$here/admission_cases.py" one "$1"; }

# judged FILE: the rules that its object is refused by, or warned of; "" when it is taken
judged() {
	kubectl create --dry-run=server -f "$1" >"$scratch/said" 2>&1 || true
	grep -oE "preheat-[a-z-]+' with binding" "$scratch/said" | sed "s/^preheat-//; s/' with binding//" |
		sort -u | paste -sd' ' || true
}

# until_judged NAME RULES FILE [PART]: what the server watches reaches it a little later; PART is in what it says
until_judged() {
	local tries found said
	for tries in {1..100}; do
		found=$(judged "$3") said=$(cat "$scratch/said")
		[ "$found" != "$2" ] || [[ $said != *"${4:-}"* ]] || break
		sleep 0.3
	done
	is "$1 (try $tries)" "$2" "$found"
	has "$1 (try $tries)" "${4:-}" "$said"
}

refusals() {
	local status=0
	taken 'deny' kubectl apply --server-side -k "$root/deploy/admission/deny"
	for case in 'Deployment: no pool' 'Deployment: no cost centre' 'Deployment: every taint' \
		'Deployment: every taint without GPUs'; do
		object "$case" >"$scratch/probe"
		case $case in
		*pool) until_judged "$case" gpu-needs-pool "$scratch/probe" ;;
		*cost*) until_judged "$case" cost-labels "$scratch/probe" ;;
		*taint) until_judged "$case" toleration-exact "$scratch/probe" ;;
		*) until_judged "$case" general-pods "$scratch/probe" ;;
		esac
	done
	python3 -B "$here/admission_cases.py" list >"$scratch/list"
	kubectl create --dry-run=server -f "$scratch/list" >"$scratch/said" 2>&1 || true
	python3 -B "$here/admission_cases.py" compare "$scratch/said" >"$scratch/compared" || status=$?
	is 'every case' 0 "$status$([ $status -eq 0 ] || cat "$scratch/compared")"
	is 'no expression has a wrong type' '' "$(kubectl get validatingadmissionpolicies \
		-o 'jsonpath={.items[*].status.typeChecking.expressionWarnings[*].warning}')"
}

# What a team sets: other cost labels, a namespace that is left alone; and what was there before.
settings() {
	local bad=$scratch/bad
	object 'Deployment: no cost centre' >"$bad"
	object 'Deployment: whole' >"$scratch/whole"
	kubectl label namespace llm preheat.dev/admission=off >/dev/null
	until_judged 'a namespace left alone' '' "$bad"
	kubectl create -f "$bad" >/dev/null
	kubectl label namespace llm preheat.dev/admission- >/dev/null
	until_judged 'no longer' cost-labels "$bad"
	taken 'what was there before may be scaled' kubectl scale deployment case -n llm --replicas=3
	taken 'and changed elsewhere' kubectl annotate deployment case -n llm note=kept
	is 'but not its pods' 1 "$(kubectl set image deployment/case -n llm server=registry.invalid/a:2 2>&1 | grep -c cost-labels)"
	kubectl delete deployment case -n llm >/dev/null
	kubectl patch validatingadmissionpolicy preheat-cost-labels --type json \
		-p "[{\"op\":\"replace\",\"path\":\"/spec/variables/0/expression\",\"value\":\"['team']\"}]" >/dev/null
	until_judged 'another set of cost labels' cost-labels "$scratch/whole"
	taken 'warn' kubectl apply --server-side --force-conflicts -k "$root/deploy/admission/warn"
	until_judged 'warned, and taken' cost-labels "$bad" 'created (server dry run)'
	taken 'gone' kubectl delete -k "$root/deploy/admission/warn"
	until_judged 'no policy' '' "$bad"
}

# Nodes are objects without machines here: what they have is written.
node() {
	kubectl apply -f - >/dev/null <<-NODE
		apiVersion: v1
		kind: Node
		metadata: { name: $1, labels: { $2 } }
		spec: { taints: [ $3 ] }
	NODE
	kubectl patch node "$1" --subresource=status --type=merge \
		-p "{\"status\":{\"capacity\":{$4,\"pods\":\"110\"},\"allocatable\":{$4,\"pods\":\"110\"}}}" >/dev/null
}

live() {
	local cases=$root/tests/unit/contract/cases
	"$root/tests/rig/apply_crd.sh"
	kubectl create namespace contract >/dev/null
	kubectl apply --server-side -f "$root/deploy/base/priorities.yaml" >/dev/null
	taken 'the account' kubectl apply --server-side -k "$root/deploy/check"
	"$root/tests/rig/kubeconfig_for.sh" preheat preheat-check >"$scratch/account"
	kubectl apply --server-side -f "$cases/live.yaml" >/dev/null
	node gpu-1 'eks.amazonaws.com/nodegroup: g5-a, nvidia.com/gpu.product: NVIDIA-A10G' '{ key: nvidia.com/gpu, value: present, effect: NoSchedule }' \
		'"cpu":"3920m","memory":"15200000Ki","nvidia.com/gpu":"1"'
	node gpu-2 'eks.amazonaws.com/nodegroup: g5-b, nvidia.com/gpu.product: NVIDIA-A10G' '' \
		'"cpu":"3920m","memory":"15200000Ki","nvidia.com/gpu":"1"'
	local status=0
	"$preheat" check --cluster --kubeconfig "$scratch/account" -o csv >"$scratch/found" 2>"$scratch/said" || status=$?
	is 'found something' '1 ' "$status $(cat "$scratch/said")"
	is 'live' "$(cat "$cases/live.expected")" "$(cut -d, -f1-5 "$scratch/found" |
		grep -E ',(contract,[a-z]+|,gpu-[12])$' | LC_ALL=C sort)"
	status=0
	"$preheat" check --cluster --kubeconfig "$scratch/account" -n contract >/dev/null || status=$?
	is 'one namespace' 1 "$status"
	"$preheat" check --cluster --kubeconfig "$scratch/account" -o sarif >"$scratch/sarif" || true
	is 'as SARIF' 2.1.0 "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["version"])' "$scratch/sarif")"
	kubectl delete clusterrolebinding preheat-check >/dev/null
	status=0
	"$preheat" check --cluster --kubeconfig "$scratch/account" >/dev/null 2>"$scratch/said" || status=$?
	is 'not permitted' 3 "$status"
	has 'not permitted' 'reading nodes' "$(cat "$scratch/said")"
	is 'read only' '' "$(python3 -c '
import json, sys
for line in open(sys.argv[1]):
    e = json.loads(line)
    if e["user"]["username"].endswith(":preheat-check") and e["verb"] not in ("list", "get"):
        print(e["verb"], e["requestURI"])' "$RIG_DIR/audit.log")"
}

kubectl create namespace llm --dry-run=client -o yaml | kubectl apply --server-side -f - >/dev/null
kubectl apply --server-side -f "$root/deploy/base/namespace.yaml" >/dev/null
refusals
settings
live
ended
