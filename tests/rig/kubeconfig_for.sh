#!/usr/bin/env bash
# Prints a kubeconfig for a service account, with a token that the API server makes (TokenRequest).
# Usage: KUBECONFIG=... tests/rig/kubeconfig_for.sh NAMESPACE NAME [DURATION] >FILE; default: 24h
set -euo pipefail
rooms=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/rig/certificates.sh
. "$rooms/certificates.sh"
[ $# -ge 2 ] || { echo "usage: tests/rig/kubeconfig_for.sh NAMESPACE NAME [DURATION] >FILE" >&2; exit 2; }
kubectl=kubectl
[ -z "${RIG_DIR:-}" ] || [ ! -x "$RIG_DIR/bin/kubectl" ] || kubectl=$RIG_DIR/bin/kubectl

token=$("$kubectl" create token -n "$1" "$2" --duration "${3:-24h}") || exit 3
ask() { "$kubectl" config view --raw --minify -o "jsonpath={.clusters[0].cluster.$1}"; }
authority=$(mktemp)
trap 'rm -f "$authority"' EXIT
ask certificate-authority-data | base64 -d >"$authority"
kubeconfig_text "$(ask server)" "$authority" "system:serviceaccount:$1:$2" "    token: $token"
