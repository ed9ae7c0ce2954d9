#!/usr/bin/env bash
# The JSON API over a year of history: the quickest and the middle one of seven answers, as Markdown for docs/benchmarks.md.
# (What the browser adds is measured by tests/web/page.sh.)
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=benchmarks/pool.sh
. benchmarks/pool.sh
# shellcheck source=benchmarks/year.sh
. benchmarks/year.sh
preheat=build/release/preheat folder=build/bench/year said=build/bench/view.said pool=/pools/default/chat
year_of_history "$preheat" "$folder"
: >"$said"
"$preheat" view "$folder/out" --listen 127.0.0.1:0 >"$said" &
view=$!
trap 'kill $view' EXIT
until [ -s "$said" ]; do
	kill -0 $view
	sleep 0.1
done
api=$(head -1 "$said" | grep -oE 'http://[^ ]+')api/v1

printf '\n%s ticks of one pool, %s MB.\n\n| request | bytes | quickest, ms | median, ms |\n|---|---|---|---|\n' \
	"$(sqlite3 "$folder/out/history.db" 'SELECT count(*) FROM tick')" "$(($(stat -c %s "$folder/out/history.db") / 1000000))"
for asked in /pools $pool "$pool/series?from=-364d&points=2000" "$pool/series?from=-30d" "$pool/series?from=-12h" \
	$pool/rules "$pool/lead-time?from=-364d" $pool/objective /cost '/cost?by=label&label=product' /decisions \
	'/decisions?count=500' '/decisions?count=500&changed=true' '/decisions?count=500&largest=true' \
	'/decisions?count=500&changed=true&group=gpu' '/decisions?limit=budget' /decisions/1000000/default/chat; do
	for _ in 1 2 3 4 5 6 7; do
		curl -sf -o /dev/null -w '%{time_total} %{size_download}\n' "$api$asked"
	done | sort -n | awk -v asked="$asked" 'NR == 1 { least = $1 } NR == 4 { printf "| `%s` | %d | %.0f | %.0f |\n", asked, $2, least * 1000, $1 * 1000 }'
done
