#!/usr/bin/env bash
# The Helm chart: what it refuses, that it says the same as the kustomize base and overlays, and its life in a cluster from
# install to uninstall.
# Usage: tests/rig/with_rig.sh tests/deploy/helm_test.sh PREHEAT HELM
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
deploy=$here/../../deploy
chart=$deploy/charts/preheat
preheat=$1 helm=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HELM_CACHE_HOME=$scratch/cache HELM_CONFIG_HOME=$scratch/config HELM_DATA_HOME=$scratch/data
# shellcheck source=tests/deploy/verdicts.sh
. "$here/verdicts.sh"

# Helm 3 from its module knows of no later Kubernetes than 1.20 unless told.
render() { "$helm" template preheat "$chart" -n preheat --kube-version 1.31.0 "$@"; }

# refused WHAT PART OPTION...: with these values nothing is rendered, and Helm says PART
refused() {
	local what=$1 part=$2 status=0
	shift 2
	render "$@" >"$scratch/rendered" 2>"$scratch/refused" || status=$?
	is "$what: exit code" 1 $status
	has "$what" "$part" "$(cat "$scratch/refused")"
}

values() {
	taken 'lint' "$helm" lint --strict --kube-version 1.31.0 "$chart"
	is 'the alerts are those of deploy/alerts' '' "$(cmp "$deploy/alerts/prometheus-rule.yaml" "$chart/files/prometheus-rule.yaml" 2>&1)"
	is 'the dashboard is that of deploy/dashboards' '' "$(cmp "$deploy/dashboards/preheat.json" "$chart/files/dashboard.json" 2>&1)"
	is 'alerts and dashboard on request' "$(grep -c 'alert: ' "$deploy/alerts/prometheus-rule.yaml") grafana_dashboard: \"1\"" \
		"$(render --set metrics.prometheusRule.enabled=true,metrics.dashboard.enabled=true >"$scratch/rendered"
		   grep -c 'alert: ' "$scratch/rendered") $(grep -o 'grafana_dashboard: "1"' "$scratch/rendered")"
	is 'an alert for volumes, of this release alone' 2 "$(render --set metrics.prometheusRule.enabled=true,fullnameOverride=w |
		grep -o 'kubelet_volume_stats_[a-z_]*{namespace="preheat", persistentvolumeclaim=~"history-w-\[0-9\]+"}' | grep -c .)"
	is 'the kind is the one of the base' '' "$(cmp "$deploy/base/crd.yaml" "$chart/files/crd.yaml" 2>&1)"
	refused 'no replica' "at '/replicas': minimum: got 0, want 1" --set replicas=0
	refused 'an unknown value' "additional properties 'replica' not allowed" --set replica=3
	refused 'an unknown value within' "at '/persistence': additional properties 'sise' not allowed" --set persistence.sise=1Gi
	refused 'an unknown identity' "must be one of 'none', 'eks-irsa', 'eks-pod-identity', 'aks-workload-identity'" \
		--set identity.provider=gke
	refused 'IRSA without a role' 'do: --set identity.roleArn=arn:aws:iam::ACCOUNT:role/NAME' --set identity.provider=eks-irsa
	refused 'a role that is none' "at '/identity/roleArn': 'admin' does not match" \
		--set identity.provider=eks-irsa,identity.roleArn=admin
	refused 'a role without IRSA' 'do: --set identity.provider=eks-irsa' --set identity.roleArn=arn:aws:iam::111122223333:role/x
	refused 'workload identity without its id' 'do: --set identity.clientId=CLIENT-ID' --set identity.provider=aks-workload-identity
	refused 'an id for an account that is not made' 'do: annotate it yourself' --set identity.provider=aks-workload-identity \
		--set serviceAccount.create=false,serviceAccount.name=ours,identity.clientId=00000000-0000-0000-0000-000000000000
	taken 'workload identity of an account that is there' render --set identity.provider=aks-workload-identity,serviceAccount.create=false,serviceAccount.name=ours
	has 'the label that the webhook looks for' 'azure.workload.identity/use: "true"' "$said"
	refused 'a client id without AKS' 'do: --set identity.provider=aks-workload-identity' \
		--set identity.clientId=00000000-0000-0000-0000-000000000000
	refused 'no duration' "at '/interval': 'fast' does not match" --set interval=fast
	refused 'a tick that run refuses' "at '/interval': '1ms' does not match" --set interval=1ms
	refused 'nothing retained by size' "at '/retainSize': '100%' does not match" --set retainSize=100%
	refused 'nothing retained' "at '/retain': '0d' does not match" --set retain=0d
	refused 'no size' "at '/persistence/size': 'lots' does not match" --set persistence.size=lots
	refused 'a page of what only records' 'do: leave web.tlsSecret out' --set watchOnly=true,web.tlsSecret=x
	refused 'a dry run of what only records' 'do: set one of them' --set watchOnly=true,dryRun=true
	refused 'no account' 'do: --set serviceAccount.name=NAME' --set serviceAccount.create=false
	refused 'a role for an account that is not made' 'do: annotate it yourself' \
		--set serviceAccount.create=false,serviceAccount.name=ours,identity.provider=eks-irsa,identity.roleArn=arn:aws:iam::111122223333:role/x
	refused 'a name that is too long' "at '/fullnameOverride'" --set "fullnameOverride=$(printf 'a%.0s' {1..53})"
	refused 'nothing to do' 'give pools, or leave watchPools true' --set watchPools=false
	refused 'half a pool' "at '/pools/0': missing property 'spec'" --set 'pools[0].metadata.name=x'
	refused 'a pool without node groups' "missing property 'nodeGroups'" --set 'pools[0].metadata.name=x,pools[0].spec.class=any'
	taken 'a pool without an objective' render --set 'pools[0].metadata.name=x,pools[0].spec.class=any,pools[0].spec.nodeGroups[0].name=g'
	refused 'a tag within the repository' "at '/image/repository'" --set image.repository=registry.example/preheat:1
	taken 'a port within the repository' render --set image.repository=registry.example:5000/ours/preheat
	refused 'less history than the program retains' "at '/retainSize'" --set retainSize=15Mi
	taken 'as little as it does' render --set retainSize=16Mi
	refused 'a label of the selector' 'podLabels has app.kubernetes.io/name' --set 'podLabels.app\.kubernetes\.io/name=x'
	taken 'names with dots' render --set credentialsSecret=of.ours,serviceAccount.name=runs.it
	refused 'a name with blanks' "at '/rbac/placeholderNamespaces/0'" --set 'rbac.placeholderNamespaces={a b}'
	refused 'an object of no kind' "missing property 'kind'" --set 'extraObjects[0].apiVersion=v1'
}

