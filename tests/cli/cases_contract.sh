# shellcheck shell=bash disable=SC2016
# preheat check on what runs beside pools: files, folders, renderings, forms, ignoring.

# shellcheck disable=SC2034  # what is evaluated uses it
cases=$PWD/tests/unit/contract/cases
found 'contract: a clean set' 0 '^11 objects: nothing wrong$' '' 'preheat check "$cases/clean.yaml"'
found "contract: KServe's Deployment is not called as its InferenceService" 0 'do: set workload.scaleTargetRef.name: llama-predictor' '' \
	'preheat check "$cases/pool-target.bad.yaml"'
found 'contract: a mistake names rule, place and remedy' 1 'at 25:13 spec\.template\.spec\.containers\[0\]\.resources' \
	'sed "1,/^---/d" "$cases/gpu-limits.bad.yaml" >d.yaml' 'preheat check d.yaml'
found 'contract: an autoscaler that is none: where, what, and what is allowed' 1 "spec.minReplicas: found 'few'; allowed: a whole number from 0" '' \
	'preheat check "$cases/scaler-spec.bad.yaml"'
found 'contract: warnings are no errors' 0 '0 errors, 1 warning' '' 'preheat check "$cases/job-ttl.bad.yaml"'
found 'contract: but with --strict' 1 '0 errors, 1 warning' '' 'preheat check --strict "$cases/job-ttl.bad.yaml"'
found 'contract: ignored and counted' 0 '; 2 ignored' '' 'preheat check "$cases/ignored.yaml"'
found 'contract: ignored and shown' 0 'cost-labels.* yes  *1$' '' 'preheat check -o wide "$cases/ignored.yaml"'
found 'contract: from a pipe, against pools in a file' 1 'gpu-limits' \
	'sed "1,/^---/d" "$cases/gpu-limits.bad.yaml" >d.yaml; sed "/^---/,\$d" "$cases/gpu-limits.bad.yaml" >p.yaml' \
	'preheat check - p.yaml <d.yaml'
found 'contract: without pools says what it did not judge' 0 'Not judged: no WarmPool' \
	'sed "1,/^---/d" "$cases/gpu-limits.good.yaml" >d.yaml' 'preheat check d.yaml'
claims='printf "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: llm, namespace: ml }\nspec: { template: { spec: { resourceClaims: [ { name: gpu, resourceClaimTemplateName: one } ], containers: [ { name: c, image: x, resources: { claims: [ { name: gpu } ] } } ] } } }\n" >d.yaml'
found 'contract: a claim that is not among the objects is told' 0 'Not judged: what 1 workload asks of GPUs by .*ml/llm: one' "$claims" 'preheat check d.yaml'
for what in nothing '{ requests: nothing }' '[]'; do
	found "contract: a claim whose devices are $what is told" 1 'Not judged: what 1 workload asks of GPUs by .*: one' \
		"$claims; printf -- '---\\napiVersion: resource.k8s.io/v1\\nkind: ResourceClaimTemplate\\nmetadata: { name: one, namespace: ml }\\nspec: { spec: { devices: $what } }\\n' >>d.yaml" 'preheat check d.yaml'
done
found 'contract: and a class that may be of GPUs' 0 "Not judged: what 1 workload claims by a DeviceClass .*ml/llm: .accel.example" \
	"$claims; printf -- '---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: { name: one, namespace: ml }\nspec: { spec: { devices: { requests: [ { name: r, exactly: { deviceClassName: accel.example } } ] } } }\n' >>d.yaml" \
	'preheat check d.yaml'
asked='printf -- "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: { name: one, namespace: ml }\nspec: { spec: { devices: { requests: [ { name: r, exactly: { deviceClassName: gpu.nvidia.com, %s } } ] } } }\n"'
found 'contract: a claim that only looks at devices is none for GPUs' 0 '^2 objects: nothing wrong$' "$claims; $asked 'adminAccess: true' >>d.yaml" 'preheat check d.yaml'
found 'contract: a claim for all of a machine is for GPUs' 1 'asks for GPUs and tolerates no taint' "$claims; $asked 'allocationMode: All' >>d.yaml" 'preheat check d.yaml'
found 'contract: the container that uses a claim is the one with GPUs' 1 'container c requests no CPU and no memory' "$claims; $asked 'count: 1' >>d.yaml" 'preheat check d.yaml'
found 'contract: and the one that serves' 0 'container server has no readinessProbe' \
	'sed "/^ *claims: /,/readinessProbe/{/readinessProbe/d}" "$cases/claims.yaml" >c.yaml' 'preheat check c.yaml'
