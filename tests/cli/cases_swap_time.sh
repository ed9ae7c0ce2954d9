# shellcheck shell=bash disable=SC2016,SC2154
# How long servers take to fall asleep and to wake: measured on one that is played, and asked wrongly.

sleeper() { # FAULT ARGUMENTS: the command line, with the server's address behind it
	printf 'python3 -B "$OLDPWD/tests/cli/sleeper.py" %s sh -c "%s swap-time %s \\$ENDPOINT"' "$1" "$preheat_path" "$2"
}
round='/sleep\?level=1&mode=wait /wake_up /v1/completions'

found 'swap-time: each round sleeps, wakes and gives a token' 0 "^left awake $round $round\$" '' "$(sleeper none '--rounds 2')"
found 'swap-time: a row for the server' 0 '^http://127.0.0.1:[0-9]+ +vllm +1 +2 +[0-9.]+m?s +[0-9.]+m?s +[0-9.]+m?s +[0-9.]+m?s$' '' \
	"$(sleeper none '--rounds 2')"
found 'swap-time: numbers for programs' 0 '^true$' '' \
	"$(sleeper none '--rounds 3 -o json') | head -n -1 | jq '.[0] | .rounds == 3 and .level == 1 and .sleep_median_s > 0 and .wake_longest_s >= .wake_median_s'"
found 'swap-time: level 2 loads the weights again' 0 \
	'^left awake /sleep\?level=2&mode=wait /wake_up\?tags=weights /collective_rpc /reset_prefix_cache /wake_up\?tags=kv_cache /v1/completions$' '' \
	"$(sleeper none '--rounds 1 --level 2')"
found 'swap-time: a token is shown' 0 '^left awake /sleep' 'echo secret >token' "$(sleeper token:secret '--rounds 1 --bearer-token-file token')"
found 'swap-time: a server with requests gets no write' 2 '^left awake$' '' "$(sleeper running '')"
found 'swap-time: who sleeps already is left so' 2 '^left asleep$' '' "$(sleeper asleep '')"
found 'swap-time: a wake that fails' 3 '^left asleep /sleep\?level=1&mode=wait /wake_up$' '' "$(sleeper out-of-memory '')"

refused 'swap-time: requests run' 2 'http://127.0.0.1:[0-9]+: 2 requests run or wait there' '' "$(sleeper running '')"
refused 'swap-time: it sleeps' 2 'http://127.0.0.1:[0-9]+ sleeps, and somebody may have a reason' '' "$(sleeper asleep '')"
refused 'swap-time: started without the flags' 2 '/is_sleeping: HTTP status 404: .*flags for sleep' '' "$(sleeper no-flags '')"
refused 'swap-time: no wake' 3 'it may be left asleep: .*/wake_up: HTTP status 500' '' "$(sleeper out-of-memory '')"
refused 'swap-time: no token' 3 'HTTP status 401' '' "$(sleeper token:secret '')"
refused 'swap-time: nobody there' 3 '/is_sleeping' '' 'preheat swap-time http://127.0.0.1:1'
refused 'swap-time: no server' 2 'no server: name its address' '' 'preheat swap-time'
refused 'swap-time: an address with a path' 2 'without a path' '' 'preheat swap-time http://127.0.0.1:1/sleep'
refused 'swap-time: no address' 2 "found '10.0.0.7'; allowed: http://HOST:PORT" '' 'preheat swap-time 10.0.0.7'
refused 'swap-time: level 3' 2 '--level: found 3; allowed: 1 or 2' '' 'preheat swap-time --level 3 http://127.0.0.1:1'
refused 'swap-time: level 2 of sglang' 2 'no server of sglang sleeps on level 2' '' 'preheat swap-time --engine sglang --level 2 http://127.0.0.1:1'
refused 'swap-time: too many rounds' 2 '--rounds: found 2000; allowed: 1 to 1000' '' 'preheat swap-time --rounds 2000 http://127.0.0.1:1'
