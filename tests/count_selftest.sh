#!/usr/bin/env bash
# Proves tests/count.sh: what it counts, and that CI=true allows no skip.
set -euo pipefail
results=$(mktemp)
second=$results.second
trap 'rm -f "$results" "$second"' EXIT
failures=0

# testcase NAME STATUS OUTPUT
testcase() {
	printf '\t<testcase name="%s" classname="%s" time="0.1" status="%s">\n\t\t<system-out>%b</system-out>\n\t</testcase>\n' \
		"$1" "$1" "$2" "$3" >>"$results"
}

# counts NAME CI STATUS LINE...: exit code, and lines that must be there
counts() {
	local name=$1 ci=$2 wanted=$3 status=0 said line
	shift 3
	said=$(CI=$ci tests/count.sh "$results" 0 0 "$second" 2>&1) || status=$?
	[ $status -eq "$wanted" ] || { echo "FAILED: $name: exit $status, not $wanted"; failures=$((failures + 1)); }
	for line; do
		grep -qxF -- "$line" <<<"$said" ||
			{ printf 'FAILED: %s: no line "%s" in\n%s\n' "$name" "$line" "$said"; failures=$((failures + 1)); }
	done
	: >"$results"
	rm -f "$second"
}

testcase plain run 'fine\n'
testcase broken fail 'not fine\n'
testcase cases run '[==========] 3 test(s) run.\n[  PASSED  ] 2 test(s).\n[  FAILED  ] 1 test(s), listed below:\n'
counts 'cases one by one, others as one' true 0 '3 passed, 2 failed, 0 skipped'

testcase rig/rig notrun 'SKIPPED: the servers cannot be had: there&apos;s no Go\n'
counts 'a skip is told' '' 0 "skipped: rig/rig: the servers cannot be had: there's no Go" '0 passed, 0 failed, 1 skipped'

testcase rig/rig notrun 'SKIPPED: no Go\n'
counts 'CI allows no skip' true 1 'FAILED: rig/rig: CI=true allows no skip: no Go' '0 passed, 1 failed, 0 skipped'

cmocka='[==========] 2 test(s) run.\n[  PASSED  ] 1 test(s).\n[  SKIPPED ] 1 test(s), listed below:\n[  SKIPPED ] reads\n'
testcase recorded run "$cmocka"
counts 'nor one of a case' true 1 'FAILED: recorded: CI=true allows no skip' '1 passed, 1 failed, 0 skipped'

testcase recorded run "$cmocka"
counts 'which elsewhere is told' false 0 'skipped: recorded: reads' '1 passed, 0 failed, 1 skipped'

testcase cli run "skipped: a full disk: needs root and mount\n${cmocka/listed*/listed above.\\n}"
counts 'a disk of its own is too much to ask' true 0 '1 passed, 0 failed, 1 skipped'

testcase scenario/eks run 'it held\n'
testcase scenario/aks fail 'again not\n'
mv "$results" "$second"
: >"$results"
testcase scenario/eks fail 'not within\n'
testcase scenario/aks fail 'not within\n'
testcase plain run 'fine\n'
counts 'what needs a second attempt is named, what fails twice has failed' true 0 \
	'passed in the second attempt only: scenario/eks' '2 passed, 1 failed, 0 skipped'

[ $failures -eq 0 ] && echo 'count.sh counts'
exit $((failures > 0))
