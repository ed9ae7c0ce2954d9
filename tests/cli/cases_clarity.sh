# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# What would be silently ignored, taken for something else, or told without a remedy.

clear_run='preheat simulate -f "$example/pool.yaml" --trace "$example/requests.csv.gz"'
pool_of='apiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: { name: %s }\nspec:\n  objective: { queueWait: 2s, attainment: 99%% }\n  nodeGroups: [ %s ]\n'
# Options that would be ignored.
short='preheat generate --shape steps --length 1h --rate 1 --seed 1 --out t.csv 2>/dev/null'

found 'check: a shared group is blamed where its value stands' 1 "p\.yaml:13:.*min: found '4'.*max, which is 3" \
	'{ printf "$pool_of" a "{ name: g }"; echo ---; printf "$pool_of" b "{ name: g, max: 3, min: 4 }"; } >p.yaml' \
	'preheat check p.yaml'
found 'check: a wrong value spoils no right one' 1 '^1 mistake in 1 file' \
	'{ printf "$pool_of" a "{ name: g, capacityType: Spot }"; echo ---; printf "$pool_of" b "{ name: g, capacityType: spot }"; } >p.yaml' \
	'preheat check p.yaml'
found 'check: a missing file beside mistakes' 2 '^2 mistakes in 2 files' 'printf "$pool_of" A "{ name: g }" >p.yaml' \
	'preheat check p.yaml nowhere.yaml "$example/pool.yaml" 2>&1'
found 'check: every finding has a remedy' 1 '^0$' \
	'printf "$pool_of  mode: on\n  workload: { gpusPerReplica: 0, maxSequences: 0 }\n  signals: { scrape: { port: 0 } }\n" A "{ name: g, pricePerHour: -1 }" >p.yaml' \
	'preheat check p.yaml -o json >said; code=$?; grep -c "\"remedy\":\"\"" said; exit $code'
found 'check: headroom is beyond demand' 0 'beyond current demand while the window' '' 'preheat check --print-reference'

refused 'a start that counts from now' 2 '--start: found .-2h.; allowed: an absolute time' '' "$clear_run --start -2h"
refused 'a seed out of bounds' 2 '--seed.*from 0 to 9223372036854775807' '' "$clear_run --seed 99999999999999999999999"
refused '--force without --out' 2 '--force.*--out' '' "$clear_run --force"
refused '--jitter of a small scale' 2 '--jitter.*--scale 6' '' "$clear_run --jitter"
refused 'static without a size' 2 'static:replicas=N' '' "$clear_run --policy static"
refused 'the oracle as policy' 2 'oracle.*bound.*--compare' '' "$clear_run --policy oracle"
refused 'a folder that cannot be made' '2|3' '--out /proc/x.*name one where you may write' '' "$clear_run --out /proc/x"
refused 'import: no bin width' 2 '--bin: found .0s.; allowed: a duration above 0' "$short" 'preheat import t.csv --bin 0s --out out.csv'
refused 'generate: no bin width' 2 '--bin: found .0s.' '' 'preheat generate --bin 0s --out out.csv'
refused 'import over its own input' 2 'name another file' 'cp "$example/requests.csv.gz" t.csv.gz' \
	'preheat import --out t.csv.gz ./t.csv.gz'
refused 'a line without end has a remedy' 2 'right file' \
	'{ echo "arrival_s,prompt_tokens,output_tokens"; head -c 300000 /dev/zero | tr "\0" 1; } >t.csv' \
	'preheat simulate -f "$example/pool.yaml" --trace t.csv'

objects=$PWD/tests/cli/init/cluster.yaml
refused 'init: --last of nothing' 2 'init: --last: found without --prometheus, where it has no effect; do: add --prometheus URL, or leave --last out' \
	'' 'preheat init -f "$objects" --last 3d'
refused 'init: a namespace of files' 2 'init: --namespace: found beside --filename, where it has no effect' '' 'preheat init -f "$objects" -n llm'
refused 'init: a kubeconfig beside files' 2 'init: --kubeconfig: found beside --filename' '' 'preheat init -f "$objects" --kubeconfig x'
for option in '--last 3d' '-p chat' '--step 15s' '-f p.yaml' --print-queries; do
	refused "import: $option of a file" 2 'import: --[a-z-]+: found without --prometheus, where it has no effect; do: add --prometheus URL' \
		"$short" "preheat import t.csv $option --out out.csv"
