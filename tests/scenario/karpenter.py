#!/usr/bin/env python3
"""Nodes that are objects of the cluster: a real Karpenter serves a static NodePool with machines of its provider kwok, whose
kubelets the rig plays. It grows by its scale and shrinks by a lower size and the deletion of the NodeClaim that was emptied; what
Karpenter does by itself is let. A CapacityBuffer, with Karpenter's definition, says what shall be free."""
import json
import os
import threading
import time

import kube
import laws
import owners
import process
import stage
import world

POOL, CLAIMS = '/apis/karpenter.sh/v1/nodepools/gpu', '/apis/karpenter.sh/v1/nodeclaims'
NODE_CLASS = {'apiVersion': 'karpenter.kwok.sh/v1alpha1', 'kind': 'KWOKNodeClass', 'metadata': {'name': 'gpu'}, 'spec': {}}
BUFFERS = '/apis/autoscaling.x-k8s.io/v1beta1/namespaces/llm/capacitybuffers'
TAINT = {'key': 'nvidia.com/gpu', 'value': 'present', 'effect': 'NoSchedule'}


def one_of(key, *values):
    return {'key': key, 'operator': 'In', 'values': list(values)}


ON_DEMAND = one_of('karpenter.sh/capacity-type', 'on-demand')
INSTANCE_TYPES = [{
    'name': 'g5.xlarge', 'architecture': 'amd64', 'operatingSystems': ['linux'],
    'resources': {'cpu': '64', 'memory': '512Gi', 'nvidia.com/gpu': '1'},
    'offerings': [{'Price': 1.21, 'Available': True, 'Requirements': [ON_DEMAND, one_of('topology.kubernetes.io/zone', 'z1')]}]}]
NODE_POOL = {
    'apiVersion': 'karpenter.sh/v1', 'kind': 'NodePool', 'metadata': {'name': 'gpu'},
    'spec': {'replicas': 1, 'disruption': {'consolidateAfter': '0s', 'budgets': [{'nodes': '1'}]}, 'template': {
        'metadata': {'labels': {'rig.preheat.dev/pool': 'chat'}},
        'spec': {'expireAfter': 'Never', 'taints': [TAINT],
                 'nodeClassRef': {'group': 'karpenter.kwok.sh', 'kind': 'KWOKNodeClass', 'name': 'gpu'},
                 'requirements': [ON_DEMAND, one_of('node.kubernetes.io/instance-type', 'g5.xlarge')]}}}}

STAGES = {'provision': '40s', 'register': '15s', 'device': '10s', 'image': '20s', 'load': '20s', 'terminate': '20s', 'refuse': '10s'}
MANIFEST = """apiVersion: preheat.dev/v1alpha1
kind: WarmPool
metadata: { name: chat, namespace: llm }
spec:
  mode: act
  objective: { queueWait: 2s, attainment: 99% }
  workload:
    selector: { matchLabels: { app: chat } }
    scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: chat }
    maxSequences: 8
    prefillTokensPerSecond: 25k
    interTokenLatency: 30ms
  signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 15s } }
  headroom: { min: 1 }
  scaleDown: { after: 3m }
  leadTime: { total: { p50: 110s, p95: 150s } }
  nodeGroups: [ { name: gpu, karpenter: { nodePool: gpu }, pricePerHour: 1.21, min: 1, max: 6 } ]
---
apiVersion: preheat.dev/v1alpha1
kind: WarmPool
metadata: { name: embed, namespace: llm }
spec:
  mode: act
  objective: { queueWait: 10s, attainment: 99% }
  workload:
    selector: { matchLabels: { app: embed } }
    scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: embed }
    warm: buffer
    maxSequences: 16
    prefillTokensPerSecond: 25k
    interTokenLatency: 10ms
  signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 15s } }
  headroom: { min: 4 }
  leadTime: { total: { p50: 110s, p95: 150s } }
  nodeGroups: [ { name: others, external: { label: rig.preheat.dev/pool, value: embed }, pricePerHour: 1.21, max: 6 } ]
"""


def group(name, pool, **more):
    return {'name': name, 'min': 0, 'max': 16, 'instance_type': 'g5.xlarge', 'count': 1, 'cpu': '64', 'memory': '512Gi',
            'labels': {'rig.preheat.dev/pool': pool, **more.pop('labels', {})}, 'stages': STAGES,
            'taints': [TAINT], **more}


def config():
    traffic = {'namespace': world.SPACE, 'max_sequences': 8, 'prefill_tokens_per_second': 25000, 'inter_token_latency': '30ms',
               'objective': '2s'}
    return {'groups': [group('gpu', 'chat', foreign='kwok://'), group('others', 'embed', initial=2)],
            'pools': [{'name': name, 'selector': {'app': name}, 'model': f'{name}-model', 'groups': [groups], **traffic}
                      for name, groups in (('chat', 'gpu'), ('embed', 'others'))]}


