#!/usr/bin/env python3
"""Nodes that are objects of the cluster, on the real API server with Karpenter's own definitions: a static NodePool grows by its
scale, shrinks by a lower size and the deletion of the NodeClaim that was emptied; and a CapacityBuffer says what shall be free.
A small Karpenter of ours plays the one that makes machines of NodeClaims."""
import os
import sys
import threading
import time

import kube
import laws
import stage
import world

CRDS = os.path.join(os.environ.get('PREHEAT_SHARED', os.path.join(stage.ROOT, '..', 'shared')), 'contracts', 'karpenter')
POOL, CLAIMS = '/apis/karpenter.sh/v1/nodepools/gpu', '/apis/karpenter.sh/v1/nodeclaims'
FINALIZER = 'karpenter.sh/termination'
CLASS = {'group': 'rig.preheat.dev', 'kind': 'RigNodeClass', 'name': 'gpu'}
BUFFERS = '/apis/autoscaling.x-k8s.io/v1beta1/namespaces/llm/capacitybuffers'
# What Cluster Autoscaler's definition asks of a buffer's spec, as far as it matters to who writes one.
REF = {'type': 'object', 'required': ['kind', 'name'], 'properties': {
    'apiGroup': {'type': 'string'}, 'kind': {'type': 'string', 'minLength': 1}, 'name': {'type': 'string', 'minLength': 1}}}
BUFFER_SPEC = {'type': 'object', 'properties': {
    'provisioningStrategy': {'type': 'string'}, 'replicas': {'type': 'integer', 'format': 'int32', 'minimum': 0}, 'scalableRef': REF}}
BUFFER_CRD = {
    'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition',
    # A group that ends in k8s.io has to say where it was approved.
    'metadata': {'name': 'capacitybuffers.autoscaling.x-k8s.io',
                 'annotations': {'api-approved.kubernetes.io': 'unapproved, a test'}},
    'spec': {'group': 'autoscaling.x-k8s.io', 'scope': 'Namespaced', 'names': {'kind': 'CapacityBuffer', 'plural': 'capacitybuffers'},
             'versions': [{'name': 'v1beta1', 'served': True, 'storage': True, 'schema': {'openAPIV3Schema': {
                 'type': 'object', 'required': ['spec'], 'properties': {'spec': BUFFER_SPEC}}}}]}}

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
    return {'name': name, 'min': 0, 'max': 8, 'instance_type': 'g5.xlarge', 'count': 1, 'cpu': '64', 'memory': '512Gi',
            'labels': {'rig.preheat.dev/pool': pool, **more.pop('labels', {})}, 'stages': STAGES,
            'taints': [{'key': 'nvidia.com/gpu', 'value': 'present', 'effect': 'NoSchedule'}], **more}


def config():
    traffic = {'namespace': world.SPACE, 'max_sequences': 8, 'prefill_tokens_per_second': 25000, 'inter_token_latency': '30ms',
               'objective': '2s'}
    return {'groups': [group('gpu', 'chat', labels={'karpenter.sh/nodepool': 'gpu'}), group('others', 'embed', initial=2)],
            'pools': [{'name': name, 'selector': {'app': name}, 'model': f'{name}-model', 'groups': [groups], **traffic}
                      for name, groups in (('chat', 'gpu'), ('embed', 'others'))]}


class Karpenter(threading.Thread):
    """As many NodeClaims as the NodePool has replicas, a machine for each; who is deleted loses his. It replaces at once what is
    gone while the size stands, as Karpenter does."""

    def __init__(self, s):
        super().__init__(daemon=True, name='karpenter')
        self.s, self.machine, self.told, self.made, self.ended = s, {}, set(), 0, threading.Event()

    def run(self):
        while not self.ended.wait(0.2):
            try:
                self.reconcile()
            except (OSError, ValueError, KeyError, kube.Refused):
                continue  # asked again with the next round

    def reconcile(self):
        claims = self.s.kube.get(CLAIMS)['items']
        replicas = self.s.kube.get(POOL)['spec']['replicas']  # after them: the size falls before a claim goes
        staying = [c for c in claims if 'deletionTimestamp' not in c['metadata']]
        for _ in range(replicas - len(staying)):
            self.launch()
        machines = {m['id']: m for m in self.s.group('gpu')['machines']}
        for claim in claims:
            name = claim['metadata']['name']
            if 'deletionTimestamp' in claim['metadata']:
                self.end(name, machines)
            elif name not in self.told and machines[self.machine[name]]['state'] == 'running':
                self.tell(name, machines[self.machine[name]])

    def launch(self):
        self.made += 1
        name = f'gpu-{self.made:03d}'
        self.s.kube.call('POST', CLAIMS, {
            'apiVersion': 'karpenter.sh/v1', 'kind': 'NodeClaim',
            'metadata': {'name': name, 'labels': {'karpenter.sh/nodepool': 'gpu'}, 'finalizers': [FINALIZER]},
            'spec': {'nodeClassRef': CLASS, 'requirements': []}})
        group = self.s.group('gpu')
        grown = self.s.machines.ask('/v1/groups/gpu/grow', {'token': name, 'desired': group['desired'] + 1})
        self.machine[name] = ({m['id'] for m in grown['machines']} - {m['id'] for m in group['machines']}).pop()

    def tell(self, name, machine):
        """What has started is launched, and has its provider's id."""
        self.told.add(name)
        self.s.kube.call('PATCH', f'{CLAIMS}/{name}/status', {'status': {
            'providerID': machine['provider_id'], 'nodeName': machine['id'], 'conditions': [{
                'type': 'Launched', 'status': 'True', 'reason': 'Launched', 'message': '',
                'lastTransitionTime': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}]}}, 'application/merge-patch+json')

    def end(self, name, machines):
        machine = self.machine.get(name)
        if machine in machines:
            self.s.machines.ask('/v1/groups/gpu/remove', {'token': f'end-{name}', 'machines': [machine]})
            return
        self.s.kube.call('PATCH', f'{CLAIMS}/{name}', {'metadata': {'finalizers': None}}, 'application/merge-patch+json')


