#!/usr/bin/env bash
# preheat provider check against the rig's AWS account over HTTPS.
#   check_aws.sh PREHEAT       skips (exit 77) without Go or python3; with CI=true that is a failure
set -euo pipefail
. tests/clouds/aws/cloud.sh

command -v python3 >/dev/null || skip "no python3"
start_aws tests/clouds/aws/config.json --speed 60
python3 -B tests/clouds/check.py "$1" aws
