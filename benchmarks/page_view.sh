#!/usr/bin/env bash
# The page in Chromium over a year of history: first paint, and the slowest request while it is looked through, as Markdown for
# docs/benchmarks.md. The API alone: benchmarks/page.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=benchmarks/pool.sh
. benchmarks/pool.sh
# shellcheck source=benchmarks/year.sh
. benchmarks/year.sh
# shellcheck source=tests/web/page_modules.sh
. tests/web/page_modules.sh
preheat=build/release/preheat folder=build/bench/year said=build/bench/page_view.said
page_modules || exit $?
year_of_history "$preheat" "$folder"
: >"$said"
"$preheat" view "$folder/out" --listen 127.0.0.1:0 >"$said" &
view=$!
trap 'kill $view' EXIT
until grep -q http "$said"; do
	kill -0 $view
	sleep 0.1
done
node benchmarks/page_view.mjs "$(grep -oE 'http://[0-9.:]+' "$said" | head -1)"
