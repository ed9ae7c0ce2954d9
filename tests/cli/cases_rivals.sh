# shellcheck shell=bash disable=SC2016,SC2154
# Other autoscalers: named, set and compared from outside.

day='preheat generate --shape diurnal --length 4h --rate 40 --bin 10s --seed 1 --out day.csv 2>/dev/null'
run='preheat simulate -f "$example/pool.yaml" --trace day.csv --warm-up 1h'

refused 'rival with an unknown setting' 2 'traget.*did you mean target' "$day" "$run --policy hpa:traget=0.8"
refused 'rival with a setting out of range' 2 'target=9.*from 0.05 to 2' "$day" "$run --policy hpa:target=9"
refused 'rival with a setting that is not a number' 2 'target=nan.*number' "$day" "$run --policy kpa:target=nan"
refused 'rival with a bad pool' 2 'static:N or total:N' "$day" "$run --policy hpa:pool=12"
refused 'unknown rival' 2 'hpq.*static, hpa, kpa' "$day" "$run --compare --rivals hpq"
refused 'rivals without --compare' 2 'add --compare' "$day" "$run --rivals hpa"
found 'a single rival' 0 '"policy": "hpa"' "$day" "$run --policy hpa:target=0.9,window=120 --output json"
found 'comparison' 0 'hpa +default.*target=0.8' "$day" "$run --compare --rivals hpa,static --out out"
found 'comparison is written, a row per setting' 0 '^50$' "$day" \
	"$run --compare --rivals static --out out >/dev/null 2>&1; grep -c '\"policy\": ' out/compare.json"
found 'comparison again gives the same bytes' 0 '^same$' "$day" \
	"for i in 1 2; do $run --compare --rivals static --out out\$i >/dev/null 2>&1; done; cmp out1/compare.json out2/compare.json && echo same"
# What is shown ran in the same draws as Preheat itself: also what was chosen only once means were known.
found 'comparison: what is chosen is a mean of all draws' 0 '^true$' "$day" \
	"$run --compare --rivals static,hpa --draws 3 --out out >/dev/null 2>&1; jq '[.[] | select(.scored.draws)]
	| all(.[]; (.policy == \"preheat\" or .is_cheapest or .is_cheapest_hot or .is_tuned or .is_tuned_hot or .is_default) as \$shown
		| .scored.draws == if \$shown then 3 else 1 end or (\$shown | not))
	and any(.[]; .scored.draws == 1) and any(.[]; .is_cheapest)' out/compare.json"

# The team's own autoscalers, out of the manifests that the cluster has.
own() { # TARGET QUERY [MORE]
	printf 'cat >own.yaml <<"END"\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: { name: chat, namespace: llm }\nspec:\n  scaleTargetRef: { name: %s }\n  minReplicaCount: 2\n  maxReplicaCount: 30\n  cooldownPeriod: 600\n  triggers:\n    - type: prometheus\n      metadata: { query: "%s", threshold: "8" }\n%s\nEND\n' "$1" "$2" "${3-}"
}
hpa='cat >own.yaml <<"END"
apiVersion: v1
kind: List
items:
- apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: { name: chat, namespace: llm }
  spec:
    scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: chat }
    minReplicas: 2
    maxReplicas: 30
    metrics:
    - type: Pods
      pods: { metric: { name: vllm_num_requests_running }, target: { type: AverageValue, averageValue: 80 } }
    behavior:
      scaleDown: { stabilizationWindowSeconds: 600, policies: [ { type: Percent, value: 10, periodSeconds: 60 } ] }
- apiVersion: karpenter.sh/v1
  kind: NodePool
  metadata: { name: gpu }
  spec: { disruption: { consolidateAfter: 5m } }
END'
team="$run --compare --rivals static --autoscalers own.yaml --out out"
found 'the HPA that the team has' 0 '^yours +as it is .*HorizontalPodAutoscaler llm/chat' "$day
$hpa" "$team"
found 'its settings are in the file' 0 \
	'"setting": "running=80,min=2,max=30,down_window=600,down_percent=10,down_percent_s=60,down_pods=0,removal=300"' \
	"$day
$hpa" "$team >/dev/null 2>&1; cat out/compare.json"
found 'the ScaledObject that the team has' 0 '"setting": "waiting=8,min=2,max=30,cooldown=600"' "$day
$(own chat 'sum(vllm:num_requests_waiting{namespace=\"llm\"})')" "$team >/dev/null 2>&1; cat out/compare.json"
refused 'a metric that is not in the model' 2 'own.yaml:11:26: spec.triggers\[0\].metadata.query: .*allowed: a metric of running or waiting' \
	"$day
$(own chat 'avg(DCGM_FI_DEV_GPU_UTIL)')" "$team"
refused 'a trigger that is not in the model' 2 'allowed: type prometheus' "$day
$(own chat 'sum(vllm:num_requests_waiting)' '    - type: cron')" "$team"
two="$(own chat 'sum(vllm:num_requests_waiting)')
cp own.yaml first.yaml
$(own chat 'avg(DCGM_FI_DEV_GPU_UTIL)')
{ cat first.yaml; echo ---; sed 's/name: chat, names/name: hot, names/' own.yaml; } >both.yaml; mv both.yaml own.yaml"
found 'one of two is not in the model: the other is' 0 '^yours +as it is .*ScaledObject llm/chat' "$day
$two" "$team"
found 'and is left out by name' 0 'ScaledObject llm/hot is left out of the comparison: own.yaml:24:26: .*allowed: a metric of running or waiting' "$day
$two" "$team 2>&1 >/dev/null"
refused 'an autoscaler of something else' 2 'ScaledObject llm/chat scales web; name the workload' "$day
$(own web 'sum(vllm:num_requests_waiting)')" "$team"
refused 'autoscalers without --compare' 2 'add --compare' "$day" "$run --autoscalers own.yaml"
found 'the same beside a recording' 0 '^yours +as it is' "$day
$hpa
preheat simulate -f \"\$example/pool.yaml\" --trace day.csv --out h >/dev/null 2>&1" \
	'preheat simulate --recording h/history.db --compare --rivals static --autoscalers own.yaml'
