#!/usr/bin/env python3
"""Installed as docs/deploy.md says, and used: the kustomize overlay of a cloud, the example of three pools there, and the
controller as a process with the arguments, the account and the rights that the overlay gives it, and no others."""
import json
import os

import account
import stage
from world import ROOT, SPACE

# What the rig's models are, and how fast its machines: the rest of the manifest is the example's.
PACE = (
    ('    gpusPerReplica: 1\n  signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 5s } }\n',
     '    gpusPerReplica: 1\n    maxSequences: 8\n    prefillTokensPerSecond: 25k\n    interTokenLatency: 30ms\n'
     '  signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 15s } }\n'
     '  leadTime: { total: { p50: 110s, p95: 150s } }\n  scaleDown: { after: 3m }\n'),
    ('min: 2 } ]\n', 'min: 1 } ]\n'), ('scaleDown: { after: 10m }\n', 'scaleDown: { after: 3m }\n  leadTime: { total: { p50: 110s, p95: 150s } }\n'))
SERVES, WORKS = 'rig.preheat.dev/serve: vllm', 'rig.preheat.dev/run-for: 300s'
RUNS = (('chat', 6, SERVES), ('nightly', 10, WORKS), ('train', 6, WORKS))


class Eks(account.Eks):
    example, overlay, pace, edits = os.path.join('examples', 'three-pools-eks', 'pools.yaml'), 'eks-irsa', PACE, ()
    spot, large = 'g5-spot', 'p4d'

    def tenancy(self):
        zones = ['eu-west-1a', 'eu-west-1b']
        return {'aws': {}, 'groups': [
            self.group('g5-spot', max=12, zones=zones, instance_type='g5.2xlarge', eks={'capacity_type': 'SPOT'}),
            self.group('g5-od', max=8, zones=zones, instance_type='g5.2xlarge', initial=2, eks={}),
            self.group('p4d', max=2, zones=zones, instance_type='p4d.24xlarge', count=8, cpu='96', memory='1152Gi', eks={})]}

    def limits(self):
        return {'g5-spot': {'min': 0, 'max': 12, 'standby': 0}, 'g5-od': {'min': 2, 'max': 8, 'standby': 4},
                'p4d': {'min': 0, 'max': 2, 'standby': 0}}

    def config(self):
        return serving(super().config(), 'g5-spot', 'g5-od')


class Aks(account.Aks):
    example, overlay, pace = os.path.join('examples', 'three-pools-aks', 'pools.yaml'), 'aks-workload-identity', PACE
    edits = ()
    spot, large = 'a100spot', 'nd96'

    def tenancy(self):
        tenancy = super().tenancy()
        tenancy['groups'] = spot, steady = tenancy['groups'][:2]
        spot.update(max=12, instance_type='Standard_NC24ads_A100_v4')
        steady.update(max=8, initial=2, instance_type='Standard_NC24ads_A100_v4')
        tenancy['groups'].append(self.group('nd96', max=2, instance_type='Standard_ND96amsr_A100_v4', count=8, cpu='96',
                                            memory='1900Gi', aks={'resource_group': 'llm', 'properties': {}}))
        return tenancy

    def limits(self):
        return {'a100spot': {'min': 0, 'max': 12, 'standby': 0}, 'a100': {'min': 2, 'max': 8, 'standby': 4},
                'nd96': {'min': 0, 'max': 2, 'standby': 0}}

    def config(self):
        return serving(super().config(), 'a100spot', 'a100')


def serving(config, *groups):
    config['pools'][0].update(selector={'app': 'chat'}, groups=list(groups))
    return config


def arguments(s):
    """What the StatefulSet runs, but for the places of its files and ports."""
    found = json.loads(s.must('kubectl', 'get', 'statefulset', 'preheat', '-n', stage.SPACE, '-o', 'json'))
    container = found['spec']['template']['spec']['containers'][0]
    words = container['args']
    s.check(f"it runs {' '.join(words)}", words[0] == 'run' and '--watch-pools' in words)
    kept = []
    for word, value in zip(words[1:], words[2:] + ['']):
        if word.startswith('--') and word not in ('--listen', '--db', '--web-listen'):
            kept += [word] if value.startswith('--') or not value else [word, value]
    return kept


def guard(s):
    """The scheduling contract at the door, before anything comes in."""
    s.must('kubectl', 'apply', '--server-side', '-k', os.path.join(ROOT, 'deploy', 'admission', 'deny'))
    path = os.path.join(s.folder, 'blanket.yaml')
    with open(path, 'w', encoding='utf-8') as file:
        json.dump({'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'blanket', 'namespace': 'default'}, 'spec': {
            'tolerations': [{'operator': 'Exists'}], 'containers': [{'name': 'c', 'image': 'i', 'resources': {
                'limits': {'nvidia.com/gpu': '1'}}}]}}, file)
    s.expect('a pod against the contract is refused', lambda: 'ValidatingAdmissionPolicy' in stage.process.run(
        ['kubectl', 'create', '--dry-run=server', '-f', path])[1])


def install(s, cloud):
    overlay = os.path.join(ROOT, 'deploy', 'overlays', cloud.overlay)
    s.must('kubectl', 'apply', '--server-side', '-k', overlay)
    s.serve_pools()
    s.evidence['lease'] = stage.LEASE
    return s.controller('preheat-0', *arguments(s), '--namespace', stage.SPACE, account='preheat')


