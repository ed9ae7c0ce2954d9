"""Measures how long pending GPU pods wait for machines: see pending.sh. Prints a table in Markdown."""
import json
import os
import statistics
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'scenario'))
import karpenter  # noqa: E402
import owners  # noqa: E402
import process  # noqa: E402
import stage  # noqa: E402
import world  # noqa: E402

PODS, ROUNDS = 100, 5
INSTANT = dict.fromkeys(karpenter.STAGES, '0s')
MANIFEST = """apiVersion: preheat.dev/v1alpha1
kind: WarmPool
metadata: { name: default, namespace: llm }
spec:
  mode: act
  class: any
  nodeGroups:
    - { name: any, provider: simulated, simulated: { endpoint: "ENDPOINT" }, zone: z1, instanceType: g5.xlarge, gpusPerNode: 1,
        pricePerHour: 1.21, min: 0, max: 200 }
"""


def group(name, **more):
    return {'name': name, 'min': 0, 'max': 200, 'instance_type': 'g5.xlarge', 'count': 1, 'cpu': '64', 'memory': '512Gi',
            'labels': {'simulated.preheat.dev/node-group': name}, 'stages': INSTANT, 'taints': [karpenter.TAINT], **more}


def work(name):
    return {'apiVersion': 'apps/v1', 'kind': 'Deployment', 'metadata': {'name': name, 'namespace': world.SPACE}, 'spec': {
        'replicas': PODS, 'selector': {'matchLabels': {'app': name}}, 'template': {
            'metadata': {'labels': {'app': name}}, 'spec': {
                'terminationGracePeriodSeconds': 0, 'tolerations': [{'key': 'nvidia.com/gpu', 'operator': 'Exists'}],
                'containers': [{'name': 'work', 'image': 'registry.invalid/work:1', 'resources': {
                    'requests': {'cpu': '1'}, 'limits': {'nvidia.com/gpu': '1'}}}]}}}}


def is_gone(s, name):
    return not s.pods(name, False) and not s.watches['Node'].snapshot()


def until_all_run(s, name):
    """Seconds from the request for the Deployment until all of its pods are bound, and until all are ready; nodes then."""
    began = time.monotonic()
    s.kube.create(work(name))
    pods = lambda: [p for _, p in s.pods(name, False)]
    if not process.until(lambda: sum(bool(p['node']) for p in pods()) == PODS, 300, 0.02):
        raise SystemExit(f"{name}: {sum(bool(p['node']) for p in pods())} of {PODS} pods are bound after 300 s")
    bound = time.monotonic() - began
    if not process.until(lambda: sum(p['ready'] for p in pods()) == PODS, 300, 0.02):
        raise SystemExit(f'{name}: not all of its pods are ready after 300 s')
    return bound, time.monotonic() - began, len(s.watches['Node'].snapshot())


def clear(s, name):
    s.must('kubectl', 'delete', 'deployment', name, '-n', world.SPACE, '--wait=false')


def preheat(s, number):
    path = os.path.join(s.folder, 'default.yaml')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(MANIFEST.replace('ENDPOINT', s.machines.url))
    run = s.controller('preheat-a', '-f', path, '--no-election', '--namespace', stage.SPACE)
    process.run(['rm', '-f', run.db, run.db + '-wal', run.db + '-shm'])
    run.start()
    s.expect('Preheat has decided', lambda: (run.metric('preheat_tick_duration_seconds_count') or 0) >= 1)
    took = until_all_run(s, f'preheat-{number}')
    run.stop(30)
    clear(s, f'preheat-{number}')
    machines = [m['id'] for m in s.group('any')['machines']]
    s.machines.ask('/v1/groups/any/remove', {'token': f'end-{number}', 'machines': machines})
    s.expect('its machines are gone', lambda: is_gone(s, f'preheat-{number}'))
    return took


def karpenter_pool():
    """Not static: as many nodes as pods need."""
    pool = json.loads(json.dumps(karpenter.NODE_POOL))
    pool['spec'].pop('replicas', None)
    pool['spec']['disruption'] = {'consolidateAfter': 'Never'}
    return pool


def rival(s, number):
    owners.apply(s, karpenter_pool())
    took = until_all_run(s, f'karpenter-{number}')
    clear(s, f'karpenter-{number}')
    s.must('kubectl', 'delete', 'nodepool', 'gpu', '--wait=false')
    s.expect('its machines are gone', lambda: is_gone(s, f'karpenter-{number}'))
    return took


def measure(s):
    folder = owners.built(s, 'karpenter')
    if not folder:
        raise SystemExit('Karpenter cannot be built here')
    s.start_machines({'groups': [group('gpu', foreign='kwok://'), group('any')], 'pools': []}, {})
    s.kube.create({'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': world.SPACE}})
    s.open_eyes()
    s.accounts('preheat-a')
    karpenter.NODE_POOL = karpenter_pool()
    karpenter.size = lambda _: 0  # it has none: not static
    karpenter.start_karpenter(s, folder)
    s.must('kubectl', 'delete', 'nodepool', 'gpu')
    hosts = karpenter.Hosts(s)
    hosts.start()
    took = {'Preheat': [], 'Karpenter': []}
    for number in range(ROUNDS):
        took['Preheat'].append(preheat(s, number))
        took['Karpenter'].append(rival(s, number))
    hosts.ended.set()
    print(f'\n| {PODS} pending pods, one machine each | bound, s | ready, s | each ready | machines |\n|---|---|---|---|---|')
    for name, rounds in took.items():
        bound, ready = (statistics.median(r[i] for r in rounds) for i in (0, 1))
        print(f"| {name} | {bound:.1f} | {ready:.1f} | {', '.join(f'{r[1]:.1f}' for r in rounds)} | "
              f"{max(r[2] for r in rounds)} |")


if __name__ == '__main__':
    stage.main(measure, 'pending')
