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

# judged FILE: the rules that its object is refused by, or warned of; "" when it is taken
judged() {
	kubectl create --dry-run=server -f "$1" >"$scratch/said" 2>&1 || true
	grep -oE "preheat-[a-z-]+' with binding" "$scratch/said" | sed "s/^preheat-//; s/' with binding//" | sort -u | paste -sd' ' || true
}

# A policy counts a little after it was applied.
await_policies() {
	local tries
	for tries in {1..100}; do
		sed -n "/\"rule\": \"$1\"/{p;q}" "$scratch/cases" | jq_object >"$scratch/probe"
		[ "$(judged "$scratch/probe")" != "$1" ] || return 0
		sleep 0.3
	done
	echo "after $tries tries the policy $1 does not count: $(cat "$scratch/said")"
	return 1
}

jq_object() { python3 -c 'import json, sys; print(json.dumps(json.loads(sys.stdin.readline())["object"]))'; }

member() { python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())[sys.argv[1]])' "$1"; }

refusals() {
	local rule line name wanted
	python3 -B "$here/admission_cases.py" >"$scratch/cases"
	taken 'deny' kubectl apply --server-side -k "$root/deploy/admission/deny"
	for rule in gpu-limits gpu-needs-pool cost-labels toleration-exact general-pods; do
		await_policies $rule
	done
	while IFS= read -r line; do
		name=$(member name <<<"$line") wanted=$(member rule <<<"$line")
		jq_object <<<"$line" >"$scratch/object"
		is "$name" "$wanted" "$(judged "$scratch/object")"
		if [ -n "$wanted" ]; then
			has "$name: says what to do" "$wanted: " "$(cat "$scratch/said")"
			has "$name: says what to do" 'Do: ' "$(cat "$scratch/said")"
		else
			has "$name: is taken" 'created (server dry run)' "$(cat "$scratch/said")"
		fi
	done <"$scratch/cases"
	is 'no expression has a wrong type' '' "$(kubectl get validatingadmissionpolicies \
		-o 'jsonpath={.items[*].status.typeChecking.expressionWarnings[*].warning}')"
}

# Settings of a cluster: other cost labels, a namespace that is left alone, what was there before.
settings() {
	local bad=$scratch/bad
	grep -m 1 '"Deployment: no cost centre"' "$scratch/cases" | jq_object >"$bad"
	kubectl label namespace llm preheat.dev/admission=off >/dev/null
	until_judged 'a namespace left alone' '' "$bad"
	kubectl create -f "$bad" >/dev/null
	kubectl label namespace llm preheat.dev/admission- >/dev/null
	until_judged 'no longer' cost-labels "$bad"
	taken 'what was there before may be scaled' kubectl scale deployment case -n llm --replicas=3
	taken 'and changed elsewhere' kubectl annotate deployment case -n llm note=kept
	is 'but not its pods' 1 "$(kubectl set image deployment/case -n llm server=registry.invalid/a:2 2>&1 | grep -c cost-labels)"
	kubectl delete deployment case -n llm --wait=false >/dev/null
	kubectl patch configmap preheat-contract -n preheat --type merge -p '{"data":{"costLabels":"team, product"}}' >/dev/null
	until_judged 'another set of cost labels' cost-labels <(grep -m 1 '"Deployment: whole"' "$scratch/cases" | jq_object)
	taken 'warn' kubectl apply --server-side --force-conflicts -k "$root/deploy/admission/warn"
	until_judged 'warned' cost-labels "$bad"
	until_said 'and taken' 'created (server dry run)' "$bad"
}

# until_judged NAME RULES FILE: what the server watches reaches it a little later
until_judged() {
	local tries found object=$scratch/until
	cat "$3" >"$object"
	for tries in {1..100}; do
		found=$(judged "$object")
		[ "$found" != "$2" ] || break
		sleep 0.3
	done
	is "$1 (try $tries)" "$2" "$found"
}

until_said() {
	local tries
	for tries in {1..100}; do
		judged "$3" >/dev/null
		[[ $(cat "$scratch/said") != *"$2"* ]] || break
		sleep 0.3
	done
	has "$1 (try $tries)" "$2" "$(cat "$scratch/said")"
}

kubectl create namespace llm --dry-run=client -o yaml | kubectl apply --server-side -f - >/dev/null
kubectl apply --server-side -f "$root/deploy/base/namespace.yaml" >/dev/null
refusals
settings
ended
