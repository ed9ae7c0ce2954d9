#!/usr/bin/env bash
# docs/openapi.json is what the program prints, and what it prints is an OpenAPI document in form.
# Usage: tests/web/openapi.sh PREHEAT
set -euo pipefail
printed=$(mktemp)
trap 'rm -f "$printed"' EXIT
"$1" view --print-openapi >"$printed"
diff -u docs/openapi.json "$printed" | cut -c 1-200 | head -40 || true
cmp -s docs/openapi.json "$printed" || {
	echo "docs/openapi.json is not what the program serves; do: preheat view --print-openapi > docs/openapi.json"
	exit 1
}
python3 -m json.tool "$printed" >/dev/null
