#!/usr/bin/env bash
# Everything of deploy/ that wants a real API server, on one rig.
# Usage: tests/deploy/run.sh PREHEAT. Exit code 77 with the reason where no servers can be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
preheat=$(realpath "$1")

"$preheat" crd | cmp - "$here/../../deploy/base/crd.yaml" ||
	{ echo "deploy/base/crd.yaml is not what the manifest's table says: preheat crd >deploy/base/crd.yaml"; exit 1; }
"$preheat" check --strict "$here/../../deploy/base" "$here/../../deploy/components" "$here/../../deploy/overlays" >/dev/null
for example in three-pools-eks three-pools-aks kind; do
	"$preheat" check --strict "$here/../../examples/$example" >/dev/null || { echo "FAILED: preheat check examples/$example"; exit 1; }
done
helm=$("$here/helm.sh") && helm3=$("$here/helm.sh" 3) || exit
if [ -z "${RIG_DIR:-}" ]; then
	exec "$here/../rig/with_rig.sh" "$here/run.sh" "$preheat"
fi
status=0
"$here/helm_test.sh" "$preheat" "$helm3" | sed "s/^/helm 3: /" || status=1 # before others leave objects of these names
for part in helm init kustomize rbac admission; do
	"$here/${part}_test.sh" "$preheat" "$helm" | sed "s/^/$part: /" || status=1
done
exit $status
