#!/usr/bin/env bash
# The page in headless Chromium, driven by Playwright, over a simulated week: charts, filters, a decision, live updates,
# keyboard, axe, narrow screens.
#   page.sh PREHEAT HISTORY_GROW [--update-screenshots]
# Playwright and axe come from npm (tests/web/page/package-lock.json) into the cache. Skips (exit 77) where something is
# absent; with CI=true that is a failure. KEEP=DIR keeps what was made; PAGE_ONLY=WORDS runs the checks of that name.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
preheat=$(realpath "$1")
grow=$(realpath "$2")
shots=

skip() {
	echo "SKIPPED: $*"
	[ "${CI:-}" = true ] && exit 1
	exit 77
}

PAGE_BROWSER=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
	skip "no chromium (apt-get install chromium)"
command -v npm >/dev/null || skip "no npm (apt-get install npm)"
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 18 ] || skip "Node.js is older than 18"
export PAGE_BROWSER
if [ "${3:-}" = --update-screenshots ]; then
	shots=$root/docs/images
	mkdir -p "$shots"
fi

# Installed once per lock file, whole or not at all.
key=$(sha256sum "$here/page/package-lock.json" | cut -c1-16)
PAGE_MODULES=${XDG_CACHE_HOME:-$HOME/.cache}/preheat/page-$key
export PAGE_MODULES
if [ ! -d "$PAGE_MODULES/node_modules" ]; then
	mkdir -p "$(dirname "$PAGE_MODULES")"
	new=$(mktemp -d "$PAGE_MODULES.XXXXXX")
	cp "$here/page/package.json" "$here/page/package-lock.json" "$new"
	(cd "$new" && npm ci --no-audit --no-fund --ignore-scripts >npm.log 2>&1) || {
		cat "$new/npm.log" && rm -rf "$new"
		skip "npm ci failed"
	}
	mv -T "$new" "$PAGE_MODULES" 2>/dev/null || rm -rf "$new"
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
			-o "$folder/chat.csv.gz"
	fi
	"$preheat" generate --length 6d --shape diurnal:1.5 --rate 60 --output-tokens 20 --bin 10s --seed 4 -o "$folder/embed.csv.gz"
	"$preheat" generate --length 6d --shape pulses:1:24h:5h --rate 12 --bin 10s --seed 5 -o "$folder/nightly.csv.gz"
	sed 's/max: 40 }/max: 400 }/; s/max: 20,/max: 80,/; s/dollarsPerHour: 60/dollarsPerHour: 400/' "$example/pools.yaml" >"$folder/pools.yaml"
	"$preheat" simulate --pool "$folder/pools.yaml" --world "$example/world.yaml" --trace chat="$folder/chat.csv.gz" \
		--trace embed="$folder/embed.csv.gz" --trace nightly="$folder/nightly.csv.gz" --warm-up 1d --force \
		--out "$folder/week" >"$folder/simulate.txt" 2>&1 || { cat "$folder/simulate.txt" && exit 1; }
}
[ -f "$folder/week/history.db" ] || make_history
rm -f "$folder"/grown.db*
node "$here/page/run.mjs" "$preheat" "$grow" "$folder/week/history.db" "$folder" ${shots:+"$shots"}