# absent WHAT: what standard input sets to null, as a release of an older chart has nothing of it, is rendered as the defaults
absent() {
	cat >"$scratch/absent.yaml"
	render -f "$scratch/absent.yaml" >"$scratch/rendered" 2>&1 || :
	is "$1" '' "$(diff "$scratch/defaults" "$scratch/rendered" | head -5)"
}

older() {
	local optional='resources|nodeSelector|priorityClassName|topologySpreadConstraints'
	render >"$scratch/defaults"
	sed -n 's/^\([a-zA-Z]*\):.*/\1: null/p' "$chart/values.yaml" | grep -vE "^($optional):" | absent 'none of the values'
	sed -n 's/^\([a-zA-Z]*:\)$/\1/p; s/^  \([a-zA-Z]*\):.*/  \1: null/p' "$chart/values.yaml" |
		grep -vE "^($optional):|^  (requests|limits):" | absent 'nothing within them'
	printf '%s: null\n' ${optional//|/ } >"$scratch/absent.yaml"
	is 'what a pod can do without is left out' 0 "$(render -f "$scratch/absent.yaml" --show-only templates/controller.yaml | grep -cE "^( {6}| {10})($optional):")"
	refused 'an argument that is empty' "at '/retainSize'" --set retainSize=
	refused 'another that is empty' "at '/extraArgs/0'" --set 'extraArgs={}' --set 'extraArgs[0]='
}

options() {
	local made
	made=$(render --set image.repository=registry.example/preheat --set-string image.tag=1,image.digest="sha256:$(printf 'a%.0s' {1..64})" \
		--set metrics.serviceMonitor.enabled=true,metrics.serviceMonitor.labels.release=prometheus,metrics.scrapeAnnotations=false \
		--set 'networkPolicy.scrapeNamespaces={observability}' --set-json 'networkPolicy.extraEgress=[{"ports":[{"port":9092}]}]' \
		--set priorityClasses.create=false,crds.create=false,priorityClassName= --set-json 'extraEnv=[{"name":"AWS_REGION","value":"eu-west-1"}]' \
		--set dryRun=true --set 'extraArgs={--speed=2}' --set-json 'extraVolumes=[{"name":"v","emptyDir":{}}]' \
		--set-json 'extraVolumeMounts=[{"name":"v","mountPath":"/var/v"}]' \
		--set-json 'topologySpreadConstraints=[{"maxSkew":3,"topologyKey":"rack","whenUnsatisfiable":"DoNotSchedule"}]' \
		--set persistence.storageClass=fast --set-json 'imagePullSecrets=[{"name":"pull"}]' \
		--set-json 'tolerations=[{"key":"k","operator":"Exists"}]' --set podLabels.team=ml \
		--set-json 'extraObjects=[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"more"}}]')
	for part in 'image: "registry.example/preheat@sha256:aaaa' 'kind: ServiceMonitor' 'release: prometheus' \
		'kubernetes.io/metadata.name: observability' 'port: 9092' '            - --dry-run' '"--speed=2"' 'mountPath: /var/v' 'topologyKey: rack' 'storageClassName: fast' '- name: pull' \
		'name: AWS_REGION' 'operator: Exists' 'team: ml' 'name: more'; do
		has 'the values are taken' "$part" "$made"
	done
	for part in 'kind: PriorityClass' 'kind: CustomResourceDefinition' 'prometheus.io/scrape' 'priorityClassName'; do
		is "left out: $part" 0 "$(grep -c -- "$part" <<<"$made")"
	done
}

# notes OPTION...: what is said after an installation
notes() { "$helm" install preheat "$chart" -n preheat --dry-run=client "$@" 2>&1 | sed -n '/^NOTES:/,$p'; }

told() {
	local made
	made=$(notes --set watchOnly=true)
	has 'what only records is one' '1 replica, which only records' "$made"
	is 'has no page and no decisions' 0 "$(grep -cE 'page|8081|explain|leads' <<<"$made")"
	has 'but a recording' 'preheat simulate --recording' "$made"
	has 'a dry run is one' '1 replica, which changes nothing' "$(notes --set dryRun=true)"
}

# retained OPTION...: the size at which the oldest of the history goes
retained() { render --show-only templates/controller.yaml "$@" | sed -n '/--retain-size/{n;s/^ *- //p}'; }

kept() {
	is 'a share of a volume' '"80%"' "$(retained)"
	is 'bytes of a volume' '"12Gi"' "$(retained --set retainSize=12Gi)"
	is 'in the pod a share of its limit' '"8Gi"' "$(retained --set persistence.enabled=false)"
	is 'that is no whole number of Gi' '"3584Mi"' "$(retained --set persistence.enabled=false,persistence.size=7Gi,retainSize=50%)"
	is 'of a limit in units of ten' '"762Mi"' "$(retained --set persistence.enabled=false,persistence.size=1G)"
	is 'bytes below the limit' '"2Gi"' "$(retained --set persistence.enabled=false,retainSize=2Gi)"
	refused 'bytes at the limit' 'retainSize 10Gi is not less than persistence.size 10Gi' --set persistence.enabled=false,retainSize=10Gi
	refused 'a limit that holds nothing' 'less than the 16Mi' --set persistence.enabled=false,persistence.size=16Mi
}

# names OPTION...: what is called how, of which accounts
names() {
	local made
	made=$(render "$@")
	printf '%s\n' "$made" | sed -n 's/^  name: //p; s/^ *serviceAccountName: /runs as /p; s/.*kind: ServiceAccount, name: \([^,]*\),.*/for \1/p' | LC_ALL=C sort -u |
		grep -v 'gpu-\|placeholder\|-prefetch$\|-share$\|-activator$\|warmpools' | tr '\n' ' '
}

called() {
	is 'nothing is called otherwise' 'for preheat preheat preheat-act preheat-leader runs as preheat ' "$(names)"
	is 'another name' 'for preheat-warm preheat-warm preheat-warm-act preheat-warm-leader runs as preheat-warm ' "$(names --set nameOverride=warm)"
	is 'one name for all' 'for w runs as w w w-act w-leader ' "$(names --set fullnameOverride=w)"
	is 'what changes nothing has no right to' 'for preheat preheat runs as preheat ' "$(names --set dryRun=true)"
	is 'nor has what only records' 'for preheat preheat runs as preheat ' "$(names --set watchOnly=true)"
	is 'of node objects it reads' 'get list ' "$(render --set dryRun=true,rbac.nodeObjects=true --show-only templates/rbac-node-objects.yaml |
		sed -n 's/.*verbs: \[\(.*\)\]/\1/p' | tr -d ' ' | tr ',' '\n' | LC_ALL=C sort -u | tr '\n' ' ')"
	is 'nor two replicas, or a Lease' '  replicas: 1' "$(render --set dryRun=true,fullnameOverride=w --show-only templates/controller.yaml |
		grep -E 'replicas:|--lease')"
	is 'an account that is there' 'for ours preheat preheat-act preheat-leader runs as ours ' \
		"$(names --set serviceAccount.create=false,serviceAccount.name=ours)"
	is 'placeholders are for it, too' 2 "$(render --set serviceAccount.name=ours --set-json 'rbac.placeholderNamespaces=["a","b"]' |
		grep -A12 'name: preheat-placeholders$' | grep -c 'name: ours')"
	is 'rights of a share in its namespaces' 2 "$(render --set-json 'rbac.shareNamespaces=["a","b"]' | grep -c '^  name: preheat-share$' | awk '{ print $1 - 1 }')"
	is 'rights to pull ahead in their namespaces' 2 "$(render --set-json 'rbac.prefetchNamespaces=["a","b"]' | grep -c '^  name: preheat-prefetch$' | awk '{ print $1 - 1 }')"
	is 'rights to hold requests in their namespaces' 2 "$(render --set-json 'rbac.activatorNamespaces=["a","b"]' | grep -c '^  name: preheat-activator$' | awk '{ print $1 - 1 }')"
	has 'what it is annotated with' 'team: ml' "$(render --set serviceAccount.annotations.team=ml)"
}

