"""Where pods go, beside the real scheduler, on clusters drawn from seeds.

with_rig.sh --node-grace 100h python3 tests/rig/placement.py VERDICTS [WORLDS [FIRST_SEED]]

Each world has a few nodes of one or two groups, pods that run there, volumes, claims of devices, and three rounds of one more pod.
Before the pod is created VERDICTS (placement_verdicts.c) says where it will go: onto a node that is there, onto a new one of a
group, or nowhere. Then the scheduler has its say; where a new node was said to help it is created, and where nothing
was, one of each group is. Worlds are kept apart by a label that their nodes, pods and selectors have, so that
many run at once. A world where both differ is printed with its seed.
"""
import http.client
import json
import os
import queue
import random
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'scenario'))
from kube import Kube  # noqa: E402

BATCH, ROUNDS, PATIENCE = 100, 3, 90
ZONE, HOST, WORLD = 'topology.kubernetes.io/zone', 'kubernetes.io/hostname', 'world'
GROUP = 'simulated.preheat.dev/node-group'
SPACES = {'alpha': {'team': 'a'}, 'beta': {'team': 'b'}}
DRIVER, CLAIMS = 'gpu.nvidia.com', '/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims'
SLICES = '/apis/resource.k8s.io/v1/resourceslices'


class Calls:
    """Many calls at once, on connections that are kept."""

    def __init__(self, kube, threads=8):
        self.kube, self.work, self.refused = kube, queue.Queue(), []
        for _ in range(threads):
            threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        connection = self.kube.connect(60)
        while True:
            method, path, body = self.work.get()
            for attempt in range(4):
                try:
                    text = None if body is None else json.dumps(body)
                    connection.request(method, path, text, {'Content-Type': 'application/json'})
                    answer = connection.getresponse()
                    said = answer.read()
                    if answer.status >= 300 and not (attempt and answer.status in (404, 409)):
                        if answer.status in (403, 429, 500) and attempt < 3:
                            time.sleep(1)
                            continue
                        self.refused.append(f'{method} {path}: {answer.status} {said[:300]!r}')
                    break
                except (OSError, http.client.HTTPException):
                    connection.close()
                    connection = self.kube.connect(60)
            self.work.task_done()

    def all(self, calls):
        for call in calls:
            self.work.put(call)
        self.work.join()
        if self.refused:
            sys.exit('refused: ' + '\n'.join(self.refused[:5]))


