#!/usr/bin/env bash
# Looks at the page of preheat report as a person would: renders it in headless Chromium, light and dark, wide and on a
# phone, and fails on a complaint, an empty picture, a missing part or anything that points outside of the page.
#   team_look.sh PREHEAT
# Skips (exit 77) without Chromium; with CI=true that is a failure. KEEP=DIR keeps the pictures.
set -euo pipefail

preheat=$(realpath "$1")
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
	echo "SKIPPED: no chromium (apt-get install chromium)"
	[ "${CI:-}" = true ] && exit 1
	exit 77
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

fail() {
	echo "FAILED: $*" >&2
	failures=$((failures + 1))
}

# browse NAME ARGUMENT... : the page's DOM on stdout, what the browser said in NAME.log
browse() {
	local name=$1
	shift
	timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
		--disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage \
		--hide-scrollbars --user-data-dir="$folder/profile-$name" --enable-logging=stderr --v=0 "$@" \
		"file://$folder/report.html" 2>"$folder/$name.log"
}

"$preheat" generate --shape diurnal,bursts --length 6h --rate 20 --seed 1 --out "$folder/t.csv" 2>/dev/null
"$preheat" simulate --draws 1 -f examples/first-try/pool.yaml --world examples/first-try/world.yaml --trace "$folder/t.csv" \
	--out "$folder/run" >/dev/null 2>&1
sqlite3 "$folder/run/history.db" "UPDATE fact SET value = 'run' WHERE name = 'run';
	INSERT INTO quota_hour SELECT hour, 'llm', 'gpus', 'requests.nvidia.com/gpu', 3600000, 8, 6, 28800000, 18000000 FROM cost;
	INSERT INTO gpu_holding SELECT 'u1', 1, 3600000 * min(hour) + 600000, 3600000 * max(hour), 'llm', 'tune <b>&', 'n1',
		4000, -9223372036854775808 FROM cost"
"$preheat" report --db "$folder/run" -o html >"$folder/report.html"

browse dom --window-size=1280,1600 --dump-dom >"$folder/dom.html" || fail "the browser did not end well"
[ "$(grep -o '<rect' "$folder/dom.html" | wc -l)" -ge 12 ] || fail "bars are missing"
for text in 'GPU hours in each hour' 'Pools' 'Quota' 'GPUs held for nothing' 'Late requests' 'tune &lt;b&gt;&amp;'; do
	grep -qF "$text" "$folder/dom.html" || fail "'$text' is not on the page"
done
grep -oE '(src|href)="[^"#][^"]*"|url\(' "$folder/dom.html" && fail "the page points outside of itself"
grep -q '<script' "$folder/dom.html" && fail "the page has a script"

look() {
	local name=$1
	shift
	browse "$name" --screenshot="$folder/$name.png" "$@" >/dev/null || fail "$name: no picture"
	grep -E 'CONSOLE' "$folder/$name.log" && fail "$name: the page complains"
	[ "$(stat -c %s "$folder/$name.png" 2>/dev/null || echo 0)" -gt 20000 ] || fail "$name: the picture is empty"
}
look light --window-size=1280,1600
look dark --window-size=1280,1600 --blink-settings=preferredColorScheme=0
look phone --window-size=400,1600
cmp -s "$folder/light.png" "$folder/dark.png" && fail "dark looks like light"

if [ -n "${KEEP:-}" ]; then
	mkdir -p "$KEEP" && cp "$folder"/*.png "$KEEP"
fi
[ "$failures" -eq 0 ] && echo "preheat report: light, dark and on a phone"
exit $((failures > 0))
