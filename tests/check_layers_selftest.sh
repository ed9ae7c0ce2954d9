#!/usr/bin/env bash
# Plants one violation after another in a copy of the sources and expects tests/check_layers.sh to name it.
# Usage: tests/check_layers_selftest.sh [ROOT]
set -euo pipefail
cd "${1:-.}"
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
check=$PWD/tests/check_layers.sh
failures=0

# plant FILE LINE EXPECTED: FILE with LINE in it must be refused with a message that holds EXPECTED.
plant() {
	local file=$1 line=$2 expected=$3 output
	rm -rf "${copy:?}"/*
	cp -r base controller providers signals state "$copy"
	mkdir -p "$copy/$(dirname "$file")"
	printf '%b\n' "$line" >>"$copy/$file"
	if output=$("$check" "$copy"); then
		echo "not noticed: $file: $line"
	elif ! grep -qF "$expected" <<<"$output"; then
		printf 'noticed for another reason: %s: %s\n%s\n' "$file" "$line" "$output"
	else
		return 0
	fi
	failures=$((failures + 1))
}

"$check" . || { echo "the sources themselves break a rule"; exit 1; }
plant signals/planted.c '#include "state/db.h"' 'signals may not include state'
plant providers/planted.c '#include "controller/cluster/api.h"' 'providers may not include controller/cluster'
plant controller/cluster/planted.c '#include <curl/curl.h>' 'belongs to base/net'
plant base/planted.c '#include "controller/policy/pool.h"' 'base may not include controller/policy'
plant controller/policy/planted.c '#include "controller/simulation/world.h"' 'controller/policy may not include'
plant controller/policy/planted.h '#include "state/db.h"' 'controller/policy may not include state'
plant controller/simulation/planted.c '#include "controller/simulation/rivals/rivals.h"' 'may not include controller/simulation/rivals'
plant controller/explain/planted.c '#include "state/db.h"' 'controller/explain may not include state'
plant controller/traces/planted.c '# include "controller/policy/pool.h"' 'controller/traces may not include'
plant controller/policy/planted.def '#include "controller/report/report.h"' 'controller/policy may not include'
plant state/planted.c '#include "controller/manifest/manifest.h"' 'state may not include controller/manifest'
plant controller/commands/planted.c '#include <sqlite3.h>' '<sqlite3.h> belongs to state'
plant state/planted.c '#include <zlib.h>' '<zlib.h> belongs to base'
plant controller/manifest/planted.c '#include <yaml.h>' '<yaml.h> belongs to base'
plant controller/traces/planted.c '#include <yajl/yajl_parse.h>' '<yajl/yajl_parse.h> belongs to base'
plant base/planted.c '#include <cmocka.h>' '<cmocka.h> belongs to tests'
plant controller/policy/planted.c '#include <math.h>' 'is pure'
plant controller/policy/planted.c '#include <time.h>' 'is pure'
plant controller/simulation/planted.c '#include <stdio.h>' 'is pure'
plant controller/simulation/rivals/planted.c '#include <unistd.h>' 'is pure'
plant controller/policy/planted.c '#include "base/file.h"' 'is pure'
plant controller/policy/planted.c '#include "pool.h"' 'not written from the root'
plant controller/elsewhere/deeper/planted.c '#include "../policy/pool.h"' 'not written from the root'
plant base/planted.c '#undef strcpy' 'strcpy is banned'
plant base/planted.c "$(printf '\\n%.0s' {1..1300})" 'more than 1300 lines'
[ $failures -eq 0 ]