class World:
    def __init__(self, seed):
        self.seed, self.name, self.random = seed, f'w{seed}', random.Random(seed)
        self.serial, self.nodes, self.running, self.held = 0, [], [], []
        self.has_class = False
        self.published, self.devices = {}, {}  # of each node with a driver: how many, and which are free
        r = self.random
        self.groups = [self.group(i) for i in range(r.randint(1, 2))]
        for group in self.groups:
            for _ in range(r.randint(1, 3)):
                self.nodes.append(self.node(group))
        for _ in range(r.randint(0, 7)):
            self.running.append(self.runs_on(r.choice(self.nodes)))

    def chance(self, percent):
        return self.random.random() * 100 < percent

    def fresh(self, what):
        self.serial += 1
        return f'{self.name}-{what}{self.serial}'

    def group(self, i):
        r = self.random
        taints = [{'key': 'nvidia.com/gpu', 'value': 'present', 'effect': 'NoSchedule'}] if self.chance(40) else []
        if self.chance(10):
            taints.append({'key': 'team', 'value': r.choice('ab'), 'effect': r.choice(
                ['NoSchedule', 'NoExecute', 'PreferNoSchedule'])})
        labels = {GROUP: f'{self.name}-g{i}', WORLD: self.name, 'size': r.choice(['24', '48', '80'])}
        if self.chance(85):
            labels[ZONE] = r.choice(['za', 'zb'])
        if self.chance(50):
            labels['disk'] = r.choice(['ssd', 'hdd'])
        there = {'cpu': r.choice(['4', '8', '31850m']), 'memory': r.choice(['16Gi', '64Gi']),
                 'nvidia.com/gpu': r.choice(['1', '2', '8']), 'pods': r.choice(['3', '110']),
                 'ephemeral-storage': '100Gi'}
        gpus = there['nvidia.com/gpu']
        if self.chance(35):  # its devices are claimed
            del there['nvidia.com/gpu']
        return {'name': f'{self.name}-g{i}', 'labels': labels, 'taints': taints, 'there': there, 'gpus': gpus}

    def node(self, group, is_new=False):
        name = self.fresh('n')
        spec = {'taints': list(group['taints'])}
        if 'nvidia.com/gpu' not in group['there']:
            self.published[name] = int(group['gpus'])
            self.devices[name] = [f'gpu-{i}' for i in range(self.published[name])]
        if not is_new and self.chance(8):
            spec['unschedulable'] = True
        return {'apiVersion': 'v1', 'kind': 'Node',
                'metadata': {'name': name, 'labels': {**group['labels'], HOST: name}}, 'spec': spec,
                'status': {'allocatable': group['there'], 'capacity': group['there'],
                           'conditions': [{'type': 'Ready', 'status': 'True', 'reason': 'KubeletReady'}]}}

    def slice(self, node):
        """What a driver publishes of a node, at the path where it is created; nothing where a plugin offers its GPUs."""
        if node not in self.devices:
            return []
        devices = [{'name': f'gpu-{i}', 'attributes': {'type': {'string': 'gpu'}}} for i in range(self.published[node])]
        return [(SLICES, {'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceSlice', 'metadata': {
            'name': f'{node}-{DRIVER}', 'labels': {WORLD: self.name}}, 'spec': {
                'driver': DRIVER, 'nodeName': node, 'pool': {'name': node, 'generation': 1, 'resourceSliceCount': 1},
                'devices': devices}})]

    def claim(self, space, count):
        return {'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaim', 'metadata': {
            'name': self.fresh('k'), 'namespace': space, 'labels': {WORLD: self.name}}, 'spec': {'devices': {'requests': [
                {'name': 'gpu', 'exactly': {'deviceClassName': DRIVER, 'count': count}}]}}}

    def hold(self, pod, node, count):
        """The running pod has so many devices of its node, as far as there are some left."""
        free = self.devices[node]
        if not count or len(free) < count:
            return
        claim = self.claim(pod['metadata']['namespace'], count)
        had = [free.pop() for _ in range(count)]
        at_node = {'nodeSelectorTerms': [{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': [node]}]}]}
        self.held.append((claim, {'allocation': {'nodeSelector': at_node, 'devices': {'results': [
            {'request': 'gpu', 'driver': DRIVER, 'pool': node, 'device': d} for d in had]}}}))
        self.claims_it(pod, claim)

    def claims_it(self, pod, claim):
        pod['spec']['resourceClaims'] = [{'name': 'gpu', 'resourceClaimName': claim['metadata']['name']}]
        pod['spec']['containers'][0]['resources']['claims'] = [{'name': 'gpu'}]

    def app(self):
        return self.random.choice('xyz')

    def pod(self, space, app, containers, **spec):
        return {'apiVersion': 'v1', 'kind': 'Pod',
                'metadata': {'name': self.fresh('p'), 'namespace': space,
                             'labels': {WORLD: self.name, 'app': app, 'version': self.random.choice('12')}},
                'spec': {'containers': containers, 'automountServiceAccountToken': False,
                         'terminationGracePeriodSeconds': 0, **spec}}

    def container(self, name, gpus=0):
        r, requests = self.random, {}
        if self.chance(60):
            requests['cpu'] = r.choice(['100m', '1', '1', '3', '7'])
        if self.chance(30):
            requests['memory'] = r.choice(['1Gi', '1Gi', '12Gi', '40Gi'])
        if self.chance(10):
            requests['ephemeral-storage'] = r.choice(['1Gi', '1Gi', '90Gi', '200Gi'])
        c = {'name': name, 'image': 'i', 'resources': {'requests': requests}}
        if gpus:
            c['resources']['limits'] = {'nvidia.com/gpu': str(gpus)}
        if self.chance(8):
            c['ports'] = [{'containerPort': 80, 'hostPort': r.choice([8000, 8001]), 'protocol': r.choice(
                ['TCP', 'UDP'])}]
            if self.chance(30):
                c['ports'][0]['hostIP'] = r.choice(['127.0.0.1', '10.0.0.1', '0.0.0.0'])
        return c

    def selector(self):
        r, out = self.random, {'matchLabels': {WORLD: self.name}}
        if self.chance(70):
            out['matchLabels']['app'] = self.app()
        if self.chance(30):
            operator = r.choice(['In', 'NotIn', 'Exists', 'DoesNotExist'])
            expression = {'key': r.choice(['app', 'version', 'none']), 'operator': operator}
            if operator in ('In', 'NotIn'):
                expression['values'] = r.sample(['x', 'y', 'z', '1', '2'], 2)
            out['matchExpressions'] = [expression]
        return out

    def term(self):
        r, out = self.random, {'labelSelector': self.selector(), 'topologyKey': self.random.choice([HOST, ZONE, ZONE])}
        if self.chance(25):
            out['namespaces'] = r.sample(list(SPACES), r.randint(1, 2))
        if self.chance(25):
            out['namespaceSelector'] = r.choice([{}, {'matchLabels': {'team': 'a'}}, {'matchLabels': {'team': 'b'}},
                                                 {'matchLabels': {'team': 'c'}}])
        if self.chance(10) and 'matchExpressions' not in out['labelSelector']:
            out['matchLabelKeys'] = ['version']
        return out

    def required(self, terms):
        return {'requiredDuringSchedulingIgnoredDuringExecution': terms}

    def runs_on(self, node):
        name, gpus = node['metadata']['name'], self.random.choice([0, 1, 2, 2, 4, 8])
        pod = self.pod(self.random.choice(list(SPACES)), self.app(), [self.container('c', 0 if name in self.devices else gpus)],
                       nodeName=name, tolerations=[{'operator': 'Exists'}])
        if name in self.devices:
            self.hold(pod, name, gpus)
        if self.chance(25):
            pod['spec']['affinity'] = {'podAntiAffinity': self.required([self.term()])}
        return pod

    def node_expression(self):
        r = self.random
        key = r.choice(['disk', 'size', ZONE, 'none', WORLD])
        operator = r.choice(['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'] if key == 'size' else
                            ['In', 'NotIn', 'Exists', 'DoesNotExist'])
        e = {'key': key, 'operator': operator}
        if operator in ('Gt', 'Lt'):
            e['values'] = [r.choice(['23', '24', '48', '100'])]
        elif operator in ('In', 'NotIn'):
            e['values'] = r.sample(['ssd', 'hdd', '24', '48', '80', 'za', 'zb', self.name], 3)
        return e

    def volume(self):
        """A claim of a volume, and what it is about; None: it is missing."""
        r, name = self.random, self.fresh('v')
        kind = r.choice(['missing', 'bound', 'bound', 'zoned', 'unbound', 'waits', 'waits', 'local'])
        claim = {'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim',
                 'metadata': {'name': name, 'namespace': 'alpha', 'labels': {WORLD: self.name}},
                 'spec': {'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': '5Gi'}}}}
        claims, volumes = '/api/v1/namespaces/alpha/persistentvolumeclaims', '/api/v1/persistentvolumes'
        volume = {'apiVersion': 'v1', 'kind': 'PersistentVolume', 'metadata': {'name': name, 'labels': {
            WORLD: self.name}}, 'spec': {'accessModes': ['ReadWriteOnce'], 'capacity': {'storage': '5Gi'},
                                         'persistentVolumeReclaimPolicy': 'Retain',
                                         'csi': {'driver': 'd.example.org', 'volumeHandle': name}}}
        zone = [{'matchExpressions': [{'key': ZONE, 'operator': 'In', 'values': [r.choice(['za', 'zb'])]}]}]
        out = []
        if kind == 'missing':
            return name, out, False
        if kind in ('bound', 'zoned'):
            claim['metadata']['annotations'] = {'pv.kubernetes.io/bind-completed': 'yes'}
            claim['spec'].update(volumeName=name, storageClassName='')
            volume['spec']['claimRef'] = {'namespace': 'alpha', 'name': name}
            if kind == 'zoned':
                volume['metadata']['labels'][ZONE] = r.choice(['za', 'zb', 'za__zb'])
            elif self.chance(70):
                volume['spec']['nodeAffinity'] = {'required': {'nodeSelectorTerms': zone}}
            if self.chance(85):
                out.append((volumes, volume))
        elif kind == 'unbound':
            claim['spec']['storageClassName'] = r.choice(['now', 'nowhere'])
        elif kind == 'waits':
            claim['spec']['storageClassName'] = r.choice(['later', 'later-za'])
        else:
            claim['spec']['storageClassName'] = f'local-{self.name}'
            volume['spec'].update(storageClassName=f'local-{self.name}')
            volume['spec']['capacity'] = {'storage': r.choice(['5Gi', '5Gi', '1Gi'])}
            volume['spec']['nodeAffinity'] = {'required': {'nodeSelectorTerms': [{'matchExpressions': [
                {'key': HOST, 'operator': 'In', 'values': [r.choice(self.nodes)['metadata']['name']]}]}]}}
            if not self.has_class:
                out.append(('/apis/storage.k8s.io/v1/storageclasses', storage_class(f'local-{self.name}', False, self.name)))
            self.has_class = True
            out.append((volumes, volume))
        out.append((claims, claim))
        return name, out, kind in ('waits', 'local')

    def waits(self):
        """One more pod, and what is created before it."""
        r, app = self.random, self.app()
        space, gpus = r.choice(list(SPACES)), r.choice([1, 1, 1, 1, 2, 8])
        has_devices = self.chance(85 if self.devices else 10)
        containers = [self.container('c', 0 if has_devices else gpus)]
        spec = {'nodeSelector': {WORLD: self.name}}
        affinity, before, claim = {}, [], None
        if self.chance(10):
            spec['initContainers'] = [self.container('i', r.choice([0, 0, 2]))]
            if self.chance(50):
                spec['initContainers'][0]['restartPolicy'] = 'Always'
        if self.chance(90):
            spec['tolerations'] = [r.choice([{'key': 'nvidia.com/gpu', 'operator': 'Exists'}] * 4 + [{'operator': 'Exists'},
                                             {'key': 'nvidia.com/gpu', 'value': 'present', 'effect': 'NoSchedule'},
                                             {'key': 'team', 'value': 'a'}])]
        if self.chance(8):
            spec['nodeSelector']['disk'] = r.choice(['ssd', 'hdd'])
        if self.chance(15):
            affinity['nodeAffinity'] = {'requiredDuringSchedulingIgnoredDuringExecution': {'nodeSelectorTerms': [
                {'matchExpressions': [self.node_expression() for _ in range(r.randint(1, 2))]}
                for _ in range(r.randint(1, 2))]}}
        if self.chance(12):
            affinity['podAffinity'] = self.required([self.term() for _ in range(r.randint(1, 2))])
        if self.chance(20):
            affinity['podAntiAffinity'] = self.required([self.term() for _ in range(r.randint(1, 2))])
        if self.chance(25):
            spec['topologySpreadConstraints'] = [self.spread(key) for key in r.sample([HOST, ZONE], r.randint(1, 2))]
        if affinity:
            spec['affinity'] = affinity
        if self.chance(15):
            space = 'alpha'
            name, before, is_chosen = self.volume()
            claim = name if is_chosen else None
            spec['volumes'] = [{'name': 'v', 'persistentVolumeClaim': {'claimName': name}}]
        pod = self.pod(space, app, containers, **spec)
        if has_devices:
            made = self.claim(space, gpus)
            self.claims_it(pod, made)
            before = [*before, (CLAIMS.format(space), made)]
        return pod, before, claim

    def spread(self, key):
        r = self.random
        out = {'maxSkew': r.choice([1, 1, 2]), 'topologyKey': key, 'whenUnsatisfiable': 'DoNotSchedule',
               'labelSelector': self.selector()}
        if self.chance(25):
            out['minDomains'] = r.randint(1, 3)
        if self.chance(25):
            out['nodeTaintsPolicy'] = 'Honor'
        if self.chance(20) and 'matchExpressions' not in out['labelSelector']:
            out['matchLabelKeys'] = ['version']
        return out


def storage_class(name, makes, world='common', **more):
    return {'apiVersion': 'storage.k8s.io/v1', 'kind': 'StorageClass', 'metadata': {'name': name, 'labels': {
        WORLD: world}}, 'provisioner': 'd.example.org' if makes else 'kubernetes.io/no-provisioner',
            'volumeBindingMode': 'WaitForFirstConsumer', **more}


COMMON = [('/apis/resource.k8s.io/v1/deviceclasses', {
    'apiVersion': 'resource.k8s.io/v1', 'kind': 'DeviceClass', 'metadata': {'name': DRIVER, 'labels': {WORLD: 'common'}}, 'spec': {
        'extendedResourceName': 'nvidia.com/gpu', 'selectors': [{'cel': {'expression': f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].type == "gpu"'}}]}})]
COMMON += [('/apis/storage.k8s.io/v1/storageclasses', c) for c in (
    storage_class('now', True, volumeBindingMode='Immediate'), storage_class('later', True),
    storage_class('later-za', True, allowedTopologies=[{'matchLabelExpressions': [{'key': ZONE, 'values': ['za']}]}]))]
LISTS = {'nodes': '/api/v1/nodes', 'pods': '/api/v1/pods', 'persistentvolumeclaims': '/api/v1/persistentvolumeclaims',
         'persistentvolumes': '/api/v1/persistentvolumes', 'storageclasses': '/apis/storage.k8s.io/v1/storageclasses',
         'namespaces': '/api/v1/namespaces', 'deviceclasses': '/apis/resource.k8s.io/v1/deviceclasses',
         'resourceslices': SLICES, 'resourceclaims': '/apis/resource.k8s.io/v1/resourceclaims'}


def path_of(o):
    if o['kind'] == 'Node':
        return '/api/v1/nodes'
    return f'/api/v1/namespaces/{o["metadata"]["namespace"]}/pods'


class Judge:
    def __init__(self, kube, program):
        self.kube = kube
        self.program = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def lists(self):
        return {kind: self.kube.get(path)['items'] for kind, path in LISTS.items()}

    def ask(self, world, by_world, pod):
        tell = self.program.stdin
        tell.write(f'world {world.name}\n')
        for group in world.groups:
            tell.write(f'group {group["name"]} {group["gpus"]}\n')
        for kind in LISTS:
            for name in ('common', world.name):
                for o in by_world[kind].get(name, []):
                    o['metadata'].pop('managedFields', None)
                    tell.write(f'{kind} {json.dumps(o)}\n')
        tell.write('say\n')
        tell.flush()
        verdict = None
        while (line := self.program.stdout.readline().rstrip('\n')) != '.':
            _, name, said, group, why = line.split(' ', 4)
            if name == f'{pod["metadata"]["namespace"]}/{pod["metadata"]["name"]}':
                verdict = said, group, why
        return verdict


def sort_by_world(lists):
    out = {kind: {} for kind in lists}
    for kind, items in lists.items():
        for o in items:
            name = 'common' if kind == 'namespaces' else o['metadata'].get('labels', {}).get(WORLD, 'others')
            out[kind].setdefault(name, []).append(o)
    return out


def until(what, is_so, patience=PATIENCE):
    end = time.monotonic() + patience
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.3)
    return True


class Batch:
    def __init__(self, kube, calls, judge, worlds):
        self.kube, self.calls, self.judge, self.worlds = kube, calls, judge, worlds
        self.counts, self.wrong = {}, []

    def create(self, objects):
        self.calls.all([('POST', path, o) for path, o in objects])

    def are_ready(self):
        for node in self.kube.get('/api/v1/nodes')['items']:
            for taint in node['spec'].get('taints', []):
                if taint['key'] == 'node.kubernetes.io/not-ready':
                    return False
            marked = any(t['key'] == 'node.kubernetes.io/unschedulable' for t in node['spec'].get('taints', []))
            if node['spec'].get('unschedulable', False) != marked:
                return False
        return True

    def seen(self):
        """Of each pod that was asked for: the node it is on, '' for none as the scheduler said, None: not yet."""
        pods = {(p['metadata']['namespace'], p['metadata']['name']): p for p in self.kube.get('/api/v1/pods')['items']}
        claims = {c['metadata']['name']: c for c in self.kube.get(LISTS['persistentvolumeclaims'])['items']}
        out = {}
        for world in self.worlds:
            pod, _, claim = world.now
            p = pods[pod['metadata']['namespace'], pod['metadata']['name']]
            chosen = claims.get(claim, {}).get('metadata', {})
            node = p['spec'].get('nodeName') or chosen.get('annotations', {}).get('volume.kubernetes.io/selected-node')
            # A volume that is there is bound by the scheduler itself, and then it waits for the controller.
            node = node or (world.now[2] and self.bound_by(claims, claim)) or None
            said = any(c['type'] == 'PodScheduled' and c['status'] == 'False'
                       for c in p.get('status', {}).get('conditions', []))
            out[world.name] = node if node else '' if said else None
        return out

    def bound_by(self, claims, claim):
        volume = self.kube.get(LISTS['persistentvolumes'])['items'] if claim in claims else []
        for v in volume:
            if v['spec'].get('claimRef', {}).get('name') == claim:
                return v['spec']['nodeAffinity']['required']['nodeSelectorTerms'][0]['matchExpressions'][0]['values'][0]
        return None

    def round(self):
        for world in self.worlds:
            world.now = world.waits()
        self.create([o for world in self.worlds for o in world.now[1]])
        # Nobody else makes volumes available here: their controller would need drivers.
        self.calls.all([('PUT', f'{path}/{o["metadata"]["name"]}/status', {**o, 'status': {'phase': 'Available'}})
                        for world in self.worlds for path, o in world.now[1]
                        if o['kind'] == 'PersistentVolume' and o['spec'].get('storageClassName')])
        by_world = sort_by_world(self.judge.lists())
        verdicts = {}
        for world in self.worlds:
            pod = json.loads(json.dumps(world.now[0]))
            # As the server would have it: what it fills in counts for the filters.
            made = self.kube.call('POST', path_of(pod) + '?dryRun=All', pod)
            by_world['pods'].setdefault(world.name, []).append(made)
            verdicts[world.name] = self.judge.ask(world, by_world, pod)
        self.create([(path_of(world.now[0]), world.now[0]) for world in self.worlds])
        if not until('decided', lambda: all(v is not None for v in self.seen().values())):
            sys.exit('the scheduler did not look at every pod')
        first = self.seen()
        new = []
        for world in self.worlds:
            said, group, _ = verdicts[world.name]
            wanted = [g for g in world.groups if said == 'nowhere' or (said == 'new' and g['name'] == group)]
            new += [(world, world.node(g, True)) for g in wanted]
        names = {node['metadata']['name'] for _, node in new}
        self.create([('/api/v1/nodes', node) for _, node in new])
        self.create([o for world, node in new for o in world.slice(node['metadata']['name'])])
        until('ready', self.are_ready)
        until('bound', lambda: all(self.last(w) for w in self.worlds if verdicts[w.name][0] == 'new'), 40)
        time.sleep(4)
        last = self.seen()
        for world in self.worlds:
            self.judge_one(world, verdicts[world.name], first[world.name], last[world.name], names)
        self.calls.all([('DELETE', f'{path_of(w.now[0])}/{w.now[0]["metadata"]["name"]}', {'gracePeriodSeconds': 0})
                        for w in self.worlds if w.now[2] or not last[w.name]])

    def last(self, world):
        return self.seen_cache()[world.name]

    def seen_cache(self):
        if time.monotonic() - getattr(self, 'at', 0) > 0.3:
            self.cached, self.at = self.seen(), time.monotonic()
        return self.cached

    def judge_one(self, world, verdict, first, last, new):
        said = verdict[0]
        right = (said == 'there' and first) or (said == 'new' and not first and last in new) or \
            (said == 'nowhere' and not first and not last)
        self.counts[said] = self.counts.get(said, 0) + 1
        if right:
            return
        self.wrong.append(world.seed)
        print(f'seed {world.seed}: {verdict}, the scheduler: first {first!r}, then {last!r}\n'
              f'  {json.dumps(world.now[0])}', file=sys.stderr)

    def clear(self):
        for space in SPACES:
            self.kube.call('DELETE', f'/api/v1/namespaces/{space}/pods', {'gracePeriodSeconds': 0}, timeout=120)
            self.kube.call('DELETE', f'/api/v1/namespaces/{space}/persistentvolumeclaims', timeout=120)
            self.kube.call('DELETE', CLAIMS.format(space), timeout=120)
        self.kube.call('DELETE', SLICES, timeout=120)
        self.kube.call('DELETE', '/api/v1/persistentvolumes', timeout=120)
        self.kube.call('DELETE', '/api/v1/nodes', timeout=120)
        until('gone', lambda: not self.kube.get('/api/v1/pods')['items'])

    def hold(self):
        """Claims of pods that run: allocated before they are there."""
        held = [(CLAIMS.format(claim['metadata']['namespace']), claim, status) for w in self.worlds for claim, status in w.held]
        self.create([(path, claim) for path, claim, _ in held])
        self.calls.all([('PUT', f'{path}/{claim["metadata"]["name"]}/status', {**claim, 'status': status})
                        for path, claim, status in held])

    def run(self):
        self.create([('/api/v1/nodes', n) for w in self.worlds for n in w.nodes])
        self.create([o for w in self.worlds for n in w.nodes for o in w.slice(n['metadata']['name'])])
        self.hold()
        if not until('ready', self.are_ready):
            sys.exit('not every node became ready')
        self.create([(path_of(p), p) for w in self.worlds for p in w.running])
        for _ in range(ROUNDS):
            self.round()
        self.clear()


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 60
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    kube = Kube(os.environ['RIG_DIR'])
    calls, judge = Calls(kube), Judge(kube, program)
    for space, labels in SPACES.items():
        kube.call('POST', '/api/v1/namespaces', {'metadata': {'name': space, 'labels': labels}})
    if not until('accounts', lambda: all(kube.get(f'/api/v1/namespaces/{s}/serviceaccounts')['items']
                                         for s in SPACES)):
        sys.exit('no service accounts')
    calls.all([('POST', path, o) for path, o in COMMON])
    counts, wrong = {}, []
    for first in range(seed, seed + count, BATCH):
        batch = Batch(kube, calls, judge, [World(s) for s in range(first, min(first + BATCH, seed + count))])
        batch.run()
        for said, n in batch.counts.items():
            counts[said] = counts.get(said, 0) + n
        wrong += batch.wrong
        print(f'worlds {seed} to {first + len(batch.worlds) - 1}: {counts}, different: {len(wrong)}', flush=True)
    if wrong:
        sys.exit(f'{len(wrong)} of {sum(counts.values())} differ, in worlds {sorted(set(wrong))}')


main()
