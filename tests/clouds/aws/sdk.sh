#!/usr/bin/env bash
# The rig's AWS account, proved by the official SDK for JavaScript as its client, over HTTPS.
# Skips (exit 77) without Go, node or npm; with CI=true that is a failure. KEEP=DIR keeps the journal.
set -euo pipefail
. tests/clouds/aws/cloud.sh

MODULES=$(sdk_modules)
export MODULES CONFIG=tests/clouds/aws/config.json
start_aws $CONFIG --speed 200
node tests/clouds/aws/sdk.mjs
