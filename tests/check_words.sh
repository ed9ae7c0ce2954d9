#!/usr/bin/env bash
# Words that do not belong here: paths and hosts of one machine, names that say only that they help,
# unfinished work. Reads what git knows. Usage: tests/check_words.sh [ROOT]
set -euo pipefail
cd "${1:-.}"
git rev-parse --git-dir >/dev/null 2>&1 || { echo "skipped: not a git checkout, or no git"; exit 77; }
here=$(dirname "$PWD")
found=$(mktemp)
trap 'rm -f "$found"' EXIT

# say WHY PATHSPEC... -- GREP-ARGUMENTS: every line found is wrong
say() {
	local why=$1 where=()
	shift
	while [ "$1" != -- ]; do
		where+=("$1")
		shift
	done
	shift
	git grep -nI "$@" -- "${where[@]}" ':!tests/check_words.sh' | sed "s|\$| <- $why|" >>"$found" || true
}

[[ $here == / || $here == /tmp ]] || say 'a path of this machine' . -- -F -e "$here/"
[ "${HOME:-/}" = / ] || say 'a path of this machine' . -- -F -e "$HOME/"
say 'a path of some machine' . -- -E -e '(^|[^A-Za-z0-9._$}])/(work|home/[a-z]|Users/[a-z])[A-Za-z0-9_-]*/'
say 'a folder that is not part of the project' . -- -E -e '(^|/)\.library|\.mirror/'
say 'a package host in a lock file' '*.json' -- -E -e '"resolved": *"https?:'
say 'a host of one network' . -- -E -e 'https?://[a-z0-9.-]*(registry|mirror|proxy)\.'
say 'unfinished: make it an issue' '*.c' '*.h' '*.sh' dev -- -wE -e 'TODO|FIXME|XXX|HACK'
say 'a struct is named as one' '*.c' '*.h' -- -E -e 'typedef +(struct|union|enum)'
say 'a name that says only that it helps' '*.c' '*.h' -- -wiE \
	-e '(struct|enum) +[a-z_]*(manager|helper|util|misc)[a-z_]*|[a-z_]*(manager|helper|_util|util_|utils|misc)[a-z_]*\('
git ls-files | grep -E '(^|[/_.-])(manager|helper|utils?|misc|handler|data|info)([/_.-]|$)' |
	sed 's|$| <- a file name that says only that it helps|' >>"$found" || true

git ls-files --eol | sed -n 's/^i\/-text[^\t]*\t//p' | grep -vE '^(docs/images/|examples/.*\.gz$|tests/fuzz/)' |
	sed 's|$| <- a binary; pictures belong into docs/images|' >>"$found" || true

# Tests, scenarios and laws that documents name are there.
# shellcheck disable=SC2016 # these quotes are of Markdown
{
	grep -ohE '`[a-z_0-9]+_test(: [a-z_0-9]+)?`' docs/reliability.md docs/security.md | tr -d '`:' | sort -u | while read -r file name; do
		path=$(git ls-files "tests/*/$file.c" | head -1)
		[ -n "$path" ] && { [ -z "$name" ] || grep -qE "^static void $name\(" "$path"; } ||
			echo "docs: $file: $name <- no test has that name"
	done
	grep -ohE '`[a-z_]+\.py: [a-z_]+`' docs/reliability.md docs/security.md | tr -d '`:' | sort -u | while read -r file name; do
		grep -qE "^def $name\(" "tests/scenario/$file" || echo "docs: $file: $name <- no part of a scenario has that name"
	done
	sed -n "/^| owner's act/,/^\$/p" docs/providers.md | cut -d'|' -f5 | grep -oE '`[a-z_/]+`' | tr -d '`' | sort -u | while read -r name; do
		[ -f "tests/$name.py" ] || git grep -qE "^static void $name\(" -- tests ||
			echo "docs/providers.md: $name <- no test or scenario has that name"
	done
	sed -n '/^| law | what it says/,/^$/p' docs/reliability.md | cut -d'|' -f2 | grep -oE '`[a-z_]+`' | tr -d '`' | while read -r law; do
		git grep -qF "\"$law\"" -- tests/world || echo "docs/reliability.md: $law <- no law has that name"
	done
} >>"$found"

cat "$found"
! [ -s "$found" ]