def workloads(s, cloud):
    """The example's, as it stands, but for what the rig's machines play of them."""
    path = os.path.join(ROOT, os.path.dirname(cloud.example), 'workloads.yaml')
    with open(path, encoding='utf-8') as file:
        text = file.read()
    for app, depth, note in RUNS:
        old = f"{' ' * depth}labels:\n{' ' * depth}  app: {app}\n"
        if text.count(old) != 1:
            raise SystemExit(f'{path} does not say {old!r} once')
        text = text.replace(old, f"{' ' * depth}annotations: {{ {note} }}\n{old}")
    path = os.path.join(s.folder, 'workloads.yaml')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    code, said = stage.process.run(['kubectl', 'apply', '--server-side', '-f', path])
    s.check(f'the API server takes the workloads, and warns of nothing: {said}', code == 0 and 'Warning' not in said)


def pool(s, name):
    return json.loads(s.must('kubectl', 'get', 'warmpool', name, '-n', SPACE, '-o', 'json')).get('status', {})


def serves(s, cloud, controller):
    s.expect('it leads', lambda: (s.leader() or '').startswith('preheat-0'))
    s.expect('it is ready', lambda: controller.page('/readyz')[0] == 200)
    s.must('kubectl', 'apply', '--server-side', '-f', cloud.manifest())
    s.expect('all three are decided on', lambda: all('lastDecision' in pool(s, name) for name in ('chat', 'nightly', 'train')))
    s.expect('chat serves', lambda: s.pods('chat'))
    s.machines.traffic('chat', 3.0, 1500)
    s.expect('its pool grows ahead of the traffic', lambda: s.group(cloud.spot)['desired'] >= 2)
    s.expect('the new machines serve', lambda: len(s.pods('chat')) >= 4)
    s.expect('the status says so', lambda: pool(s, 'chat').get('hot', 0) >= 4)
    s.check('an event tells why', s.told('TriggeredScaleUp'))


def loses_its_file(s, cloud, controller):
    """The volume is gone with all that was learned: it decides anew, and nobody who is served is cut off."""
    tick = pool(s, 'chat')['lastDecision']['tick']
    controller.kill()
    for name in os.listdir(s.folder):
        if name.startswith(os.path.basename(controller.db)):
            os.unlink(os.path.join(s.folder, name))
    controller.start()
    s.expect('it decides anew', lambda: pool(s, 'chat')['lastDecision']['tick'] < tick)
    s.expect('it is ready again', lambda: controller.page('/readyz')[0] == 200)
    s.pass_time(300)
    s.check(f"{len(s.pods('chat'))} replicas serve", s.pods('chat'))
    s.check('no request was cut off', s.machines.score()['pools']['chat']['interrupted'] == 0)


def works(s, cloud):
    """A gang asks for both of its machines; batch runs beside chat."""
    s.must('kubectl', 'patch', 'job', 'fine-tune', '-n', SPACE, '--type=merge', '-p', '{"spec":{"suspend":false}}')
    s.expect('the gang gets both of its machines', lambda: s.group(cloud.large)['desired'] == 2)
    s.must('kubectl', 'create', 'job', 'tonight', '-n', SPACE, '--from=cronjob/nightly')
    s.expect('batch runs', lambda: s.pods('nightly', ready=False) and any(p['node'] for _, p in s.pods('nightly', ready=False)))
    s.expect('the gang trains', lambda: len([p for _, p in s.pods('train', ready=False) if p['node']]) == 2)
    s.expect('and ends', lambda: json.loads(s.must('kubectl', 'get', 'jobs', 'fine-tune', '-n', SPACE, '-o', 'json'))
             .get('status', {}).get('succeeded') == 2)
    s.expect('its machines go', lambda: s.group(cloud.large)['desired'] == 0)


def placeholders(s):
    """Made under the policies that bind people, too."""
    s.must('kubectl', 'create', 'rolebinding', 'preheat-placeholders', '-n', SPACE, '--clusterrole=preheat-placeholders',
           f'--serviceaccount={stage.SPACE}:preheat')
    # More than the replicas that the traffic left.
    least = s.kube.one('Deployment', 'chat', SPACE)['spec']['replicas'] + 2
    s.must('kubectl', 'patch', 'warmpool', 'chat', '-n', SPACE, '--type=merge', '-p', json.dumps(
        {'spec': {'workload': {'warm': 'placeholders'}, 'headroom': {'min': least}}}))
    s.expect('placeholders stand beside chat', lambda: (s.kube.one('Deployment', 'chat-placeholder', SPACE) or {}).get(
        'spec', {}).get('replicas'))


def installed(s, cloud):
    cloud.open_door()
    s.open_eyes()
    guard(s)
    workloads(s, cloud)
    controller = install(s, cloud)
    controller.environment.update(cloud.environment(), POD_NAME='preheat-0')
    controller.start()
    serves(s, cloud, controller)
    loses_its_file(s, cloud, controller)
    works(s, cloud)
    placeholders(s)
    s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    s.replay(controller)
    s.judge(account.LAWS)


if __name__ == '__main__':
    stage.main(lambda s: installed(s, Eks(s)), 'installed')
