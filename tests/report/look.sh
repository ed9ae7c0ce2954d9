#!/usr/bin/env bash
# Looks at report.html as a person would: renders it in headless Chromium, light and dark, wide and narrow, and fails on
# a script error, a missing chart, an empty picture or a request to anywhere.
#   look.sh MAKER   MAKER --sample FILE writes a page (build/.../report_test)
# Skips (exit 77) without Chromium; with CI=true that is a failure. KEEP=DIR keeps the pictures.
set -euo pipefail

maker=$1
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

# browse NAME ARGUMENT... : the page's final DOM on stdout, what the browser said in NAME.log
browse() {
	local name=$1
	shift
	timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
		--disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage \
		--hide-scrollbars --user-data-dir="$folder/profile-$name" --enable-logging=stderr --v=0 \
		--virtual-time-budget=10000 "$@" "file://$folder/report.html" 2>"$folder/$name.log"
}

"$maker" --sample "$folder/report.html" >/dev/null

browse dom --window-size=1280,2400 --dump-dom >"$folder/dom.html" || fail "the browser did not end well"
grep -E 'CONSOLE' "$folder/dom.log" && fail "the page complains"
drawn=$(grep -o 'data-charts="[0-9]*"' "$folder/dom.html" | tr -dc 0-9 || true)
pictures=$(grep -oE '<canvas|<svg' "$folder/dom.html" | wc -l || true)
tables=$(grep -o '<table class="data"' "$folder/dom.html" | wc -l || true)
[ "${drawn:-0}" -ge 13 ] || fail "${drawn:-0} charts, at least 13 expected"
[ "$pictures" -ge 13 ] || fail "$pictures drawings, at least 13 expected"
[ "$tables" -ge 6 ] || fail "$tables tables, at least 6 expected"
for text in 'Demand against capacity by tier' 'Queue wait' 'Late requests' 'Cost' 'The price of the objective' \
	'The rule in force' 'Rivals: dollars over lateness' '>max<' 'Held by'; do
	grep -q "$text" "$folder/dom.html" || fail "'$text' is not on the page"
done
# Scripts, styles and pictures may only be inside the page.
grep -oE '(src|href)="[^"#][^"]*"' "$folder/dom.html" && fail "the page points outside of itself"

look() {
	local name=$1
	shift
	browse "$name" --screenshot="$folder/$name.png" "$@" >/dev/null || fail "$name: no picture"
	grep -E 'CONSOLE' "$folder/$name.log" && fail "$name: the page complains"
	# An empty page compresses to a few kilobytes.
	[ "$(stat -c %s "$folder/$name.png" 2>/dev/null || echo 0)" -gt 40000 ] || fail "$name: the picture is empty"
}
look light --window-size=1280,2400
look dark --window-size=1280,2400 --blink-settings=preferredColorScheme=0
look narrow --window-size=400,2400
cmp -s "$folder/light.png" "$folder/dark.png" && fail "dark looks like light"

if [ -n "${KEEP:-}" ]; then
	mkdir -p "$KEEP" && cp "$folder"/*.png "$KEEP"
fi
[ "$failures" -eq 0 ] && echo "report.html: $drawn charts, $tables tables, light, dark and narrow"
exit $((failures > 0))
