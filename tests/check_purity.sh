#!/usr/bin/env bash
# What the pure rooms call, as the linker sees it: nothing of the machine. No clock, no file, no
# environment, no libm. Memory comes from the arena, or from malloc in the files listed here.
# Usage: tests/check_purity.sh BUILD
set -euo pipefail
build=$1

# Symbols that a pure object may leave to others: memory and strings, our pure parts of base, what compilers add.
harmless='^(mem(chr|cpy|move|set|cmp)|str(cmp|cspn|len|ncmp|chr|nlen)|qsort|abort|_GLOBAL_OFFSET_TABLE_'
harmless+='|(arena|buf|error|exact|random|fixed|decimal|nearest|quantity|quote)_[a-z_]+'
harmless+='|__assert_fail|__stack_chk_fail|__(mem|str)[a-z]+_chk|__[a-z]*(div|mod|mul)ti3|__(asan|ubsan|sanitizer|lsan|gcov)_.*)$'

# OBJECT SYMBOLS: what else an object may call
exceptions='
policy_state.c.o xcalloc|calloc|free
shadow.c.o xcalloc|free
'

bad=0
for library in policy simulation rivals; do
	archive=$build/lib$library.a
	[ -f "$archive" ] || continue
	own=$({ nm --defined-only "$build"/lib{policy,simulation,rivals,traces}.a 2>/dev/null || true; } | awk 'NF == 3 { print $3 }' | sort -u)
	while read -r object symbol; do
		allowed=$(awk -v object="$object" '$1 == object { print $2 }' <<<"$exceptions")
		[[ $symbol =~ ^(${allowed:-none})$ ]] && continue
		echo "$archive: $object calls $symbol, and this room is pure"
		bad=1
	done < <(nm -A --undefined-only "$archive" | awk '{ n = split($1, at, ":"); print at[n-1], $NF }' | sort -u |
		grep -vE " ${harmless#^}" | awk -v own="$own" 'BEGIN { n = split(own, names, "\n"); for (i = 1; i <= n; i++) known[names[i]] = 1 } !($2 in known)')
done
exit $bad