class Hosts(threading.Thread):
    """A machine under each Node object that Karpenter's kwok makes: kubelet, device plugin, pods."""

    def __init__(self, s):
        super().__init__(daemon=True, name='hosts')
        self.s, self.node, self.ended = s, {}, threading.Event()  # node of each NodeClaim that there was
        self.seen = []  # [time, size of the NodePool, NodeClaims that stay and have no node yet]

    def run(self):
        while not self.ended.wait(0.2):
            try:
                self.follow()
            except (OSError, ValueError, KeyError, kube.Refused):
                continue  # asked again with the next round

    def follow(self):
        nodes = {n['metadata']['name'] for n in self.s.kube.items('Node')}
        listed = self.s.kube.get(CLAIMS)['items']
        claims = {c['metadata']['name']: c.get('status', {}).get('providerID', '').removeprefix('kwok://') for c in listed}
        self.seen.append([time.time(), size(self.s), {c['metadata']['name'] for c in listed if is_launched(c)}])
        self.node.update(claims)
        wanted = set(claims.values())
        group = self.s.group('gpu')
        there = {m['id'] for m in group['machines']}
        for name in sorted(wanted - there - {''}):
            group = self.s.machines.ask('/v1/groups/gpu/grow', {'token': name, 'desired': group['desired'] + 1, 'machines': [name]})
        for name in there - wanted - nodes:
            self.s.machines.ask('/v1/groups/gpu/remove', {'token': f'end-{name}', 'machines': [name]})


def is_launched(claim):
    """It stays, and its node has not come."""
    conditions = claim.get('status', {}).get('conditions', [])
    return 'deletionTimestamp' not in claim['metadata'] and not any(
        c['type'] == 'Initialized' and c['status'] == 'True' for c in conditions)


def start_karpenter(s, folder):
    s.must('kubectl', 'apply', '--server-side', '-f', os.path.join(folder, 'crds'))
    for path in (POOL.rsplit('/', 1)[0], CLAIMS, BUFFERS, '/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses'):
        s.expect(f'{path} is served', lambda path=path: answers(s, path))
    types = os.path.join(s.folder, 'instance-types.json')
    with open(types, 'w', encoding='utf-8') as file:
        json.dump(INSTANCE_TYPES, file)
    owners.apply(s, NODE_CLASS, NODE_POOL)
    owners.start(s, 'karpenter', [os.path.join(folder, 'karpenter')], {
        'FEATURE_GATES': 'StaticCapacity=true', 'DISABLE_LEADER_ELECTION': 'true', 'INSTANCE_TYPES_FILE_PATH': types,
        'METRICS_PORT': str(process.free_port()), 'HEALTH_PROBE_PORT': str(process.free_port())})


def answers(s, path):
    try:
        return s.kube.get(path)['kind']
    except kube.Refused:
        return None


def size(s):
    return s.kube.get(POOL)['spec']['replicas']


def wrote(s, verb, resource, sub=''):
    path = os.path.join(s.rig, 'audit.log')
    return [e for e in stage.read_audit(path, set(s.evidence['users'])) if
            (e['verb'], e['resource'], e['sub']) == (verb, resource, sub) and e['code'] < 300]


def claims_of(s):
    return {c['metadata']['name'] for c in s.kube.get(CLAIMS)['items'] if 'deletionTimestamp' not in c['metadata']}


def buffer_of(s, name='embed-preheat'):
    return next((b for b in s.kube.get(BUFFERS)['items'] if b['metadata']['name'] == name), None)


def karpenter(s):
    folder = owners.built(s, 'karpenter')
    if not folder:
        return
    s.start_machines(config(), {'gpu': {'min': 0, 'max': 16, 'standby': 0}})  # Karpenter's own machines beside ours
    s.must('kubectl', 'apply', '-f', world.WORKLOADS)
    start_karpenter(s, folder)
    s.open_eyes()
    s.accounts('preheat-a', beside=['components/node-objects/rbac'])
    hosts = Hosts(s)
    hosts.start()
    path = os.path.join(s.folder, 'pools.yaml')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(MANIFEST)
    controller = s.controller('preheat-a', '-f', path, '--no-election', '--namespace', stage.SPACE).start()
    s.expect('one replica of chat serves', lambda: len(s.pods('chat')) >= 1)
    grows(s)
    holds_for_launches(s, hosts)
    grows(s)
    shrinks(s, hosts)
    replaces(s, hosts)
    buffers(s, controller)
    s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    hosts.ended.set()
    s.check('the NodePool was never larger than its max', max(look[1] for look in hosts.seen) <= 6)
    s.replay(controller)
    s.judge((laws.never_above_max, laws.never_removes_busy, laws.never_forbidden, laws.never_fewer_than_run, laws.clean_logs))


def grows(s):
    s.machines.traffic('chat', 3.5, 500)
    s.expect('the NodePool grows', lambda: size(s) >= 3)
    s.check('through its scale subresource', wrote(s, 'patch', 'nodepools', 'scale'))
    s.expect('NodeClaims and machines follow, and serve', lambda: len(s.pods('chat')) >= 3 and len(claims_of(s)) == size(s))


