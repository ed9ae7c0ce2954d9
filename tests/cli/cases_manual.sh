# shellcheck shell=bash disable=SC2016,SC2154
# Help, the manual and completion: out of the same tables as the options themselves.

found 'the overview names every verb' 0 '^  history  +Decisions' '' 'preheat; preheat help; preheat --help'
found 'help of a verb has examples' 0 '^Examples:' '' 'preheat help explain'
found 'help of a verb below a verb' 0 '^  preheat provider check -f' '' 'preheat help provider check'
refused 'help of an unknown verb' 2 "unknown verb 'explian'; did you mean 'explain'" '' 'preheat help explian'
refused 'an unknown verb below a verb' 2 "provider: unknown verb 'chek'; did you mean 'check'" '' 'preheat provider chek'
refused 'an unknown option' 2 "unknown option '--outptu'; did you mean '--output'" '' 'preheat history --outptu json'
found 'docs/cli.md is what the tables say' 0 '^same$' '' 'preheat man --print-reference | diff - "$OLDPWD/docs/cli.md" && echo same'
found 'a page for every verb' 0 '^same$' '' \
	'preheat man --out man; diff <(preheat | sed -n "s/^  \([a-z]\{2,\}\)  .*/preheat-\1.1/p" | sort) \
	<(ls man | grep "^preheat-" | grep -v "^preheat-[a-z]*-") && echo same'
refused 'the page of an unknown verb' 2 "unknown verb 'hist'; did you mean 'history'" '' 'preheat man hist'
refused 'pages into a file' '2|3' 'out.*f' 'echo >f' 'preheat man --out f/g'
if command -v mandoc >/dev/null; then
	found 'mandoc has nothing to say about the pages' 0 '^clean$' '' \
		'preheat man --out man; mandoc -Tlint -Wwarning man/*.1 && echo clean'
else
	skip 'mandoc has nothing to say about the pages' 'mandoc is not installed'
fi
if command -v groff >/dev/null && command -v man >/dev/null; then
	found 'man has nothing to say about the pages' 0 '^clean$' '' \
		'preheat man --out man; for page in man/preheat*.1; do LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page" 2>&1 >/dev/null; done >said
		[ -s said ] && cat said || echo clean'
else
	skip 'man has nothing to say about the pages' 'man and groff are not installed'
fi

refused 'completion for an unknown shell' 2 "found 'tcsh'; allowed: bash, zsh, fish" '' 'preheat completion tcsh'
refused 'completion for no shell' 2 'no shell; name one' '' 'preheat completion'
# What the shells ask; the last word is the one that is typed.
found 'completes verbs' 0 '^history	Decisions' '' 'preheat __complete hist'
found 'completes verbs below a verb' 0 '^check	' '' 'preheat __complete provider ""'
found 'completes options' 0 '^--output	' '' 'preheat __complete history --ou'
found 'completes no option twice' 0 '^:4$' '' 'preheat __complete history --output json --ou | grep -v -e --output'
found 'completes choices' 0 '^yaml$' '' 'preheat __complete status -o y'
found 'completes choices after an equals sign' 0 '^--output=yaml$' '' 'preheat __complete status --output=y'
found 'leaves files to the shell' 0 '^:0$' '' 'preheat __complete check pool'
found 'leaves folders to the shell' 0 '^:16$' '' 'preheat __complete simulate --out ""'
found 'completes the verbs of help' 0 '^provider	' '' 'preheat __complete help prov'
found 'completes for kubectl' 0 '^explain	' '' 'ln -s "$preheat_path" kubectl_complete-preheat; ./kubectl_complete-preheat expl'
