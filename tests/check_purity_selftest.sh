#!/usr/bin/env bash
# Compiles one impure call after another into a library and expects tests/check_purity.sh to name it.
# Usage: tests/check_purity_selftest.sh
set -euo pipefail
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
failures=0

# planted SYMBOL CODE
planted() {
	rm -f "$copy"/*
	printf '#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n%s\n' "$2" >"$copy/planted.c"
	"${CC:-cc}" -O1 -c "$copy/planted.c" -o "$copy/planted.c.o"
	ar rc "$copy/libpolicy.a" "$copy/planted.c.o"
	grep -q "planted.c.o calls $1," < <(tests/check_purity.sh "$copy") && return 0
	echo "not noticed: $1"
	failures=$((failures + 1))
}

planted time 'long f(void) { return time(0); }'
planted clock_gettime 'int f(struct timespec *t) { return clock_gettime(CLOCK_REALTIME, t); }'
planted fopen 'void *f(void) { return fopen("x", "r"); }'
planted getenv 'char *f(void) { return getenv("HOME"); }'
planted malloc 'void *f(void) { return malloc(8); }'
planted exp 'double f(double x) { return exp(x); }'
planted puts 'int f(void) { return puts("x"); }'
printf 'int f(int x);\nint f(int x) { return x + 1; }\n' >"$copy/planted.c"
"${CC:-cc}" -c "$copy/planted.c" -o "$copy/planted.c.o"
rm "$copy/libpolicy.a"
ar rc "$copy/libpolicy.a" "$copy/planted.c.o"
tests/check_purity.sh "$copy" || { echo "a pure object was refused"; failures=$((failures + 1)); }
[ $failures -eq 0 ]
