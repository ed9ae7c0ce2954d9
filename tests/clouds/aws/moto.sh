#!/usr/bin/env bash
# The rig's AWS account compared with moto, answer by answer, through the official SDK for JavaScript.
# Skips (exit 77) without Go, node, npm or python3 with venv; with CI=true that is a failure.
set -euo pipefail
. tests/clouds/aws/cloud.sh

MODULES=$(sdk_modules)
packages=$(python_packages)
start_aws tests/clouds/aws/moto.json --speed 2000
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$packages/venv/bin/moto_server" -H 127.0.0.1 -p "$port" >"$FOLDER/moto.log" 2>&1 &
moto=$!
for ((i = 0; i < 300; i++)); do
	(: </dev/tcp/127.0.0.1/"$port") 2>/dev/null && break
	kill -0 $moto 2>/dev/null || { cat "$FOLDER/moto.log"; exit 3; }
	read -rt 0.1 <> <(:) || :
done
export MODULES MOTO=http://127.0.0.1:$port
node tests/clouds/aws/moto.mjs
