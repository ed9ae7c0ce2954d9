#!/usr/bin/env bash
# Reads /metrics as Prometheus does: promtool finds no fault with the format, the names or the units.
#   promtool.sh MAKER   MAKER --sample prints a page (build/.../metrics_test)
# Skips (exit 77) without promtool; with CI=true that is a failure.
set -euo pipefail

if ! command -v promtool >/dev/null; then
	echo "SKIPPED: no promtool (apt-get install prometheus)"
	[ "${CI:-}" = true ] && exit 1
	exit 77
fi
said=$("$1" --sample | promtool check metrics 2>&1) || { echo "$said"; echo "FAILED: promtool finds fault with /metrics"; exit 1; }
if [ -n "$said" ]; then
	echo "$said"
	echo "FAILED: promtool would have it otherwise"
	exit 1
fi
# It would have noticed.
for wrong in 's/^# TYPE preheat_ticks_total counter/# TYPE preheat_ticks_total gauge/' 's/ [0-9]*$/ many/' '0,/"}/s//}/'; do
	if [ -z "$("$1" --sample | sed "$wrong" | promtool check metrics 2>&1)" ]; then
		echo "FAILED: promtool does not mind $wrong"
		exit 1
	fi
done
promtool check rules deploy/alerts.yaml >/dev/null || { echo "FAILED: deploy/alerts.yaml"; exit 1; }
# Alerts are about metrics that there are.
while read -r name; do
	grep -qF "| \`$name\` |" docs/metrics.md || { echo "FAILED: deploy/alerts.yaml: no metric $name in docs/metrics.md"; exit 1; }
done < <(grep -o 'preheat_[a-z_]*' deploy/alerts.yaml | sort -u)
echo "promtool: nothing to say"