done
for option in '--bin 1m' '--format vllm' '--values rate'; do
	refused "import: $option of a server" 2 'import: --[a-z]+: found beside --prometheus, where it has no effect' '' \
		"preheat import --prometheus http://127.0.0.1:1 -f \"\$example/pool.yaml\" $option --out w.db"
done
refused 'import: a file beside a server' 2 "import: found 't.csv' beside --prometheus; allowed: one of them" "$short" \
	'preheat import --prometheus http://127.0.0.1:1 -f "$example/pool.yaml" t.csv --out w.db'
for option in '-n llm' '--context x' '--kubeconfig x'; do
	refused "check: $option of files" 2 'check: --[a-z]+: found without --cluster, where it has no effect; do: add --cluster' '' \
		"preheat check $option \"\$example/pool.yaml\""
done
refused 'history copy: --every of once' 2 'history copy: --every: found without --follow' "$short" 'preheat history copy --every 1m --target x.db'
refused 'provider check: --out of no proof' 2 'provider check: --out: found without --prove' '' \
	'preheat provider check -f "$example/../eks/pool.yaml" --out x'
refused 'record: takes what check takes' 3 'KUBECONFIG' '' 'HOME=/nowhere KUBECONFIG= preheat record -f "$example/pool.yaml" --db r.db'
found 'check: what run needs beyond' 0 'node group g5 does not say where its nodes are bought: simulate and record take it so, run does not.*' '' \
	'preheat check "$example/pool.yaml"'
refused 'run: says the same' 2 'spec.nodeGroups.0..simulated: found nothing' '' 'preheat run -f "$example/pool.yaml" --db r.db'
found 'check: a history' 1 'h/history.db: found an SQLite database, as a history or a recording is one; .*do: read it with history, explain' \
	"$short; preheat simulate -f \"\$example/pool.yaml\" --trace t.csv --out h >/dev/null 2>&1" 'preheat check h/history.db'
found 'check: bytes that are no text' 1 '^0$' 'head -c 9999 /dev/urandom >x.yaml; echo "{{" >>x.yaml' \
	'preheat check x.yaml >said; code=$?; grep -c Helm said; exit $code'
refused 'simulate: a recording that is not there' 2 'simulate: --recording: nowhere.db: no such file; name a history: a file that run, record or simulate wrote$' \
	'' 'preheat simulate --recording nowhere.db'
refused 'history: one that is not there' 2 'nowhere.db: no such file; name a history: .* [(]--db FILE[)]' '' 'preheat history --db nowhere.db'
found 'explain: which tick is the default' 0 'default: the last that changed capacity' '' 'preheat explain --help'
refused 'status: no cluster' 3 'KUBECONFIG' '' 'HOME=/nowhere KUBECONFIG= preheat status'
refused 'run: a folder that is not there' 2 '--db nowhere/h.db: cannot be written: No such' '' \
	'preheat run -f "$example/../eks/pool.yaml" --db nowhere/h.db'
for case in 'interTokenLatency: 30|add the unit: 30ms if milliseconds' 'interTokenLatency: 0.03|add the unit: 0.03s if seconds' \
	'interTokenLatency: 30 ms|write 30ms$' 'interTokenLatency: 30msec|write 30ms$' 'interTokenLatency: -5ms|write it in this form' \
	'prefillTokensPerSecond: 25K|write 25k$' 'prefillTokensPerSecond: 25,000|write 25000$' 'pricePerHour: $1.21|write 1.21$' \
	'pricePerHour: 1,21|write 1.21$' 'gpusPerReplica: one|write it in this form, or delete' 'gpusPerReplica: 2000|write a value between these bounds' \
	'interTokenLatency: 20s|write a value between these bounds'; do
	found "check: ${case%|*}" 1 "do: ${case#*|}" "sed -E 's/^( +${case%%:*}): [^ ]+/\\1:${case#*:}/; s/[|].*//' \"\$example/pool.yaml\" >p.yaml" \
		'preheat check p.yaml'
done
refused 'view: a file and --db' 2 "view: found 'b.db'; allowed: one history" '' 'preheat view b.db --db a.db'
refused 'man: a verb beside --out' 2 "man: found 'cost' beside --out; allowed: --out DIR alone" '' 'preheat man cost --out pages'
refused 'cost: an option in place of a value' 2 'cost: --by: WHAT is missing in front of --excess' '' 'preheat cost --by --excess'
refused 'generate: a length without its unit' 2 "generate: --length: found '10'.*; do: add the unit, as in 10s or 10h" '' 'preheat generate --length 10'

