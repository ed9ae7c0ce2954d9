#!/usr/bin/env bash
# The page in headless Chromium, driven by Playwright, over a simulated week: charts, filters, a decision, live updates,
# keyboard, axe, narrow screens.
#   page.sh PREHEAT HISTORY_GROW [--update-screenshots]
# Playwright and axe come from npm (tests/web/page/package-lock.json) into the cache. Skips (exit 77) where something is
# absent; with CI=true that is a failure. KEEP=DIR keeps what was made; PAGE_ONLY=WORDS runs the checks of that name.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
[ -x "$1" ] || { echo "no $1: ./dev build builds it"; exit 1; }
preheat=$(realpath "$1")
grow=$(realpath "$2")
shots=

# shellcheck source=tests/web/page_modules.sh
. "$here/page_modules.sh"
page_modules || exit $?
if [ "${3:-}" = --update-screenshots ]; then
	shots=$root/docs/images
	mkdir -p "$shots"
fi

folder=${KEEP:-$(mktemp -d)}
mkdir -p "$folder"
[ -n "${KEEP:-}" ] || trap 'rm -rf "$folder"' EXIT

# A week: recorded traffic where it is there, else made up; what goes wrong in it is examples/three-pools' world.
make_history() {
	local example=$root/examples/three-pools shared=${PREHEAT_SHARED:-$root/../shared}
	local real=$shared/traces/servegen_small_d2.9-9_filled.bins.csv.gz
	if [ -f "$real" ]; then
		ln -sf "$(realpath "$real")" "$folder/chat.csv.gz"
	else
		echo "made-up traffic: $real is absent"
		"$preheat" generate --length 6d --shape diurnal:1.8,bursts:3:5h:8m --weekend 0.6 --rate 700 --bin 10s --seed 3 \
			--out "$folder/chat.csv.gz"
	fi
	"$preheat" generate --length 6d --shape diurnal:1.5 --rate 60 --output-tokens 20 --bin 10s --seed 4 --out "$folder/embed.csv.gz"
	"$preheat" generate --length 6d --shape pulses:1:24h:5h --rate 12 --bin 10s --seed 5 --out "$folder/nightly.csv.gz"
	sed 's/max: 40 }/max: 400 }/; s/max: 20,/max: 80,/; s/dollarsPerHour: 60/dollarsPerHour: 400/' "$example/pools.yaml" >"$folder/pools.yaml"
	"$preheat" simulate --draws 1 -f "$folder/pools.yaml" --world "$example/world.yaml" --trace chat="$folder/chat.csv.gz" \
		--trace embed="$folder/embed.csv.gz" --trace nightly="$folder/nightly.csv.gz" --warm-up 1d --force \
		--out "$folder/week" >"$folder/simulate.txt" 2>&1 || { cat "$folder/simulate.txt" && exit 1; }
}
[ -f "$folder/week/history.db" ] || make_history
rm -f "$folder"/grown.db*
node "$here/page/run.mjs" "$preheat" "$grow" "$folder/week/history.db" "$folder" ${shots:+"$shots"}
