#!/usr/bin/env bash
# clang-tidy, as many files at once as there are cores. A file that passed is not read again until something changes of what its
# verdict follows from: the program, .clang-tidy, its compile command, or its text with all that it includes. The verdicts are
# kept outside the checkout, for a month after they were last of use.
# Usage: tests/lint.sh BUILD FILE...   BUILD: a folder with compile_commands.json
set -euo pipefail
cd "$(dirname "$0")/.."
passed=${XDG_CACHE_HOME:-$HOME/.cache}/preheat/lint

# what_it_reads BUILD FILE: comments (NOLINT) and macros with it, paths of the checkout left out
what_it_reads() {
	local command
	command=$(jq -er --arg file "$PWD/$2" 'map(select(.file == $file))[0].command' "$1/compile_commands.json")
	clang-tidy --version
	cat .clang-tidy
	echo "${command//"$PWD"/.}"
	# Quoted for a shell, as cmake writes it.
	eval "${command%% -o *} -E -P -dD -CC \"\$2\"" 2>/dev/null
}

lint() {
	local sum
	sum=$(what_it_reads "$1" "$2" | sha256sum)
	if [ -e "$passed/${sum:0:32}" ]; then
		touch "$passed/${sum:0:32}"
		return
	fi
	clang-tidy --quiet -p "$1" "$2" 2>/dev/null
	: >"$passed/${sum:0:32}"
}

if [ "$1" = --one ]; then
	lint "$2" "$3"
	exit
fi
build=$1
shift
mkdir -p "$passed"
find "$passed" -type f -mtime +30 -delete
printf '%s\0' "$@" | xargs -0 -r -n 1 -P "$(nproc)" tests/lint.sh --one "$build"
