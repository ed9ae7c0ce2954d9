#!/usr/bin/env bash
# WarmPools on the server that KUBECONFIG names: applies the definition, and waits until it is served. Exit code 3: it is not.
set -euo pipefail
kubectl apply --server-side -f "$(dirname "$0")/../../deploy/base/crd.yaml" >/dev/null
# kubectl wait fails at once while there are no conditions at all.
for ((i = 0; i < 120; i++)); do
	! kubectl wait --for=condition=Established crd/warmpools.preheat.dev --timeout=60s >/dev/null 2>&1 || exit 0
	read -rt 0.5 <> <(:) || :
done
echo 'the server does not establish the definition of WarmPools' >&2
exit 3
