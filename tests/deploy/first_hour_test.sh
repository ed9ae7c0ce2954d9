#!/usr/bin/env bash
# The transcript of docs/getting-started.md, command by command: a real API server has three services and an HPA each, a real
# Prometheus what they did for half a day (tests/signals/services.py), and preheat init comes to a verdict that fits what was so.
# Usage: tests/rig/with_rig.sh tests/deploy/first_hour_test.sh PREHEAT. Skips (exit 77) without prometheus.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
preheat=$(realpath "$1")
[ -n "${RIG_DIR:-}" ] || exec "$here/../rig/with_rig.sh" "$here/first_hour_test.sh" "$preheat"
# shellcheck source=tests/deploy/verdicts.sh
. "$here/verdicts.sh"
# shellcheck source=tests/signals/prometheus.sh
. "$here/../signals/prometheus.sh"
scratch_beside_prometheus

python3 "$here/../signals/services.py" . 12
# Blocks hold no marks of series that ended, as scraping makes them: so the server looks no further back than one scrape.
serve_samples --query.lookback-delta=20s

# The cluster of today: nodes that are ready, and the Deployments whose pods the scheduler puts on them.
kubectl create namespace llm >/dev/null
python3 - <<'SPLIT'
import json
items = json.load(open('cluster.yaml'))['items']
json.dump({'apiVersion': 'v1', 'kind': 'List', 'items': [o for o in items if o['kind'] not in ('Pod', 'ReplicaSet')]}, open('objects.json', 'w'))
for o in items:
    if o['kind'] == 'Node':
        print(o['metadata']['name'], json.dumps({'status': o['status']}), file=open('nodes', 'a'))
SPLIT
kubectl create -f objects.json >/dev/null
while read -r node status; do
	kubectl patch node "$node" --subresource=status --type=merge -p "$status" >/dev/null
	kubectl taint node "$node" node.kubernetes.io/not-ready- >/dev/null 2>&1 || :
done <nodes
for _ in $(seq 600); do
	[ "$(kubectl get pods -n llm -o 'jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}' | grep -c .)" -lt "$(wc -l <nodes)" ] || break
	sleep 0.1
done

preheat() {
	"$preheat" "$@"
}
# The commands of the transcript, with this server and as much as it keeps.
sed -n '/^### A verdict/,/^## /s/^\$ //p' "$here/../../docs/getting-started.md" |
	sed "s|http://prometheus:9090|http://127.0.0.1:$port --last 12h|" >commands
is 'the transcript has commands' 4 "$(wc -l <commands)"
while read -r command; do
	status=0
	eval "$command" >said 2>err </dev/null || status=$?
	is "$command: exit code" 0 $status
	[ $status -eq 0 ] || cat err
	case $command in
	'preheat init'*) cp said verdict.said ;;
	esac
done <commands

for name in chat code summary; do
	has "$name: found" "Deployment llm/$name: vllm," "$(cat verdict.said)"
	has "$name: judged" "$name: you held " "$(cat verdict.said)"
done
has 'what the hours are of' 'Prometheus does not tell of machines that started' "$(cat verdict.said)"
grep ' held \|in the model\|no verdict' verdict.said
grep 'does not fit' trial/verdict.txt || :
python3 - <<'TRUTH' || is 'recorded and modelled are what was so' yes no
import json
truth, recorded = json.load(open('truth.json')), json.load(open('trial/verdict/summary.json'))['recorded']
said, why, judged = open('verdict.said').read(), open('trial/verdict.txt').read(), 0
met = {row['pool']: row['meets_objective'] for row in json.load(open('trial/verdict/compare.json')) if row['policy'] == 'preheat'}
for name, t in truth.items():
    r = recorded[name]
    print(f'{name}: {t["gpu_hours"]:.1f} GPU hours and {t["late_share"]:.2%} late; recorded {r["gpu_hours"]:.1f}, {r["late_share"]:.2%}; '
          f'modelled {r["model_gpu_hours"]:.1f}, {r["model_late_share"]:.2%}')
    # Late requests come together, so twice as many of the model's are still chance where they are few.
    near = {share: max(t['late_share'], r[share]) < 0.001 or t['late_share'] / times <= r[share] <= times * t['late_share']
            for share, times in (('late_share', 1.5), ('model_late_share', 2 if t['late_share'] < 0.01 else 1.5))}
    assert abs(r['gpu_hours'] - t['gpu_hours']) <= 0.1 * t['gpu_hours'] and near['late_share'], f'{name}: recorded'
    fits = abs(r['model_gpu_hours'] - t['gpu_hours']) <= 0.1 * t['gpu_hours'] and near['model_late_share']
    assert fits or not r['model_fits'], f'{name}: a verdict out of a model that does not fit'
    part = said[said.index(f'{name}: you held'):].split('\n\n')[0]
    if r['model_fits']:
        assert 'Preheat would have held' in part and f'your HorizontalPodAutoscaler llm/{name}, in the model: ' in part, part
        ours = next(line for line in part.split('\n') if 'Preheat would have held' in line)
        assert ('misses the objective' in ours) != met[name], ours
    else:
        assert 'so there is no verdict' in part and 'Preheat would' not in part and f'The model does not fit pool {name}: ' in why, part
    judged += r['model_fits']
assert judged == len(truth), 'verdicts'
TRUTH
ended