def holds_for_launches(s, hosts):
    """A static NodePool loses first what has no node yet. The traffic ends while Karpenter replaces machines whose template changed:
    those beyond are given back only when each NodeClaim that stays has its node."""
    began = len(hosts.seen)
    s.kube.call('PATCH', POOL, {'spec': {'template': {'metadata': {'labels': {'team': 'vision'}}}}}, 'application/merge-patch+json')
    s.expect('the NodePool shrinks to one', lambda: size(s) == len(claims_of(s)) == 1, 7200)
    looks = hosts.seen[began:]
    lowered = [(before, after) for before, after in zip(looks, looks[1:]) if after[1] < before[1]]
    waited = sum(bool(look[2]) for look in looks)
    s.check(f'{len(looks)} looks, {waited} with a NodeClaim that has no node: time to do wrong', waited > 3)
    s.check(f'{len(lowered)} lower sizes, none then', lowered and not any(before[2] & after[2] for before, after in lowered))
    # Karpenter replaces nothing while the NodePool shrinks: what is left may still be of the old template.
    s.expect('what is left has not drifted', lambda: size(s) == len(claims_of(s)) and
             not any(has_drifted(c) for c in s.kube.get(CLAIMS)['items']))


def shrinks(s, hosts):
    s.expect('the traffic is over', lambda: s.machines.score()['pools']['chat']['running'] == 0, 3600)
    stood, made = claims_of(s), len(hosts.node)
    s.expect('the NodePool shrinks to one', lambda: size(s) == len(claims_of(s)) == 1, 7200)
    gone = stood - claims_of(s)
    s.check(f'{len(gone)} NodeClaims went, all of nodes that we had cordoned', gone and {hosts.node[claim] for claim in gone} <= cordoned(s))
    s.check('none was replaced', len(hosts.node) == made)
    s.check('no request was cut off', s.machines.score()['pools']['chat']['interrupted'] == 0)


def has_drifted(claim):
    return any(c['type'] == 'Drifted' and c['status'] == 'True' for c in claim.get('status', {}).get('conditions', []))


def cordoned(s):
    return {key for _, key, node in s.watches['Node'].history() if node and node['cordoned']}


def replaces(s, hosts):
    """What Karpenter does by itself: a NodeClaim that drifted gets another in its place, and so does one that expires or is
    deleted."""
    stood, before = claims_of(s), len(writes(s))
    s.kube.call('PATCH', POOL, {'spec': {'template': {'metadata': {'labels': {'team': 'search'}}}}}, 'application/merge-patch+json')
    is_replaced(s, hosts, stood, 'drifts')
    # Karpenter's deprovisioner takes its own replacement now and then, and it makes another: how many it makes is its own.
    s.check('by nobody but Karpenter', len(writes(s)) == before)
    stood = claims_of(s)
    for name in stood:
        s.kube.call('DELETE', f'{CLAIMS}/{name}')
    is_replaced(s, hosts, stood, 'is deleted')


def is_replaced(s, hosts, stood, what):
    # Karpenter's kwok leaves the node of a NodeClaim that it ended before the node came: only the pod says which one serves.
    s.expect(f'a NodeClaim that {what} is replaced by another, which serves', lambda: size(s) == len(s.pods('chat')) == 1 and
             [p['node'] for _, p in s.pods('chat')] == [hosts.node.get(claim) for claim in claims_of(s) - stood])


def writes(s):
    return [w for resource, verb, sub in (('nodepools', 'patch', ''), ('nodepools', 'patch', 'scale'), ('nodeclaims', 'delete', ''))
            for w in wrote(s, verb, resource, sub)]


def buffers(s, controller):
    """Room for as many pods as were decided and neither serve nor start, in the words of the API. Nobody here brings nodes for it."""
    s.expect('a CapacityBuffer is made', lambda: buffer_of(s))
    made = buffer_of(s) or {'spec': {}, 'metadata': {}}
    s.check(f"it is about the Deployment: {made['spec'].get('scalableRef')}",
            made['spec'].get('scalableRef') == {'apiGroup': 'apps', 'kind': 'Deployment', 'name': 'embed'})
    s.check('its strategy is active capacity', made['spec'].get('provisioningStrategy') == 'buffer.x-k8s.io/active-capacity')
    s.expect('of four two serve: room for two', lambda: (buffer_of(s) or made)['spec'].get('replicas') == 2)
    sizes = [o['to'] for o, _ in controller.lines() if o and o.get('event') == 'capacity-buffer-applied']
    s.check(f'it stood though no node came: {sizes}', sizes == [2])
    s.check('nobody set the replicas of embed', s.kube.one('Deployment', 'embed', world.SPACE)['spec']['replicas'] == 2)


if __name__ == '__main__':
    stage.main(karpenter, 'karpenter')
