#!/usr/bin/env bash
# Writes the rules of this folder as one PrometheusRule: deploy/alerts/prometheus_rule.sh >deploy/alerts/prometheus-rule.yaml
set -euo pipefail
cd "$(dirname "$0")"
cat <<'HEAD'
# Written by prometheus_rule.sh from the *.rules.yaml beside it: change those, not this file.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: preheat
  labels: { app.kubernetes.io/name: preheat }
spec:
  groups:
HEAD
for rules in *.rules.yaml; do
	sed -n '/^groups:/,$p' "$rules" | sed -e 1d -e 's/^/  /'
done
