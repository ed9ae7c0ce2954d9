#!/usr/bin/env bash
# The rig's AWS account, proved by the official SDK for JavaScript as its client, over HTTPS; and what went over the wire, answers
# too, by botocore's models, parser and signer.
# Skips (exit 77) without Go, node, npm or python3 with venv; with CI=true that is a failure. KEEP=DIR keeps the journal.
set -euo pipefail
. tests/clouds/aws/cloud.sh

MODULES=$(sdk_modules)
packages=$(python_packages)
export MODULES CONFIG=tests/clouds/aws/config.json
start_aws $CONFIG --speed 200
node tests/clouds/aws/sdk.mjs
"$packages/venv/bin/python" -B tests/clouds/aws/wire.py --testing "$WIRE"
"$packages/venv/bin/python" -B tests/clouds/aws/wire_selftest.py "$WIRE"
