#!/usr/bin/env bash
# What `history export` writes, read by DuckDB: as its schema says, and by looking at it; and made into Parquet.
# Usage: tests/cli/export.sh PREHEAT. Skips (exit 77) without python3 with venv; with CI=true that is a failure.
set -euo pipefail
preheat=$(realpath "$1")
wanted=$(realpath tests/cli/requirements.txt)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/preheat/duckdb-$(sha256sum "$wanted" | cut -c 1-16)

skip() {
	echo "SKIPPED: $1"
	[ "${CI:-}" != true ] || exit 1
	exit 77
}

install_venv() {
	local made
	made=$(mktemp -d "$cache.XXXXXX")
	python3 -m venv "$made/venv"
	"$made/venv/bin/pip" install -q --disable-pip-version-check -r "$wanted" >"$made/log" 2>&1 || {
		tail -5 "$made/log"
		rm -rf "$made"
		return 1
	}
	mv -T "$made" "$cache" 2>/dev/null || rm -rf "$made" # another run was first
}

command -v python3 >/dev/null || skip "no python3"
python3 -c 'import venv, ensurepip' 2>/dev/null || skip "python3 has no venv (apt-get install python3-venv)"
mkdir -p "${cache%/*}"
[ -d "$cache" ] || install_venv || skip "DuckDB cannot be installed from PyPI"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$preheat" generate --shape diurnal,bursts --length 50h --rate 2 --seed 1 --out "$folder/day.csv"
"$preheat" simulate -f examples/first-try/pool.yaml --trace "$folder/day.csv" --interval 60s --out "$folder/out" >/dev/null 2>&1
# A simulation asks no provider; a controller would have written this.
sqlite3 "$folder/out/history.db" "INSERT INTO launch (token, node_group, verb, target, machines, tick, term, asked_at, outcome, ended_at)
	VALUES ('t-1', 'g5, \"odd\"', 0, 7, '', 3, 1, 1704067265500, 'done', 1704067300000), ('t-2', 'g5', 0, 8, '', 4, 1, 1704067365000, NULL, NULL)"
"$preheat" history export --db "$folder/out" --out "$folder/csv" >/dev/null
"$preheat" history export --db "$folder/out" --out "$folder/jsonl" --format jsonl --gzip >/dev/null
"$cache/venv/bin/python" -B tests/cli/export.py "$folder"
