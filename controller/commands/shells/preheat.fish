# fish completion for preheat: preheat completion fish | source
function __preheat_complete
	set -l words (commandline -opc)
	set -l current (commandline -ct)
	set -l lines ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
	set -q lines[1]; or return 1
	set -l directive (string replace ':' '' -- $lines[-1])
	set -e lines[-1]
	if set -q lines[1]
		printf '%s\n' $lines
		return
	end
	set -l prefix ''
	if string match -q -- '--*=*' "$current"
		set prefix (string replace -r '=.*' '=' -- $current)
		set current (string replace -r '^[^=]*=' '' -- $current)
	end
	switch $directive
		case 0
			for path in (__fish_complete_path "$current")
				echo -- $prefix$path
			end
		case 16
			for path in (__fish_complete_directories "$current")
				echo -- $prefix$path
			end
	end
end
complete -c preheat -f -a '(__preheat_complete)'
