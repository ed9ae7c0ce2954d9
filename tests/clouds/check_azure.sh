#!/usr/bin/env bash
# preheat provider check against the rig's Azure tenant over HTTPS.
#   check_azure.sh PREHEAT     skips (exit 77) without Go or python3; with CI=true that is a failure
set -euo pipefail
. tests/clouds/azure/cloud.sh

command -v python3 >/dev/null || skip "no python3"
start_azure <(python3 -B tests/clouds/check.py "$1" azure-config) --speed 60
python3 -B tests/clouds/check.py "$1" azure
