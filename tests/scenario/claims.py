#!/usr/bin/env python3
"""Devices that pods claim (dynamic resource allocation): a driver publishes the GPUs of each node as ResourceSlices, kube-scheduler
allocates them to ResourceClaims, and nothing of it is in a node's allocatable resources. A serving pool and the default pool."""
import json
import os
import re
import time

import stage
import world

DRIVER = 'gpu.nvidia.com'
# As NVIDIA's driver installs it.
CLASS = {'apiVersion': 'resource.k8s.io/v1', 'kind': 'DeviceClass', 'metadata': {'name': DRIVER}, 'spec': {'selectors': [
    {'cel': {'expression': f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'gpu'"}}]}}
DEFAULT_POOL = """---
apiVersion: preheat.dev/v1alpha1
kind: WarmPool
metadata: { name: default, namespace: llm }
spec:
  mode: act
  class: any
  nodeGroups:
    - { name: any2, provider: simulated, simulated: { endpoint: "ENDPOINT" }, zone: z1,
        instanceType: g5.12xlarge, gpusPerNode: 2, pricePerHour: 2.4, min: 0, max: 8 }
  scaleDown: { after: 5m, utilization: 0% }
"""


def claim_of(count):
    return {'devices': {'requests': [{'name': 'gpu', 'exactly': {'deviceClassName': DRIVER, 'count': count}}]}}


def template(name, count):
    return {'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaimTemplate', 'metadata': {'name': name, 'namespace': world.SPACE},
            'spec': {'spec': claim_of(count)}}


def deployment(name, replicas, claim):
    """Pods of no WarmPool with a claim each, or one for all of them."""
    return {'apiVersion': 'apps/v1', 'kind': 'Deployment', 'metadata': {'name': name, 'namespace': world.SPACE}, 'spec': {
        'replicas': replicas, 'selector': {'matchLabels': {'app': name}}, 'template': {
            'metadata': {'labels': {'app': name}}, 'spec': {
                'terminationGracePeriodSeconds': 5, 'nodeSelector': {'rig.preheat.dev/pool': 'any'},
                'tolerations': [{'key': 'nvidia.com/gpu', 'operator': 'Exists'}],
                'resourceClaims': [{'name': 'gpu', **claim}],
                'containers': [{'name': 'work', 'image': 'registry.invalid/work:1', 'resources': {
                    'requests': {'cpu': '1'}, 'claims': [{'name': 'gpu'}]}}]}}}}


class Claimed(world.World):
    """The example's chat pool, its GPUs claimed, and a group of two GPUs a machine for whoever else claims some."""

    def cloud(self):
        config = super().cloud()
        config['groups'] = [dict(g, resource=DRIVER) for g in config['groups'] if g['name'].startswith('chat')]
        config['groups'].append(dict(config['groups'][0], name='any2', max=8, count=2, zones=['z1'], labels={
            'simulated.preheat.dev/node-group': 'any2', 'rig.preheat.dev/pool': 'any'}))
        config['pools'] = config['pools'][:1]
        return config

    def manifests(self, endpoint):
        return super().manifests(endpoint).split('---\n')[0] + DEFAULT_POOL.replace('ENDPOINT', endpoint)


def open_claimed(s):
    """The example's Deployment of chat with a claim in place of its request."""
    text = world.text_of('workloads.yaml').split('---\n')
    chat = '---\n'.join(part for part in text if 'embed' not in part)
    for was, now in (('      containers:\n', '      resourceClaims: [ { name: gpu, resourceClaimTemplateName: one } ]\n      containers:\n'),
                     (', nvidia.com/gpu: "1" }', ' }'), ('limits: { nvidia.com/gpu: "1" }', 'claims: [ { name: gpu } ]')):
        if chat.count(was) != 1:
            raise SystemExit(f'workloads.yaml does not say {was!r} once')
        chat = chat.replace(was, now)
    path = os.path.join(s.folder, 'workloads.yaml')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(chat)
    manifest = s.open_world(Claimed(), path)
    for made in (CLASS, template('one', 1), template('three', 3)):
        apply(s, made)
    return manifest


def apply(s, made):
    path = os.path.join(s.folder, f"{made['kind']}-{made['metadata']['name']}.json")
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(made, file)
    s.must('kubectl', 'apply', '-f', path)


def devices(s):
    """Of claims that are allocated: (node, device), each as often as a claim has it."""
    claims = json.loads(s.must('kubectl', 'get', 'resourceclaims', '-n', world.SPACE, '-o', 'json'))['items']
    return [(r['pool'], r['device']) for c in claims for r in
            c.get('status', {}).get('allocation', {}).get('devices', {}).get('results', [])]


def serves(s):
    """Replicas that claim their GPU: each new machine is counted once its slice is there."""
    s.expect('a replica of chat serves on claimed devices', lambda: s.pods('chat'))
    s.machines.traffic('chat', 6, 2400)
    s.expect('more traffic, more replicas on more machines', lambda: s.settled() and len(s.pods('chat')) >= 4 and
             len(s.pods('chat')) == len(s.pods('chat', False)))
    machines = len(s.running('chat-spot')) + len(s.running('chat-od'))
    s.check(f"{len(s.pods('chat'))} replicas on {machines} machines: none was bought for nothing",
            machines <= len(s.pods('chat')) + 2)


def ordered_for(s, begun):
    """Events that tell pods of a machine of any2."""
    return [e for e in s.told('TriggeredScaleUp', 'a machine of node group any2 is on its way for it (WarmPool default, ', begun)
            if e['about'] == 'Pod']


def each_its_own(s):
    begun = time.time()
    apply(s, deployment('solo', 5, {'resourceClaimTemplateName': 'one'}))
    s.expect('each of five pods of no WarmPool with a claim of its own is told of its machine', lambda:
             len({e['name'] for e in ordered_for(s, begun)}) == 5)
    s.expect('and runs', lambda: len(s.pods('solo')) == 5)
    times = [[e['name'] for e in ordered_for(s, begun)].count(pod) for pod in {e['name'] for e in ordered_for(s, begun)}]
    s.check('it was told once, and once more where pods that came later took its place', max(times) <= 2)
    one = s.must('kubectl', 'describe', 'pod', ordered_for(s, begun)[0]['name'], '-n', world.SPACE)
    s.check('kubectl describe pod shows it', re.search('Normal +TriggeredScaleUp .* a machine of node group any2 is on its way for it', one))
    s.check(f"on three machines of two GPUs each ({len(s.group('any2')['machines'])})", len(s.group('any2')['machines']) == 3)
    had = devices(s)
    s.check('kube-scheduler gave each a device of its own', len(set(had)) == len(had) >= 5)


def shared(s):
    """One device is free: a claim of two needs a machine, however many share it."""
    apply(s, {'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaim', 'metadata': {'name': 'both', 'namespace': world.SPACE},
              'spec': claim_of(2)})
    apply(s, deployment('together', 4, {'resourceClaimName': 'both'}))
    s.expect('four pods that share a claim of two run', lambda: len(s.pods('together')) == 4)
    s.check('on one node', len({p['node'] for _, p in s.pods('together')}) == 1)
    s.check(f"for which one machine was bought ({len(s.group('any2')['machines'])})", len(s.group('any2')['machines']) == 4)


def by_request(s):
    """A DeviceClass that offers its devices as an extended resource: pods request it as ever, kube-scheduler makes the claim."""
    apply(s, {**CLASS, 'spec': {**CLASS['spec'], 'extendedResourceName': 'nvidia.com/gpu'}})
    pods = deployment('asks', 2, {'resourceClaimName': ''})
    spec = pods['spec']['template']['spec']
    del spec['resourceClaims']
    spec['containers'][0]['resources'] = {'limits': {'nvidia.com/gpu': '2'}, 'requests': {'cpu': '1'}}
    apply(s, pods)
    s.expect('two pods that request two GPUs each as ever run', lambda: len(s.pods('asks')) == 2)
    s.check(f"for which two machines were bought ({len(s.group('any2')['machines'])})", len(s.group('any2')['machines']) == 6)


def too_many(s):
    begun = time.time()
    apply(s, deployment('large', 1, {'resourceClaimTemplateName': 'three'}))
    s.expect('who asks for more than a node has is told', lambda: s.told('NotTriggerScaleUp', 'wants 3 gpu.nvidia.com', begun))
    s.mark('it says: ' + (s.told('NotTriggerScaleUp', since=begun) or [{'note': ''}])[0]['note'])
    s.check('and nothing is bought', len(s.group('any2')['machines']) == 6)


def goes(s):
    s.must('kubectl', 'delete', 'deployment', 'solo', 'together', 'asks', 'large', '-n', world.SPACE)
    s.expect('with the pods the machines go', lambda: not s.group('any2')['machines'], 7200)
    s.expect('and what was published of them', lambda: 'any2' not in s.must('kubectl', 'get', 'resourceslices', '-o', 'name'))


def claims(s):
    manifest = open_claimed(s)
    s.accounts('preheat-a')
    s.evidence['lease'] = stage.LEASE
    controller = s.controller('preheat-a', '-f', manifest, '--lease', stage.LEASE, '--namespace', stage.SPACE,
                              '--identity', 'preheat-a').start()
    serves(s)
    each_its_own(s)
    shared(s)
    by_request(s)
    controller.kill()
    controller.start()
    s.expect('killed and started again it is ready', lambda: controller.page('/readyz')[0] == 200)
    too_many(s)
    goes(s)
    s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    s.replay(controller)
    s.judge()


if __name__ == '__main__':
    stage.main(claims, 'claims')
