#!/usr/bin/env bash
# How the house stands: lines, form, files, exported functions with one user, providers named elsewhere, repeated lines. HOUSE_LIST=1
# lists the places. Usage: tests/house.sh [FOLDER...]
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 -B tests/house.py "$@"
