#!/usr/bin/env bash
# Four hours of two vLLM replicas, put into a real Prometheus, come back as a recording and as traffic.
#   import_live.sh PREHEAT
# Skips (exit 77) without prometheus.
set -euo pipefail
preheat=$(realpath "$1")
cluster=$(realpath "$(dirname "$0")/../cli/init/cluster.yaml")
# shellcheck source=tests/signals/prometheus.sh
. "$(dirname "$0")/prometheus.sh"

fail() {
	echo "FAILED: $*"
	exit 1
}
scratch_beside_prometheus

cat >pool.yaml <<'END'
apiVersion: preheat.dev/v1alpha1
kind: WarmPool
metadata: { name: chat, namespace: llm }
spec:
  objective: { queueWait: 2s, attainment: 99% }
  workload: { selector: { matchLabels: { app: chat } }, maxSequences: 16 }
  nodeGroups:
    - { name: g5, provider: simulated, gpusPerNode: 1, pricePerHour: 1.2, max: 10 }
END
# A pod restarts in the middle, nobody is scraped for ten minutes; "requests prompt output" is what it comes to.
python3 - >metrics.om 2>sums <<'END'
import math, sys, time
begin = int(time.time()) // 15 * 15 - 5 * 3600
series, total = {}, 0
state = {pod: dict.fromkeys(('requests', 'prompt', 'output'), 0) for pod in 'ab'}
for step in range(0, 4 * 3600, 15):
    labels = '{namespace="other",pod="c",instance="c:8000",job="others",model_name="%s"}'
    for model in 'm', 'n':
        series.setdefault(('vllm:num_requests_running', 'gauge'), []).append((labels % model, begin + step, 1))
    for pod in 'ab':
        if pod == 'b' and step == 7200:
            state[pod] = dict.fromkeys(state[pod], 0)
        s, done = state[pod], int(6 + 4 * math.sin(step / 3000))
        s['requests'] += done
        s['prompt'] += 800 * done
        s['output'] += 150 * done
        silent = 10000 <= step < 10600
        total += done if step else 0
        if silent:
            continue
        labels = f'{{namespace="llm",pod="{pod}",instance="{pod}:8000",job="vllm",model_name="m"}}'
        for name, kind, value in (('vllm:num_requests_running', 'gauge', done / 2), ('vllm:num_requests_waiting', 'gauge', 0),
                                  ('vllm:request_success_total', 'counter', s['requests']),
                                  ('vllm:prompt_tokens_total', 'counter', s['prompt']),
                                  ('vllm:generation_tokens_total', 'counter', s['output'])):
            series.setdefault((name, kind), []).append((labels, begin + step, value))
for (name, kind), rows in series.items():
    print('# TYPE', name.removesuffix('_total'), kind)
    for labels, at, value in sorted(rows):
        print(f'{name}{labels} {value} {at}')
print('# EOF')
print(total, file=sys.stderr)
END
# shellcheck disable=SC2119 # its arguments are not ours
serve_samples

"$preheat" import --prometheus "http://127.0.0.1:$port" -f pool.yaml --last 6h --out day.db 2>said
grep -q 'chat: model .m. (2 replicas), .* readings' said || fail "the model is not told: $(cat said)"
grep -q ' requests from .* to .*, longest gap [0-9]*m' said || fail "span and gap are not told: $(cat said)"
grep -q 'gaps stay gaps' said || fail "the gap is not told: $(cat said)"
"$preheat" replay --db day.db >/dev/null || fail "the recording does not replay"
"$preheat" simulate --recording day.db --out simulated >/dev/null 2>&1
"$preheat" import --prometheus "http://127.0.0.1:$port" -f pool.yaml --last 6h --out day.csv 2>/dev/null
python3 - "$(cat sums)" <<'END'
import csv, json, sys
sent = int(sys.argv[1])
rows = list(csv.DictReader(open('day.csv')))
requests, prompt, output = (sum(int(r[k]) for r in rows) for k in ('n_req', 'prompt_tokens', 'output_tokens'))
pools = json.load(open('simulated/summary.json'))['pools']
simulated = (pools if isinstance(pools, list) else list(pools.values()))[0]['requests']
print(f'{sent} requests were answered, {requests} came back as traffic, {simulated} were simulated from the recording')
# What ended in the silent ten minutes is smoothed over four scrapes at its edges.
assert abs(requests - sent) <= 0.06 * sent, 'traffic'
assert abs(simulated - requests) <= 0.02 * requests, 'recording'
assert abs(prompt / requests - 800) < 8 and abs(output / requests - 150) < 2, 'lengths'
END
"$preheat" import --prometheus manifest -f pool.yaml --print-queries >queries
grep -q 'increase(vllm:request_success_total{namespace="llm"}\[60s\])' queries || fail "no query to paste: $(cat queries)"