small_history="$short; preheat simulate -f \"\$example/pool.yaml\" --trace t.csv --out h >/dev/null 2>&1"
refused 'history: nothing retained' 2 '--retain: found .0s.' "$small_history" 'preheat history --db h --retain 0s'
refused 'history: no rows' 2 '--number: found .0.' "$small_history" 'preheat history --db h --number 0'
refused 'history: retain and hours' 2 '--retain.*alone' "$small_history" 'preheat history --db h --retain 1h --hours'
refused 'explain: what retention dropped' 2 'dropped.*history --hours' \
	'preheat generate --shape steps --length 6h --rate 1 --seed 1 --out t.csv 2>/dev/null
	preheat simulate -f "$example/pool.yaml" --trace t.csv --out h >/dev/null 2>&1
	preheat history --db h --retain 1h --yes >/dev/null' 'preheat explain --db h --at 2024-01-01T00:30:00Z'

found 'nothing ever started' 0 'chat +whole .*100.*NO +- ' \
	"$short; sed '/headroom:/d; /standby:/d; s/ max: [0-9]*/ max: 0/; s/ min: [0-9]*/ min: 0/' \"\$example/pool.yaml\" >p.yaml
	echo 'pools: [ { name: chat, replicas: 0 } ]' >w.yaml" \
	'preheat simulate -f p.yaml --trace t.csv --world w.yaml --out out; grep -q "wait_p50_s\": null" out/summary.json'

# Interrupted: by a terminal that closes, in the comparison, while inputs are read.
long='preheat generate --shape diurnal --length 92d --rate 0.01 --seed 1 --out long.csv 2>/dev/null'
found 'the terminal closes' 3 'interrupted.*kept in out' "$long" \
	'set -m
	"$preheat_path" simulate -f "$example/pool.yaml" --trace long.csv --interval 1s --out out 2>&1 >/dev/null &
	for _ in $(seq 600); do [ ! -s out/timeline.csv.partial ] || break; sleep 0.05; done
	kill -HUP $!; wait $! || code=$?
	[ -s out/timeline.csv ] && ! ls out | grep partial; exit $code'
found 'interrupted while reading' 3 '^1 .*inputs were read' 'mkfifo t.csv' \
	'set -m
	"$preheat_path" simulate -f "$example/pool.yaml" --trace t.csv --out out >/dev/null 2>said &
	exec 9>t.csv; kill -INT $!; code=0; wait $! || code=$?
	echo "$(wc -l <said) $(cat said)"; [ ! -e out ] && exit $code'

# A world file is checked beside its pools, all of it at once.
world='printf "kind: World\npools:\n  - { name: chat, replicas: 50, nonsense: 1 }\n  - { name: chat, replicas: 1 }\nnodeGroups:\n  - { name: g5 }\n  - { name: g5 }\n  - { name: nope }\n" >w.yaml'
found 'check: all mistakes of a world' 1 '^5 mistakes in 1 file' "$world" 'preheat check "$example/pool.yaml" w.yaml'
found 'check: a world with too many replicas' 1 'w\.yaml:3:.*pools\[0\]\.replicas: found .50.; allowed: at most the 20 replicas' \
	"$world" 'preheat check "$example/pool.yaml" w.yaml'
found 'check: a world with a pool twice' 1 'w\.yaml:4:.*pools\[1\]\.name.*second time' "$world" \
	'preheat check "$example/pool.yaml" w.yaml'
found 'check: the example with its world' 0 '^1 object: 0 errors, 0 warnings, 1 note' '' 'preheat check "$example/pool.yaml" "$example/world.yaml"'
refused 'check: a world alone' 2 'name their manifest' "$world" 'preheat check w.yaml'
refused 'simulate: a world with several mistakes' 2 'w\.yaml:3.*4 more' "$world" "$clear_run --world w.yaml"

found 'interrupted in the comparison' 3 'PARTIAL' \
	'preheat generate --shape diurnal --length 20h --rate 20 --seed 1 --out day.csv 2>/dev/null' \
	'set -m
	"$preheat_path" simulate -f "$example/pool.yaml" --trace day.csv --compare --out out >said 2>err &
	for _ in $(seq 1200); do [ "$(pgrep -c -P $!)" -eq 0 ] || break; sleep 0.05; done
	kill -INT $!; code=0; wait $! || code=$?; cat said
	grep -q "\"sweep_complete\": false" out/compare.json && exit $code'
