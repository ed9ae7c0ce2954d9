#!/usr/bin/env bash
# The kustomize base, its components and overlays, applied to a real API server: taken without a warning, with what each
# promises in it.
# Usage: tests/rig/with_rig.sh tests/deploy/kustomize_test.sh
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
deploy=$here/../../deploy
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# shellcheck source=tests/deploy/verdicts.sh
. "$here/verdicts.sh"

get() { kubectl get -n preheat "$1" "$2" -o "jsonpath=$3"; }

applied() {
	local pod='{.spec.template.spec'
	taken base kubectl apply --server-side -k "$deploy/base"
	is 'two replicas that start together' '2 Parallel' "$(get sts preheat '{.spec.replicas} {.spec.podManagementPolicy}')"
	kubectl wait --for=jsonpath='{.status.replicas}'=2 -n preheat sts/preheat --timeout=120s >/dev/null
	is 'pods are made under the restricted standard' 'preheat-0 preheat-1' \
		"$(kubectl get pods -n preheat -o 'jsonpath={.items[*].metadata.name}')"
	is 'a volume for each' 'history-preheat-0 history-preheat-1' \
		"$(kubectl get pvc -n preheat -o 'jsonpath={.items[*].metadata.name}')"
	is 'no root' 'true 65532 RuntimeDefault' "$(get sts preheat \
		"$pod.securityContext.runAsNonRoot} $pod.securityContext.runAsUser} $pod.securityContext.seccompProfile.type}")"
	is 'nothing to write to but the volume' 'true ["ALL"] false' "$(get sts preheat "$pod.containers[0].securityContext.readOnlyRootFilesystem} \
$pod.containers[0].securityContext.capabilities.drop} $pod.containers[0].securityContext.allowPrivilegeEscalation}")"
	is 'one pod at a time is drained' 1 "$(get pdb preheat '{.spec.maxUnavailable}')"
	is 'both ways are bounded' '["Ingress","Egress"]' "$(get netpol preheat '{.spec.policyTypes}')"
	is 'who pushes out whom' 'gpu-critical 1000000, gpu-standard 100000, gpu-batch 1000 Never, preheat-placeholder -1000 Never, ' \
		"$(for name in gpu-critical gpu-standard gpu-batch preheat-placeholder; do
			kubectl get priorityclass $name -o 'jsonpath={.metadata.name} {.value} {.preemptionPolicy}, ' | sed 's/ PreemptLowerPriority//'
		done)"
	taken 'the same again' kubectl apply --server-side -k "$deploy/base"
}

overlays() {
	local name
	for name in eks-irsa eks-pod-identity aks-workload-identity; do
		taken "overlay $name" kubectl apply --server-side -k "$deploy/overlays/$name"
		case $name in
		eks-irsa) has 'the role' 'arn:aws:iam::' "$(get sa preheat '{.metadata.annotations}')" ;;
		eks-pod-identity) has 'the way to the agent' '169.254.170.23/32' "$(get netpol preheat '{.spec.egress}')" ;;
		aks-workload-identity)
			has 'the identity' 'azure.workload.identity/client-id' "$(get sa preheat '{.metadata.annotations}')"
			is 'the label that the webhook looks for' true \
				"$(get sts preheat '{.spec.template.metadata.labels.azure\.workload\.identity/use}')"
			;;
		esac
	done
}

# composed NAME COMPONENT...: an overlay of the base with these
composed() {
	local name=$1 component
	shift
	mkdir -p "$scratch/$name"
	{
		printf 'resources: [%s]\ncomponents:\n' "$(realpath --relative-to="$scratch/$name" "$deploy/base")"
		for component; do
			printf -- '- %s\n' "$(realpath --relative-to="$scratch/$name" "$deploy/components/$component")"
		done
	} >"$scratch/$name/kustomization.yaml"
}

components() {
	kubectl delete -n preheat sts preheat --cascade=orphan >/dev/null
	composed all node-objects ephemeral web
	taken 'the components' kubectl apply --server-side -k "$scratch/all"
	is 'no volumes are claimed' '' "$(get sts preheat '{.spec.volumeClaimTemplates}')"
	has 'the history is in the pod' 'emptyDir' "$(get sts preheat '{.spec.template.spec.volumes[?(@.name=="history")]}')"
	has 'of which it takes less than there is' '"--retain-size","8Gi"' "$(get sts preheat '{.spec.template.spec.containers[0].args}')"
	has 'page and API are served beyond the pod' '"--tls-cert-file","/etc/preheat/web-tls/tls.crt"' \
		"$(get sts preheat '{.spec.template.spec.containers[0].args}')"
	is 'on a Service of their own' web "$(get svc preheat-web '{.spec.ports[0].targetPort}')"
	is 'rights on node objects' preheat "$(get clusterrolebinding preheat-node-objects '{.subjects[0].name}')"
}

kept_elsewhere() {
	kubectl delete -n preheat sts preheat --cascade=orphan >/dev/null
	composed kept central-history litestream
	taken 'the history is kept elsewhere, too' kubectl apply --server-side -k "$scratch/kept"
	is 'by a container each' 'preheat central-history litestream' "$(get sts preheat '{.spec.template.spec.containers[*].name}')"
	is 'with a password that libpq takes' 'preheat-central address, preheat-central password, ' "$(get sts preheat \
		'{range .spec.template.spec.containers[1].env[*]}{.valueFrom.secretKeyRef.name} {.valueFrom.secretKeyRef.key}, {end}')"
}

applied
overlays
components
kept_elsewhere
kubectl delete -k "$scratch/all" --ignore-not-found >/dev/null
kubectl delete namespace preheat --ignore-not-found >/dev/null
is 'nothing of it is left' '' "$(kubectl get crd,clusterrole,clusterrolebinding,priorityclass -o name | grep -E 'preheat|/gpu-' || :)"
ended
