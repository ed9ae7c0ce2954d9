#!/usr/bin/env bash
# Who may include whom, which library lives where, what the pure rooms may touch. Every include is
# written from the repository root, so the layering of the code is a fact that a script can read.
# Usage: tests/check_layers.sh [ROOT]. Prints FILE:LINE: what is wrong; exit 1 when anything is.
set -euo pipefail
cd "${1:-.}"

# room: rooms that it may include; the longest name that fits a file is its room. * is all.
layers='
base:
base/net: base
controller/policy: base
controller/manifest: base controller/policy providers signals/engines
controller/contract: base controller/policy controller/manifest providers signals/engines
controller/traces: base
controller/simulation: base controller/policy controller/traces
controller/simulation/rivals: base controller/policy controller/traces controller/simulation
controller/simulation/files: base controller/policy controller/traces controller/simulation
controller/explain: base controller/policy
state: base controller/policy
controller/restore: base controller/policy controller/manifest state
providers: base base/net
signals: base base/net signals/engines
signals/engines:
controller/cluster: base base/net providers
controller/web: base base/net controller/policy controller/manifest controller/explain controller/restore state
controller/loop: base base/net controller/policy controller/manifest controller/restore controller/explain controller/cluster controller/web providers signals state
controller/report: base controller/policy controller/simulation controller/explain state
controller/commands: *
controller: *
'

# header (or its folder) of a library, and the only room that knows it
homes='
sqlite3.h state
libpq-fe.h state
yajl/ base
pb_decode.h base
yaml.h base
zlib.h base
expat.h base
openssl/ base
curl/ base/net
ev.h base/net
microhttpd.h base/net
gnutls/ base/net
cmocka.h tests
'

# Pure rooms: their own headers, these of base, these of C. FILE HEADER lets one file in.
pure='controller/policy controller/simulation controller/simulation/rivals'
pure_headers='base/arena.h base/buf.h base/error.h base/exact.h base/fnv1a.h base/list.h base/millis.h base/quantity.h base/random.h
base/schedule.h base/text.h
assert.h inttypes.h limits.h stdbool.h stddef.h stdint.h string.h'
exceptions='
controller/policy/decide.c stdlib.h
controller/policy/policy_state.c stdlib.h
controller/policy/policy_state.c base/alloc.h
controller/policy/shadow.c stdlib.h
controller/policy/shadow.c base/alloc.h
controller/simulation/advice.c stdlib.h
controller/simulation/calibrate.c stdlib.h
controller/simulation/queue.c stdlib.h
'

# FILE FUNCTION: who may call what base/banned.h forbids
unbanned='
base/terminal.c getenv
base/schedule.c getenv
controller/commands/cluster_args.c getenv
providers/aws/call.c getenv
providers/azure/place.c getenv
'

longest=1300

found=$(mktemp)
trap 'rm -f "$found"' EXIT

sources() {
	find base controller providers signals state -name '*.[ch]' -o -name '*.def' | LC_ALL=C sort
}

sources | xargs grep -nE '^[[:space:]]*#[[:space:]]*include' /dev/null |
	awk -v layers="$layers" -v homes="$homes" -v pure=" $pure " -v pure_headers="$pure_headers" -v exceptions="$exceptions" '
	BEGIN {
		n = split(layers, lines, "\n")
		for (i = 1; i <= n; i++) if (split(lines[i], pair, ":") == 2) may[pair[1]] = pair[2] " "
		n = split(homes, lines, "\n")
		for (i = 1; i <= n; i++) if (split(lines[i], pair, " ") == 2) home[pair[1]] = pair[2]
		n = split(exceptions, lines, "\n")
		for (i = 1; i <= n; i++) excepted[lines[i]] = 1
		n = split(pure_headers, words, /[ \n]+/)
		for (i = 1; i <= n; i++) harmless[words[i]] = 1
	}
	function room(path) {
		while (sub(/\/[^\/]*$/, "", path)) if (path in may) return path
		return ""
	}
	function wrong(text) { print at[1] ":" at[2] ": " text }
	{
		split($0, at, ":"); from = room(at[1])
		if (!match($0, /[<"][^>"]*[>"]/)) { wrong("an include that names no file"); next }
		name = substr($0, RSTART + 1, RLENGTH - 2); quoted = substr($0, RSTART, 1) == "\""
		if (from == "") { wrong("this folder has no rule in tests/check_layers.sh"); next }
		for (h in home) if (index(name, h) == 1 && from != home[h]) wrong("<" name "> belongs to " home[h])
		to = quoted ? room(name) : ""
		if (quoted && to == "") wrong("\"" name "\" is not written from the root, or its folder has no rule")
		else if (to != "" && to != from && may[from] !~ /\*/ && index(may[from], " " to " ") == 0)
			wrong(from " may not include " to)
		if (index(pure, " " from " ") && (to == "" || to == "base") && !(name in harmless) && !((at[1] " " name) in excepted))
			wrong(from " is pure: it may not include " name)
	}' >"$found"

sources | xargs grep -nE '^[[:space:]]*#[[:space:]]*undef' /dev/null | awk -v unbanned="$unbanned" '
	BEGIN { n = split(unbanned, lines, "\n"); for (i = 1; i <= n; i++) known[lines[i]] = 1 }
	{
		split($0, at, ":"); name = $0; sub(/.*undef[ \t]+/, "", name); sub(/[^A-Za-z0-9_].*/, "", name)
		if (at[1] == "base/banned.h" || name ~ /^[A-Z_0-9]+$/ || ((at[1] " " name) in known)) next
		print at[1] ":" at[2] ": " name " is banned, and this file has no leave to call it"
	}' >>"$found"

{ sources; [ ! -d tests ] || find tests -name '*.[ch]'; } | xargs wc -l | awk -v longest="$longest" '
	$2 != "total" && $1 > longest { print $2 ":" $1 ": a file of more than " longest " lines holds more than one idea" }' >>"$found"

cat "$found"
! [ -s "$found" ]
