# shellcheck shell=bash disable=SC2016,SC2154
# preheat status: from a history, and what it says where there is nothing to ask; and what run says of itself.

simulated good --shape diurnal,bursts --length 3h --rate 20
alone='unset KUBECONFIG KUBERNETES_SERVICE_HOST; export HOME=$PWD;'
good="cp '$scratch/good/history.db' h.db"

found 'status: of a history' 0 '^llm +chat +act +[0-9]+ +[0-9]+ +[0-9.]+ +[0-9hms]+ ' \
	"$good" 'preheat status --db h.db'
found 'status: its head is short' 0 \
	'^NAMESPACE +NAME +MODE +HOT +STANDBY +DEMAND +WAIT +LIMIT +CHANGED$' "$good" 'preheat status --db h.db'
found 'status: of the folder of a simulation' 0 'llm +chat' 'true' "preheat status --db '$scratch/good'"
found 'status: the reason, wide' 0 'REASON.*' "$good" 'preheat status --db h.db -o wide'
found 'status: objectives, as the rows of five minutes have them' 0 '^alike$' "$good" \
	'want=$(sqlite3 h.db "SELECT printf(\"%.2f\", 100.0 * sum(late) / sum(started)) FROM level WHERE width = 0")
	preheat status --utc --db h.db 2>/dev/null | grep -E "^chat +1.00 % +$want % (met|missed) +$want % (met|missed) +$want % (met|missed) +[0-9,]+ (requests|over)$" >/dev/null && echo alike'
found 'status: what was spent' 0 '^chat +\$[0-9.]+ +\$[0-9.]+ +- +\$[0-9.]+ +-$' "$good" 'preheat status --utc --db h.db'
found 'status: a window longer than the record' 0 '^The record is 2h59m long; what is older is in none of these\.$' "$good" \
	'preheat status --db h.db'
found 'status: lateness and cost by day' 0 '^SPENT ON( +[A-Z][a-z]{2} [0-9]{2}){7}$' "$good" 'preheat status --db h.db'
found 'status: incidents' 0 'No incidents: |^[0-9]+ incidents? in 7 days' "$good" 'preheat status --db h.db'
found 'status: what was tried' 0 '^chat +headroom\.min: 2 +-\$3\.97 +2\.53 % +0\.79 %$' \
	"$good; echo '[{\"namespace\":\"llm\",\"pool\":\"chat\",\"change\":\"headroom.min: 2\",\"saves_dollars_a_day\":-3.9712,\"dollars_a_day\":52,\"late_ppm\":25250,\"late_with_ppm\":7937,\"allowed_ppm\":10000,\"needs\":null,\"tried_days\":7}]' >h.db.advice.json" \
	'preheat status --db h.db'
found 'status: nothing pays' 0 'To change, by what was tried at 2026-05-10 08:00:00: nothing pays' \
	"$good; echo '[]' >h.db.advice.json; touch -d 2026-05-10T08:00:00Z h.db.advice.json" 'preheat status --utc --db h.db'
found 'status: a damaged list of changes' 0 '^Note: h\.db\.advice\.json: ' "$good; echo '[{' >h.db.advice.json" 'preheat status --db h.db 2>&1'
found 'status: one pool' 0 'chat' "$good" 'preheat status --db h.db --pool llm/chat'
found 'status: numbers for programs' 0 '^true$' "$good" 'preheat status --db h.db -o json 2>/dev/null |
	jq ".[0] | (.hot | type) == \"number\" and (.demand | type) == \"number\" and (.wait_s | type) == \"number\"
		and .lead_time_p50_s > 1 and .lead_time_p95_s > .lead_time_p50_s and (.last_change | test(\"Z$\"))"'
found 'status: csv' 0 '^namespace,name,class,mode,hot,' "$good" 'preheat status --db h.db -o csv'
found 'status: when it was decided' 0 'As decided at 20' "$good" 'preheat status --db h.db 2>&1 >/dev/null'
found 'status: another namespace is empty, not wrong' 0 'No WarmPools found in namespace nowhere' "$good" \
	'preheat status --db h.db -n nowhere 2>&1'
refused 'status: unknown pool' 2 'nobody.*chat' "$good" 'preheat status --db h.db --pool nobody'
refused 'status: missing history' '2|3' 'h\.db.*no such file' 'true' 'preheat status --db h.db'
refused 'status: damaged history' '2|3' 'h\.db' 'yes hello | head -c 100000 >h.db' 'preheat status --db h.db'
refused 'status: newer history' '2|3' 'h\.db.*newer' "$good; sqlite3 h.db 'PRAGMA user_version = 9999'" 'preheat status --db h.db'
refused 'status: no kubeconfig' 3 '--db FILE.*no kubeconfig.*--kubeconfig FILE or set KUBECONFIG' 'true' "$alone preheat status"
refused 'status: a kubeconfig that is none' 2 'k\.yaml' 'echo "]" >k.yaml' "$alone preheat status --kubeconfig k.yaml"
refused 'status: a server that is not there' 3 '127\.0\.0\.1:9.*--db FILE|--db FILE.*127\.0\.0\.1:9' \
	'printf "%s\n" "apiVersion: v1" "kind: Config" "current-context: c" \
		"clusters: [ { name: c, cluster: { server: \"http://127.0.0.1:9\" } } ]" "users: [ { name: u, user: {} } ]" \
		"contexts: [ { name: c, context: { cluster: c, user: u } } ]" >k.yaml' "$alone preheat status --kubeconfig k.yaml"
refused 'status: a history and a cluster' 2 '--db .*--kubeconfig' "$good" 'preheat status --db h.db --kubeconfig k.yaml'
refused 'status: all namespaces and one' 2 'all-namespaces.*namespace' 'true' 'preheat status -A -n x'
refused 'status: an argument' 2 "found 'chat'.*--pool NAME" 'true' 'preheat status chat'
refused 'status: an output that is none' 2 'table\|wide\|json\|csv' 'true' 'preheat status -o xml'
refused 'status: an empty namespace' 2 'namespace' 'true' 'preheat status -n ""'
found 'status: its help' 0 'preheat status -A' 'true' 'preheat status --help'
for size in 100% 0% 15Mi 8Q -1 80%%; do
	refused "run: a history of at most $size" 2 "--retain-size: found '$size'; allowed: bytes from 16Mi on" 'true' \
		"preheat run --watch-pools --retain-size $size"
done
found 'run: what /metrics tells' 0 '`preheat_desired_replicas`' 'true' 'preheat run --print-metrics'
