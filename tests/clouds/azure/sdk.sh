#!/usr/bin/env bash
# Azure's own SDK is a client of the rig's tenant; then what passed is held against the vendor's OpenAPI.
# Skips (77) without node, npm or Go; with CI=true that is a failure.
set -euo pipefail
cd "$(dirname "$0")/../../.."
# shellcheck source=tests/clouds/azure/cloud.sh
. tests/clouds/azure/cloud.sh

MODULES=$(sdk_modules)
export MODULES
start_azure tests/clouds/azure/config.json --speed 60
NODE_EXTRA_CA_CERTS=$CA node tests/clouds/azure/sdk.mjs "$@"
validate "$WIRE"