def serve_definitions(s):
    for name in ('nodepools', 'nodeclaims'):
        s.must('kubectl', 'apply', '--server-side', '-f', os.path.join(CRDS, f'karpenter.sh_{name}.yaml'))
    s.kube.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', BUFFER_CRD)
    for path in (POOL.rsplit('/', 1)[0], CLAIMS, BUFFERS):
        s.expect(f'{path} is served', lambda path=path: answers(s, path))
    s.kube.call('POST', POOL.rsplit('/', 1)[0], {
        'apiVersion': 'karpenter.sh/v1', 'kind': 'NodePool', 'metadata': {'name': 'gpu'}, 'spec': {'replicas': 1, 'template': {
            'spec': {'nodeClassRef': CLASS, 'requirements': [
                {'key': 'karpenter.sh/capacity-type', 'operator': 'In', 'values': ['on-demand']}]}}}})


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
    s.start_machines(config(), {'gpu': {'min': 0, 'max': 6, 'standby': 0}})
    s.must('kubectl', 'apply', '-f', world.WORKLOADS)
    serve_definitions(s)
    s.open_eyes()
    s.accounts('preheat-a', beside=['components/node-objects/rbac'])
    player = Karpenter(s)
    player.start()
    path = os.path.join(s.folder, 'pools.yaml')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(MANIFEST)
    controller = s.controller('preheat-a', '-f', path, '--no-election', '--namespace', stage.SPACE).start()
    s.expect('one replica of chat serves', lambda: len(s.pods('chat')) >= 1)
    grows(s)
    shrinks(s, player)
    buffers(s)
    s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    player.ended.set()
    s.replay(controller)
    s.judge((laws.never_above_max, laws.never_removes_busy, laws.never_forbidden, laws.never_fewer_than_run, laws.clean_logs))


def grows(s):
    s.machines.traffic('chat', 3.5, 500)
    s.expect('the NodePool grows', lambda: size(s) >= 3)
    s.check('through its scale subresource', wrote(s, 'patch', 'nodepools', 'scale'))
    s.expect('NodeClaims and machines follow, and serve', lambda: len(s.pods('chat')) >= 3 and len(claims_of(s)) == size(s))


def shrinks(s, player):
    s.expect('the traffic is over', lambda: s.machines.score()['pools']['chat']['running'] == 0, 3600)
    stood, made = claims_of(s), player.made
    s.expect('the NodePool shrinks to one', lambda: size(s) == 1 and len(s.running('gpu')) == 1, 7200)
    gone, lowered = stood - claims_of(s), [e for e in wrote(s, 'patch', 'nodepools') if not e['sub']]
    s.check(f'{len(gone)} NodeClaims were deleted by us, one by one, by name',
            gone and gone <= {e['name'] for e in wrote(s, 'delete', 'nodeclaims')})
    s.check('the size was lowered first, so that none was replaced', lowered and player.made == made)
    s.check('no request was cut off', s.machines.score()['pools']['chat']['interrupted'] == 0)


def buffers(s):
    """Room for as many pods as were decided and neither serve nor start, in the words of the API."""
    s.expect('a CapacityBuffer is made', lambda: buffer_of(s))
    made = buffer_of(s) or {'spec': {}, 'metadata': {}}
    s.check(f"it is about the Deployment: {made['spec'].get('scalableRef')}",
            made['spec'].get('scalableRef') == {'apiGroup': 'apps', 'kind': 'Deployment', 'name': 'embed'})
    s.check('its strategy is active capacity', made['spec'].get('provisioningStrategy') == 'buffer.x-k8s.io/active-capacity')
    s.expect('of four two serve: room for two', lambda: (buffer_of(s) or made)['spec'].get('replicas') == 2)
    s.check('nobody set the replicas of embed', s.kube.one('Deployment', 'embed', world.SPACE)['spec']['replicas'] == 2)


if __name__ == '__main__':
    if not os.path.isdir(CRDS):
        print(f'SKIPPED: {CRDS} is absent: no definitions of Karpenter')
        sys.exit(77)
    stage.main(karpenter, 'karpenter')