# stored FILE: the objects on standard input as the API server would store them
stored() { kubectl apply --server-side --dry-run=server -o json -f - >"$1"; }

# equal NAME FOLDER OPTION...: the chart with these options says what the kustomize folder says
equal() {
	local name=$1 folder=$2
	shift 2
	kubectl kustomize "$folder" | stored "$scratch/kustomize.json"
	render "$@" | stored "$scratch/helm.json"
	said=$(python3 -B "$here/same.py" "$scratch/kustomize.json" "$scratch/helm.json") || :
	has "as kustomize: $name" 'objects the same' "$said"
}

meaning() {
	kubectl get namespace preheat >/dev/null 2>&1 || kubectl create namespace preheat >/dev/null
	equal base "$deploy/base"
	equal eks-irsa "$deploy/overlays/eks-irsa" --set identity.provider=eks-irsa,identity.roleArn=arn:aws:iam::111122223333:role/preheat
	equal eks-pod-identity "$deploy/overlays/eks-pod-identity" --set identity.provider=eks-pod-identity
	equal aks-workload-identity "$deploy/overlays/aks-workload-identity" \
		--set identity.provider=aks-workload-identity,identity.clientId=00000000-0000-0000-0000-000000000000
	mkdir "$scratch/all"
	printf 'resources: [%s]\ncomponents: [%s, %s, %s]\n' "$(realpath --relative-to="$scratch/all" "$deploy/base")" \
		"$(realpath --relative-to="$scratch/all" "$deploy/components/node-objects")" \
		"$(realpath --relative-to="$scratch/all" "$deploy/components/ephemeral")" \
		"$(realpath --relative-to="$scratch/all" "$deploy/components/web")" >"$scratch/all/kustomization.yaml"
	mkdir "$scratch/watch"
	printf 'resources: [%s]\ncomponents: [%s]\n' "$(realpath --relative-to="$scratch/watch" "$deploy/base")" \
		"$(realpath --relative-to="$scratch/watch" "$deploy/components/watch-only")" >"$scratch/watch/kustomization.yaml"
	equal watch-only "$scratch/watch" --set watchOnly=true
	equal components "$scratch/all" --set rbac.nodeObjects=true,persistence.enabled=false,web.tlsSecret=preheat-web-tls
}