# The pool counts one GPU a replica; how many all are, and what no number is, is not guessed.
for asks in 'allocationMode: All' 'count: 9223372036854775807' 'count: -3' 'count: 0' 'count: few'; do
	found "contract: what cannot be counted is not compared: $asks" 0 ': nothing wrong$' \
		"sed 's/deviceClassName: gpu.nvidia.com,/& $asks,/' \"\$cases/claims.yaml\" >c.yaml; grep -q '$asks' c.yaml" 'preheat check c.yaml'
done
found 'contract: more claimed than counted: no resource of that name is advised' 1 'do: set workload.gpusPerReplica: 2 in the WarmPool, or change the resource claim' \
	"sed 's/deviceClassName: gpu.nvidia.com,/& count: 2,/' \"\$cases/claims.yaml\" >c.yaml" 'preheat check c.yaml'
found 'contract: half a GPU is no size of a replica' 1 '^10 objects: 2 errors, 0 warnings, 0 notes$' 'sed "s,nvidia.com/gpu: .1. },nvidia.com/gpu: 500m }," "$cases/claims.yaml" >c.yaml' 'preheat check c.yaml'
found 'contract: what is not a number of GPUs' 1 "container c asks for '0.5' of nvidia.com/gpu, which is not a whole number of devices" \
	'printf "apiVersion: v1\nkind: Pod\nmetadata: { name: p }\nspec: { containers: [ { name: c, image: x, resources: { limits: { nvidia.com/gpu: 0.5 } } } ] }\n" >d.yaml' 'preheat check d.yaml'
# A LeaderWorkerSet: without a template of its own the leader is a worker, and each pod of a part has its labels.
said='preheat check d.yaml >out'
found 'contract: a leader beside workers, both judged' 0 '^2$' 'cp "$cases/groups.yaml" d.yaml' "$said; grep -c ' gpu-limits:' out"
found 'contract: a group of one has no worker beside its leader' 0 '^1$' 'sed "s/size: 2/size: 1/" "$cases/groups.yaml" >d.yaml' "$said; grep -c ' gpu-limits:' out"
found 'contract: a group of one without a leader is its worker' 0 '^1$' 'sed "s/size: 2/size: 1/; /leaderTemplate/,+2d" "$cases/groups.yaml" >d.yaml' \
	"$said; grep -c ' gpu-limits:' out"
for broken in '' 'leaderTemplate: { }' 'leaderTemplate: none, workerTemplate: none'; do
	found "contract: a LeaderWorkerSet of nothing, '$broken'" 1 'object-shape: spec.leaderWorkerTemplate.workerTemplate: found .*; allowed: ' \
		"sed '1,/^---/d; /size: 2/,\$d; s/leaderWorkerTemplate:/leaderWorkerTemplate: { $broken }/' \"\$cases/groups.yaml\" >d.yaml" 'preheat check d.yaml'
done
for labels in "role: leader, leaderworkerset.sigs.k8s.io/worker-index: '0'" 'role: worker, leaderworkerset.sigs.k8s.io/name: l'; do
	found "contract: selected by what its controller writes, $labels" 0 '^0$' "sed \"s#matchLabels: { role.* }\\\$#matchLabels: { $labels } }#\" \"\$cases/groups.yaml\" >d.yaml" \
		"$said; grep -c pool-selector out || true"
done
for labels in "role: worker, leaderworkerset.sigs.k8s.io/worker-index: '0'" 'role: leader, leaderworkerset.sigs.k8s.io/name: other'; do
	found "contract: no pod of the set has these, $labels" 1 'its selector does not match the pods of LeaderWorkerSet l' \
		"sed \"s#matchLabels: { role.* }\\\$#matchLabels: { $labels } }#\" \"\$cases/groups.yaml\" >d.yaml" 'preheat check d.yaml'
done
found 'contract: who counts leaders asks no worker to be ready' 0 '^1$' 'cp "$cases/groups.yaml" d.yaml' "$said; grep -c ' readiness-probe:' out"
found 'contract: workers counted beside their leaders' 1 'its selector matches the workers of LeaderWorkerSet l beside their leaders' \
	"sed \"s#matchLabels: { role.* }\\\$#matchLabels: { leaderworkerset.sigs.k8s.io/name: l } }#\" \"\$cases/groups.yaml\" >d.yaml" 'preheat check d.yaml'
# What its controller makes of it is judged with it: the leaders' StatefulSet is the set's, the workers' a leader's.
for maker in LeaderWorkerSet Pod; do
	found "contract: a StatefulSet of a $maker" 0 '^1 object: nothing wrong$' \
		"printf 'apiVersion: apps/v1\nkind: StatefulSet\nmetadata: { name: l-0, ownerReferences: [ { kind: $maker, name: l } ] }\nspec: { template: { spec: { containers: [ { name: c, image: x, resources: { requests: { nvidia.com/gpu: 8 } } } ] } } }\n' >d.yaml" 'preheat check d.yaml'
