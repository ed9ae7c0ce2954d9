#compdef preheat
# zsh completion for preheat: source <(preheat completion zsh), or put it as _preheat into a folder of $fpath
_preheat() {
	local -a lines candidates
	local line value directive
	lines=("${(@f)$("${(Q)words[1]}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
	(( ${#lines} )) || return 1
	directive=${lines[-1]#:}
	for line in "${(@)lines[1,-2]}"; do
		value=${${line%%$'\t'*}//:/\\:}
		[[ $line == *$'\t'* ]] && value+=":${line#*$'\t'}"
		candidates+=("$value")
	done
	if (( ${#candidates} )); then
		_describe preheat candidates
		return
	fi
	[[ ${words[CURRENT]} == --*=* ]] && compset -P '*='
	case $directive in
	0) _files ;;
	16) _files -/ ;;
	*) return 1 ;;
	esac
}
if [[ ${funcstack[1]} == _preheat ]]; then
	_preheat "$@"
else
	compdef _preheat preheat
fi
