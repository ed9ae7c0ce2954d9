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
echo "promtool: nothing to say"
