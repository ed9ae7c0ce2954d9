#!/usr/bin/env bash
# Runs the program as a user does, mostly wrongly: the cases are in tests/cli/cases_*.sh.
# Usage: tests/cli/run.sh PREHEAT [CASES [PATTERN]]; CASES is history for tests/cli/cases_history.sh, all for each of them;
# PATTERN picks cases by name.
set -euo pipefail
preheat_path=$(realpath "$1")
files=(tests/cli/cases_*.sh)
[ "${2:-all}" = all ] || files=("tests/cli/cases_$2.sh")
only=${3:-.}
# What the cases use; they run in an empty folder of their own.
# shellcheck disable=SC2034
example=$PWD/examples/first-try
scratch=$(mktemp -d)
trap 'cleanup' EXIT
passed=0 failed=0 skipped=0

cleanup() {
	for mounted in "$scratch/full" "$scratch/ro"; do
		! mountpoint -q "$mounted" 2>/dev/null || umount "$mounted"
	done
	chmod -R u+w "$scratch"
	rm -rf "$scratch"
}

preheat() {
	timeout 120 "$preheat_path" "$@"
}

# simulated NAME GENERATE-OPTION... [-- SIMULATE-OPTION...]: $scratch/NAME holds a history of the example's pool, and
# $scratch/NAME.csv the traffic.
simulated() {
	local name=$1 traffic=()
	shift
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		traffic+=("$1")
		shift
	done
	[ ! -e "$scratch/$name/history.db" ] || return 0
	"$preheat_path" generate "${traffic[@]}" --seed 1 --out "$scratch/$name.csv" 2>/dev/null
	"$preheat_path" simulate --draws 1 -f "$example/pool.yaml" --trace "$scratch/$name.csv" --out "$scratch/$name" "${@:2}" >/dev/null 2>&1
}

verdict() {
	local name=$1 problem=$2
	if [ -z "$problem" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAILED: %s: %s\n' "$name" "$problem"
		sed 's/^/    stdout: /' "$scratch/stdout" | head -5 | cut -c 1-300
		sed 's/^/    stderr: /' "$scratch/stderr" | head -12 | cut -c 1-300
	fi
}

# attempt PREPARE COMMAND: sets status, and writes what was left behind to $scratch/left.
attempt() {
	rm -rf "$scratch/case"
	mkdir "$scratch/case"
	cd "$scratch/case"
	(set +o pipefail; eval "$1") || { echo "tests/cli: cannot prepare: $1"; exit 1; }
	find . | LC_ALL=C sort >"$scratch/before"
	status=0
	(set +e +o pipefail; eval "$2") >"$scratch/stdout" 2>"$scratch/stderr" </dev/null || status=$?
	find . | LC_ALL=C sort | comm -13 "$scratch/before" - >"$scratch/left"
	cd "$OLDPWD"
}

# refused NAME EXIT PATTERN PREPARE COMMAND: one message that matches, that exit code, and nothing left behind.
refused() {
	local name=$1 code=$2 pattern=$3 problem=
	[[ $name =~ $only ]] || return 0
	attempt "$4" "$5"
	if ! [[ $status =~ ^($code)$ ]]; then
		problem="exit code $status, expected $code"
	elif [ "$(wc -l <"$scratch/stderr")" -ne 1 ]; then
		problem="$(wc -l <"$scratch/stderr") lines on standard error, expected one message"
	elif ! grep -qE -- "$pattern" "$scratch/stderr"; then
		problem="the message does not match: $pattern"
	elif [ -s "$scratch/left" ]; then
		problem="left behind: $(tr '\n' ' ' <"$scratch/left")"
	fi
	verdict "$name" "$problem"
}

# found NAME EXIT PATTERN PREPARE COMMAND: that exit code, and a line on standard output that matches.
found() {
	local name=$1 code=$2 pattern=$3 problem=
	[[ $name =~ $only ]] || return 0
	attempt "$4" "$5"
	if ! [[ $status =~ ^($code)$ ]]; then
		problem="exit code $status, expected $code"
	elif ! grep -qE -- "$pattern" "$scratch/stdout"; then
		problem="standard output does not match: $pattern"
	fi
	verdict "$name" "$problem"
}

# skip NAME WHY
skip() {
	[[ $1 =~ $only ]] || return 0
	skipped=$((skipped + 1))
	printf 'skipped: %s: %s\n' "$1" "$2"
}

for cases in "${files[@]}"; do
	# shellcheck source=/dev/null
	. "$cases"
done
# In cmocka's words, so that tests/count.sh counts these cases, too.
printf '[==========] %d test(s) run.\n[  PASSED  ] %d test(s).\n' $((passed + failed + skipped)) $passed
[ $skipped -eq 0 ] || printf '[  SKIPPED ] %d test(s), listed above.\n' $skipped
[ $failed -eq 0 ] || { printf '[  FAILED  ] %d test(s), listed above.\n' $failed; exit 1; }