get() { kubectl get -n preheat "$1" "$2" -o "jsonpath=$3"; }

life() {
	local run='{.spec.template.spec.containers[0].args}'
	taken 'install' "$helm" install preheat "$chart" -n preheat --create-namespace
	has 'what to do next' 'preheat provider check' "$said"
	is 'two replicas' 2 "$(get sts preheat '{.spec.replicas}')"
	{
		printf 'watchPools: false\npools:\n'
		printf -- '- metadata: { name: chat, namespace: llm }\n  spec: { objective: { queueWait: 2s, attainment: 99%% }, '
		printf 'workload: { maxSequences: 105 }, nodeGroups: [ { name: g5, pricePerHour: 1.21, min: 1, max: 20, gpusPerNode: 1 } ] }\n'
	} >"$scratch/values.yaml"
	taken 'upgrade, with pools' "$helm" upgrade preheat "$chart" -n preheat -f "$scratch/values.yaml" --set replicas=3
	is 'three replicas' 3 "$(get sts preheat '{.spec.replicas}')"
	has 'it reads them' '"-f","/etc/preheat/pools/pools.yaml"' "$(get sts preheat "$run")"
	get configmap preheat-pools '{.data.pools\.yaml}' >"$scratch/pools.yaml"
	taken 'the program takes what the chart wrote' "$preheat" check "$scratch/pools.yaml"
	taken 'rollback' "$helm" rollback preheat 1 -n preheat
	is 'two replicas again' '2 ["run","--watch-pools"' "$(get sts preheat "{.spec.replicas} $run" | cut -d, -f1-2)"
	kubectl wait --for=jsonpath='{.status.replicas}'=2 -n preheat sts/preheat --timeout=120s >/dev/null
	taken 'uninstall' "$helm" uninstall preheat -n preheat
	is 'the kind stays, and with it the WarmPools' 'customresourcedefinition.apiextensions.k8s.io/warmpools.preheat.dev' \
		"$(kubectl get crd warmpools.preheat.dev -o name)"
	has 'the volumes stay' history-preheat-0 "$(kubectl get pvc -n preheat -o name)"
	is 'all else is gone' '' "$(kubectl get clusterrole,clusterrolebinding,priorityclass -o name | grep -E 'preheat|/gpu-' || :)"
	taken 'another name' "$helm" install warm "$chart" -n preheat --set crds.create=false --set-json 'rbac.placeholderNamespaces=["default"]'
	has 'has a Lease of its own' '"--lease","warm-preheat"' "$(get sts warm-preheat "$run")"
	is 'that it may have' warm-preheat "$(get role warm-preheat-leader '{.rules[1].resourceNames[0]}')"
	is 'rights for placeholders' warm-preheat "$(kubectl get rolebinding warm-preheat-placeholders -n default -o 'jsonpath={.subjects[0].name}')"
	"$helm" uninstall warm -n preheat >/dev/null 2>&1
}

values
older
options
kept
called
told
meaning
life
kubectl delete pvc --all -n preheat >/dev/null
kubectl delete crd warmpools.preheat.dev >/dev/null
ended