# refused PATTERN ARGUMENT...
refused() {
	local pattern=$1 code=0
	shift
	"$preheat" import "$@" >out 2>&1 || code=$?
	[ $code -ne 0 ] || fail "not refused: $*"
	grep -q "$pattern" out || fail "$*: $(cat out)"
}
refused 'nothing of it in that time' --prometheus "http://127.0.0.1:$port" -f pool.yaml --last 30m --out no.db
sed 's/namespace: llm/namespace: other/' pool.yaml >other.yaml
refused "its series are of 2 models: .*m.* (1 replica), .*n.* (1 replica).*such as model_name" \
	--prometheus "http://127.0.0.1:$port" -f other.yaml --last 6h --out no.db
refused 'needs the WarmPools' --prometheus "http://127.0.0.1:$port" --out no.db
refused 'give its URL' --prometheus manifest -f pool.yaml --out no.db
refused 'none is called nobody' --prometheus "http://127.0.0.1:$port" -f pool.yaml --pool nobody --out no.db
refused 'refused\|connect' --prometheus http://127.0.0.1:1 -f pool.yaml --last 1h --out no.db
refused 'day.db' --prometheus "http://127.0.0.1:$port" -f pool.yaml --last 6h --out day.db
[ ! -e no.db ] || fail "a refused import left a file"

# A pool of which the server knows nothing does not keep the others from being imported.
for name in chat idle; do
	sed "s/name: chat/name: $name/; s/^spec:/&\n  signals: { prometheus: { url: \"http:\/\/127.0.0.1:$port\", labels: { job: $name } } }/
		s/job: chat/job: vllm/" pool.yaml
	echo ---
done | sed '$d' >two.yaml
"$preheat" import --prometheus manifest -f two.yaml --last 6h --out two.db 2>said || fail "two pools: $(cat said)"
grep -q 'idle: 0 readings' said || fail "the idle pool is not told: $(cat said)"
[ "$("$preheat" history --all --db two.db --pool chat -o csv | wc -l)" -gt 10 ] || fail "chat was not imported"

# Every engine's queries are ones that the server understands.
for engine in vllm sglang tgi triton llamacpp dynamo lmdeploy; do
	sed "s/^spec:/&\n  signals: { engine: $engine }/" pool.yaml >engine.yaml
	"$preheat" import --prometheus "http://127.0.0.1:$port" -f engine.yaml --last 1h --out engine.db >said 2>&1 || true
	grep -q 'nothing of it in that time\|readings' said || fail "$engine: $(cat said)"
	rm -f engine.db
done

# From a cluster's objects and this server to a verdict, in one command.
"$preheat" init -f "$cluster" --prometheus "http://127.0.0.1:$port" --last 6h --out trial >said 2>&1 || fail "init: $(cat said)"
grep -Eq '^chat: you held [0-9.]+ GPU hours \(\$[0-9.]+\) with [0-9.]+ % late' said || fail "what was held is not told: $(cat said)"
grep -q 'Preheat would have held\|The model does not fit' said || fail "no verdict: $(cat said)"
"$preheat" history --all --db trial/verdict --number 100000 -o csv >decisions.csv
grep -q observe decisions.csv && fail "the verdict is of a pool that only observes: $(grep -m1 observe decisions.csv)"
grep -q 'preheat explain --db trial/verdict --largest' said || fail "what comes next is not told: $(cat said)"
