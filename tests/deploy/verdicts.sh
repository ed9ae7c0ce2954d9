# shellcheck shell=bash
# What the tests of deploy/ share. Sourced by one that has made a folder $scratch.
# shellcheck disable=SC2034,SC2154 # said is for them, scratch from them

failed=0 checks=0

# verdict NAME 1|0 SAID
verdict() {
	checks=$((checks + 1))
	[ "$2" -ne 1 ] || return 0
	failed=$((failed + 1))
	printf 'FAILED: %s\n%s\n' "$1" "$3"
}

# is NAME WANTED FOUND
is() { verdict "$1" "$([ "$2" = "$3" ] && echo 1 || echo 0)" "wanted: $2
found:  $3"; }

# has NAME PART TEXT
has() { verdict "$1" "$([[ $3 == *"$2"* ]] && echo 1 || echo 0)" "wanted: ... $2 ...
found:  $3"; }

# taken NAME COMMAND...: it ends well and warns of nothing; what it printed is in $said
taken() {
	local name=$1 status=0
	shift
	said=$("$@" 2>"$scratch/warned") || status=$?
	is "$name" '0, no warning' "$status, $([ -s "$scratch/warned" ] && cat "$scratch/warned" || echo 'no warning')"
}

# ended: the last line, and the exit code of the test
ended() {
	[ "$failed" -eq 0 ] || { echo "$failed of $checks checks failed"; exit 1; }
	echo "$checks checks"
}
