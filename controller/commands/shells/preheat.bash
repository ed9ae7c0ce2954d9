# bash completion for preheat: source <(preheat completion bash)
_preheat() {
	local -a words=() lines=()
	local i word current prefix='' directive joins=''
	# Readline splits words at '='; put --option=value together again.
	for ((i = 1; i <= COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ ${#words[@]} -gt 0 && ( $word == = || -n $joins ) ]]; then
			words[${#words[@]} - 1]+=$word
			joins=''
			[[ $word != = ]] || joins=1
		else
			words+=("$word")
		fi
	done
	current=${words[${#words[@]} - 1]}
	[[ $current != --*=* ]] || prefix=${current%%=*}=
	mapfile -t lines < <("${COMP_WORDS[0]/#\~/$HOME}" __complete "${words[@]}" 2>/dev/null)
	COMPREPLY=()
	[[ ${#lines[@]} -gt 0 ]] || return
	directive=${lines[${#lines[@]} - 1]#:}
	unset "lines[${#lines[@]}-1]"
	for word in "${lines[@]}"; do
		word=${word%%$'\t'*}
		COMPREPLY+=("${word#"$prefix"}")
	done
	if [[ ${#COMPREPLY[@]} -eq 0 && $directive -eq 0 ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "${current#"$prefix"}")
	elif [[ ${#COMPREPLY[@]} -eq 0 && $directive -eq 16 ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -d -- "${current#"$prefix"}")
	fi
}
complete -F _preheat preheat