done
# As helm writes it: comments, empty documents, kinds of all sorts.
found 'contract: a rendering of helm' 1 '^standard input:10:1: Job default/j$' \
	'printf -- "---\n# Source: a/b.yaml\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: c }\ndata: { a: \"{{ x }}\" }\n---\n# only a comment\napiVersion: batch/v1\nkind: Job\nmetadata: { name: j, namespace: default }\nspec: { template: { spec: { containers: [ { name: w, resources: { limits: { nvidia.com/gpu: 1 } } } ] } } }\n" >r.yaml' \
	'preheat check - <r.yaml'
found 'contract: a folder, deep, with other files in it' 1 '^d/e/f\.json:1:' \
	'mkdir -p d/e d/.git; printf "a: b\n" >d/values.yaml; printf "{" >d/.git/x.yaml; printf "no yaml" >d/notes.txt
	printf "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"j\"},\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"w\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":1}}}]}}}}" >d/e/f.json' \
	'preheat check d'
found 'contract: a template of a chart' 1 'helm template CHART . preheat check -' \
	'mkdir -p c/templates; printf "kind: Deployment\nspec:\n  {{- if .Values.x }}\n  a: b\n  {{- end }}\n" >c/templates/d.yaml' 'preheat check c'
found 'contract: a List of kubectl' 1 'Job a/j' \
	'printf "apiVersion: v1\nkind: List\nitems:\n- apiVersion: batch/v1\n  kind: Job\n  metadata: { name: j, namespace: a }\n  spec: { template: { spec: { containers: [ { name: w, resources: { limits: { nvidia.com/gpu: 1 } } } ] } } }\n" >l.yaml' \
	'preheat check l.yaml'
found 'contract: JSON' 1 '"rule":"gpu-limits","kind":"Deployment","namespace":"llm","name":"chat","file":' '' \
	'preheat check -o json "$cases/gpu-limits.bad.yaml" | python3 -c "import json, sys; print(json.dumps(json.load(sys.stdin), separators=(\",\", \":\")))"; exit "${PIPESTATUS[0]}"'
found 'contract: CSV' 1 '^error,gpu-limits,Deployment,llm,chat,' '' 'preheat check -o csv "$cases/gpu-limits.bad.yaml"'
found 'contract: YAML' 1 '^  rule: gpu-limits$' '' 'preheat check -o yaml "$cases/gpu-limits.bad.yaml"'
found 'contract: SARIF' 1 '^error gpu-limits gpu-limits 42$' '' \
	'preheat check -o sarif "$cases/gpu-limits.bad.yaml" | python3 -c "
import json, sys
run = json.load(sys.stdin)[\"runs\"][0]
for r in run[\"results\"]:
    print(r[\"level\"], r[\"ruleId\"], run[\"tool\"][\"driver\"][\"rules\"][r[\"ruleIndex\"]][\"id\"],
          r[\"locations\"][0][\"physicalLocation\"][\"region\"][\"startLine\"])"; exit "${PIPESTATUS[0]}"'
found 'contract: a mistake in a pool is in SARIF, too' 1 '"ruleId":"manifest"' \
	'sed "s/attainment: [0-9.]*%/attainment: 101%/" "$example/pool.yaml" >p.yaml' 'preheat check -o sarif p.yaml'
found 'contract: names cannot write to the terminal' 1 'Job \?\[31mj' \
	'printf "apiVersion: batch/v1\nkind: Job\nmetadata: { name: \"\\\\e[31mj\" }\nspec: { template: { spec: { containers: [ { name: w, resources: { limits: { nvidia.com/gpu: 1 } } } ] } } }\n" >j.yaml' \
	'preheat check j.yaml'
found 'contract: objects of the wrong form' 1 '^3 objects: 3 errors' \
	'printf -- "apiVersion: apps/v1\nkind: Deployment\nspec: [ 1 ]\n---\napiVersion: v1\nkind: Pod\nspec: x\n---\napiVersion: batch/v1\nkind: Job\n" >x.yaml' \
	'preheat check x.yaml'
found 'contract: rules' 0 '^### gpu-limits$' '' 'preheat check --print-rules'
refused 'contract: an empty folder' 2 'no \*\.yaml, \*\.yml or \*\.json file' 'mkdir d' 'preheat check d >out; code=$?; rm -f out; exit $code'
refused 'contract: no such form' 2 'sarif' '' 'preheat check -o sarf "$cases/clean.yaml"'
refused 'contract: no cluster' 2 'no-such-file' '' 'preheat check --cluster --kubeconfig no-such-file'
