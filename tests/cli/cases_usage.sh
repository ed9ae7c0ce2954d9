# shellcheck shell=bash disable=SC2016
# Wrong use of the command line.

refused 'unknown verb' 2 'simulat' '' 'preheat simulat'
refused 'unknown option' 2 'verion' '' 'preheat version --verion'
refused 'standard output is full' 3 'standard output' '' 'preheat version >/dev/full'
found 'no verb helps' 0 'simulate' '' 'preheat --help'
found 'help of a verb' 0 'Usage|usage' '' 'preheat version --help'
found 'as a kubectl plugin' 0 'kubectl|preheat' 'ln -s "$preheat_path" kubectl-preheat' './kubectl-preheat --help'
refused 'standard output is closed' 3 'standard output' '' 'preheat version >&-'
# As any tool before `head`: silent, with the code that a shell tells of SIGPIPE.
found 'nobody reads standard output' 0 '^141 0$' '' '(sleep 0.2; preheat version 2>said) | true
	echo "${PIPESTATUS[0]} $(wc -c <said)"'
found 'nobody reads a generated trace' 0 '^141 0$' '' \
	'preheat generate --shape diurnal --length 3h --rate 20 --seed 1 2>said | true; echo "${PIPESTATUS[0]} $(wc -c <said)"'
refused 'an argument too many' 2 "found 'now'" '' 'preheat version now'
refused 'crd of something' 2 "found 'pool.yaml'" '' 'preheat crd pool.yaml'
refused 'crd into a full disk' 3 'standard output' '' 'preheat crd >/dev/full'
refused 'help of an unknown verb' 2 "did you mean 'explain'" '' 'preheat help explian'
found 'help names the exit codes' 0 'Exit codes' '' 'preheat'
# -h reminds, --help tells all.
found 'help: -h is short, and says where the rest is' 0 '^[0-9]+ verbs are short$' '' \
	'count=0
	for verb in $(preheat help | sed -n "s/^  \([a-z-]\{2,\}\)  .*/\1/p" | grep -vx preheat) "provider check" "history export"; do
		preheat $verb -h >short && preheat $verb --help >long || exit 1
		[ "$(wc -l <short)" -lt "$(wc -l <long)" ] && [ "$(wc -l <short)" -le 20 ] && grep -q "^Usage: preheat $verb" short &&
			tail -1 short | grep -qx "All options, notes and examples: preheat $verb --help" || { echo "$verb"; exit 1; }
		count=$((count + 1))
	done
	echo "$count verbs are short"'
found 'help: -h has what examples use, and not all' 0 '^1 0$' '' \
	'preheat check -h >short; echo $(grep -c -- "--cluster" short) $(grep -c -- "--print-schema" short)'
found 'help: both are the long one' 0 '^same$' '' 'preheat check -h --help >a; preheat check --help >b; cmp a b && echo same'
