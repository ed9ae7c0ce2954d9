#!/usr/bin/env bash
# The one time that packages tell, in seconds since 1970: SOURCE_DATE_EPOCH, else the commit's.
set -euo pipefail
cd "$(dirname "$0")"
if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then
	echo "$SOURCE_DATE_EPOCH"
elif archived=$(sed -n 2p commit.txt) && [[ $archived =~ ^[0-9]+$ ]]; then
	echo "$archived"
elif ! git log -1 --format=%ct 2>/dev/null; then
	echo "neither a git checkout nor a source archive of git: set SOURCE_DATE_EPOCH to the date of these sources" >&2
	exit 2
fi
