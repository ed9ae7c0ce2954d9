#!/usr/bin/env bash
# Our provider drives the rig's tenant over HTTPS with each kind of credential; all that it sent is held against the
# vendor's OpenAPI.
#   ours.sh DRIVE     build/dev/drive
# Skips (77) without node, npm or Go; with CI=true that is a failure.
set -euo pipefail
drive=$(realpath "$1")
shift
cd "$(dirname "$0")/../../.."
# shellcheck source=tests/clouds/azure/cloud.sh
. tests/clouds/azure/cloud.sh

MODULES=$(sdk_modules)
export MODULES
start_azure tests/clouds/azure/config.json --speed 60
node tests/clouds/azure/ours.mjs "$drive" "$@"
validate "$WIRE" --ours
python3 -B tests/clouds/least.py azure "$WIRE"
