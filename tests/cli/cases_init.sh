# shellcheck shell=bash disable=SC2016,SC2154
# preheat init on objects from a file: tests/deploy/init_test.sh asks an API server, tests/signals/import_live.sh a Prometheus.

cluster=$PWD/tests/cli/init/cluster.yaml
golden=${cluster%/*}/pools.golden

found 'init: what serves is found' 0 'Deployment llm/chat: vllm, 2 pods of 1 GPU on g5-spot \(1 node, g5.xlarge\), g5-od' '' "preheat init -f '$cluster'"
found 'init: GPUs that are claimed' 0 'Deployment llm/chat: vllm, 1 pod of 2 GPUs on h100 \(1 node, p5.48xlarge\)' '' "preheat init -f '${cluster%/*}/claims.yaml'"
found 'init: and counted so' 0 '^2 2$' '' "preheat init -f '${cluster%/*}/claims.yaml' >/dev/null && echo \$(grep -oP 'gpusPerReplica: \K.' preheat/pools.yaml) \$(grep -oP 'gpusPerNode: \K.' preheat/pools.yaml)"
found 'init: what is left out is said' 0 'Deployment lab/notebook: no model server that is known by its image' '' "preheat init -f '$cluster'"
found 'init: the pools' 0 '^same$' '' "preheat init -f '$cluster' >/dev/null && sed 1d preheat/pools.yaml | diff - '$golden' && echo same"
found 'init: they are taken' 0 '3 objects: 0 errors, 0 warnings, 1 note' '' "preheat init -f '$cluster'"
found 'init: GPU pods that are no service get a default pool' 0 '^lab a100 any observe$' '' "preheat init -f '$cluster' >/dev/null && preheat check -o json preheat/default-pool.yaml >/dev/null && awk '/^metadata/ { n = \$6 } /- name:/ { g = \$3 } /class:/ { c = \$2 } /mode:/ { m = \$2 } END { print n, g, c, m }' preheat/default-pool.yaml"
found 'init: where all are services there is none' 0 '^autoscalers.yaml pools.yaml$' \
	"sed 's|jupyter/gpu-notebook:1|vllm/vllm-openai:v0.11.0|' '$cluster' >all.yaml" 'preheat init -f all.yaml >&2; echo $(ls preheat)'
refused 'init: nor is default-pool.yaml, of whomever' 2 'default-pool.yaml is there' 'echo mine >default-pool.yaml' "preheat init -f '$cluster' --out ."
found 'init: who scales today' 0 '"name":"chat","namespace":"llm"' '' "preheat init -f '$cluster' >/dev/null && cat preheat/autoscalers.yaml"
# simulates WAY MODE: what the only pool of a manifest in that form comes to, with that text for its mode.
simulated='simulates() {
	printf "$1" "$2" >p.yaml
	preheat simulate -f p.yaml --trace t.csv --out out --force -o csv 2>/dev/null
}
block="apiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: { name: a }\nspec:\n%b  objective: { queueWait: 2s, attainment: 99%% }\n  nodeGroups: [ { name: g, max: 9 } ]\n"
flow="{\"apiVersion\": \"preheat.dev/v1alpha1\", \"kind\": \"WarmPool\", \"metadata\": {\"name\": \"a\", \"annotations\": {\"n\": \"für\"}}, \"spec\": {%b\"objective\": {\"queueWait\": \"2s\", \"attainment\": \"99%%\"}, \"nodeGroups\": [{\"name\": \"g\", \"max\": 9}]}}\n"
simulates "$block" "  mode: act\n" >act.csv; simulates "$block" "  mode: paused\n" | cmp -s - act.csv && exit 1'
for way in '"$block" ""' '"$block" "  mode: observe # yet\n"' '"$flow" ""' '"$flow" "\"mode\": \"observe\","'; do
	found "simulate: what only observes acts, $way" 0 ' 0 differ' \
		'preheat generate --shape steps --length 1h --rate 20 --seed 1 --out t.csv 2>/dev/null' \
		"$simulated; simulates $way | cmp - act.csv && preheat replay --db out"
done
found 'init: what comes next' 0 'simulate --recording preheat/week.db --compare --autoscalers preheat/autoscalers.yaml' '' "preheat init -f '$cluster'"
found 'init: and can be pasted as it stands' 0 '3 objects: 0 errors' '' "preheat init -f '$cluster' >said; "'eval "$(sed -n "/^Next:/,\$s/^  preheat check/preheat check/p" said)"'
found 'init: a list from standard input' 0 'search-chat' '' "preheat init -f - <'$cluster'"
refused 'init: nothing is replaced' 2 'pools.yaml is there; do: give another --out DIR, or --force' "preheat init -f '$cluster' >/dev/null" "preheat init -f '$cluster'"
for file in autoscalers.yaml verdict.txt; do
	refused "init: nor is $file, of whomever" 2 "$file is there; do: give another --out DIR, or --force" "echo mine >$file" "preheat init -f '$cluster' --out ."
	found "init: $file stays, and nothing is written beside it" 0 "^mine $file\$" "echo mine >$file" "preheat init -f '$cluster' --out . >&2 || echo \$(cat $file) \$(ls)"
done
found 'init: unless it may be' 0 'Written: preheat/pools.yaml' "preheat init -f '$cluster' >/dev/null" "preheat init -f '$cluster' --force"
# What is missing, and the first of it only.
node='{ kind: Node, metadata: { name: n, labels: { node.kubernetes.io/instance-type: g5.xlarge } }, status: { allocatable: { cpu: 4%s } } }'
pod='{ kind: Pod, metadata: { name: p, namespace: llm }, spec: { nodeName: n, containers: [ { image: nginx } ] } }'
while IFS='|' read -r items lack; do
	found "init: found $lack" 1 "init: nothing to look after: found $lack in the files given; do: " \
		"printf 'kind: List\\nitems: [ $items ]\\n' >none.yaml" 'preheat init -f none.yaml 2>&1'
done <<END_OF_LACKS
|no node and no pod
$pod|pods, and no node
${node/\%s/}, $pod|nodes, and none with GPUs
${node/\%s/, nvidia.com/gpu: 1}|GPU nodes, and no pod
${node/\%s/, nvidia.com/gpu: 1}, $pod|GPU nodes and pods, and no pod of a known model server that asks for GPUs there
END_OF_LACKS
refused 'init: an argument' 2 "found 'cluster'.*-f FILE" '' 'preheat init cluster'
refused 'init: a cluster that refuses connections is told at once' 3 'the API server cannot be asked: .*127.0.0.1:9/version.*; do: see that it runs' \
	'printf "%s\n" "apiVersion: v1" "kind: Config" "current-context: c" "clusters: [ { name: c, cluster: { server: \"http://127.0.0.1:9\" } } ]" \
		"users: [ { name: u, user: {} } ]" "contexts: [ { name: c, context: { cluster: c, user: u } } ]" >k.yaml' \
	'timeout 10 "$preheat_path" init --kubeconfig k.yaml'
found 'init: where that fails, the folder that was there stays' 3 '^stays$' \
	'mkdir mine' 'HOME=/nowhere KUBECONFIG= preheat init --out mine; code=$?; [ -d mine ] && echo stays; exit $code'
refused 'init: no cluster' 3 'KUBECONFIG' '' 'HOME=/nowhere KUBECONFIG= preheat init'
found 'init: a Prometheus that is not there' 3 'refused|connect' '' "preheat init -f '$cluster' --prometheus http://127.0.0.1:1 2>&1"

# Several in a namespace: each by the name that its metrics give its model.
neighbours="python3 ${cluster%/*}/neighbours.py >near.json"
beside='preheat init -f near.json --prometheus http://127.0.0.1:1 >said 2>&1'
for model in chat qwen/coder meta/draft; do
	found "init: the series of $model alone" 0 "labels: \{ namespace: llm, model_name: \"?$model\"? \}" "$neighbours" "$beside; cat preheat/pools.yaml"
done
found 'init: where their models are called alike it is said' 0 'namespace: llm \}   # add what only its series have, such as job' \
	"$neighbours; sed -i 's/--served-model-name=chat/--served-model-name=qwen\/coder/' near.json" "$beside; cat preheat/pools.yaml"
found 'init: as many nodes as the autoscaler may ask for' 0 'max: 12   # guessed: what its autoscaler may ask for' "$neighbours" \
	"$beside; cat preheat/pools.yaml"
found 'init: autoscalers of something else are not kept' 0 '^3$' "$neighbours" "$beside; grep -c HorizontalPodAutoscaler preheat/autoscalers.yaml"

# A replica of several pods: the set is scaled, and its leaders tell.
groups="python3 ${cluster%/*}/groups.py >groups.json"
set='preheat init -f groups.json --prometheus http://127.0.0.1:1 >said 2>&1'
found 'init: the pods of a LeaderWorkerSet are one service' 0 'LeaderWorkerSet llm/big: vllm, 4 pods of 8 GPUs on h100 \(4 nodes\)' "$groups" "$set; cat said"
found 'init: the set is what is scaled' 0 'scaleTargetRef: \{ apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: big \}' "$groups" "$set; cat preheat/pools.yaml"
found 'init: and its leaders are the pods, of all groups' 0 \
	'selector: \{ matchLabels: \{ leaderworkerset.sigs.k8s.io/name: big, leaderworkerset.sigs.k8s.io/worker-index: "0" \} \}' "$groups" "$set; cat preheat/pools.yaml"
found 'init: what a leader is started with' 0 'maxSequences: 48 ' "$groups" "$set; cat preheat/pools.yaml"
# A server that answers with errors is asked again; where they stay they are told once.
server='printf "%s\n" "apiVersion: v1" "kind: Config" "current-context: c" "clusters: [ { name: c, cluster: { server: $ENDPOINT } } ]" \
	"users: [ { name: u, user: { token: t } } ]" "contexts: [ { name: c, context: { cluster: c, user: u } } ]" >k.yaml'
for verb in 'check --cluster' 'init --out .'; do
	found "$verb: the API server fails twice" 0 '^asked$' '' "failing='$server; timeout 60 \"\$preheat_path\" $verb --kubeconfig k.yaml >&2; [ \$? -le 2 ] && echo asked'
		FAILS=2 preheat_path=\$preheat_path python3 -B \"\$OLDPWD/tests/cli/one_answer.py\" '{\"kind\":\"List\",\"items\":[]}' sh -c \"\$failing\""
	refused "$verb: the API server fails for long" 3 'the API server cannot be asked: .*503.*; do: ' '' "failing='$server; timeout 60 \"\$preheat_path\" $verb --kubeconfig k.yaml'
		FAILS=1000 preheat_path=\$preheat_path python3 -B \"\$OLDPWD/tests/cli/one_answer.py\" '{}' sh -c \"\$failing\"; code=\$?; rm -f k.yaml; exit \$code"
done
