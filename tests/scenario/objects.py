#!/usr/bin/env python3
"""WarmPools as objects in the API server: taken up, changed, refused and taken away while the controller runs under the
rights of deploy/base/rbac.yaml and no others."""
import json
import os
import time

import stage
import world


class Pools:
    """The manifests of the example, one by one, as kubectl applies them."""

    def __init__(self, s, path):
        self.s, self.texts = s, {}
        with open(path, encoding='utf-8') as file:
            for text in file.read().split('\n---\n'):
                self.texts[text.split('metadata: { name: ')[1].split(',')[0]] = text

    def write(self, name, text):
        path = os.path.join(self.s.folder, f'{name}.warmpool.yaml')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return path

    def apply(self, name, **changes):
        """With other texts in place of some of its own."""
        text = self.texts[name]
        for was, now in changes.values():
            if was not in text:
                raise SystemExit(f'{name} does not say {was}')
            text = text.replace(was, now)
        self.texts[name] = text
        self.s.must('kubectl', 'apply', '-f', self.write(name, text))

    def patch(self, name, change):
        self.s.must('kubectl', 'patch', 'warmpool', name, '-n', world.SPACE, '--type=merge', '-p', json.dumps(change))

    def one(self, name):
        return json.loads(self.s.must('kubectl', 'get', 'warmpool', name, '-n', world.SPACE, '-o', 'json'))

    def condition(self, name, kind):
        for condition in self.one(name).get('status', {}).get('conditions', []):
            if condition['type'] == kind:
                return condition
        return {'status': '', 'reason': '', 'message': ''}

    def is_decided(self, name):
        """The controller has decided on what it says now."""
        pool = self.one(name)
        status = pool.get('status', {})
        return status.get('observedGeneration') == pool['metadata']['generation'] and 'lastDecision' in status \
            and self.condition(name, 'Ready')['reason'] != 'Refused'


def logged(controller, event, **fields):
    return [line for line, _ in controller.lines() if line and line.get('event', line.get('msg')) == event
            and all(line.get(key) == value for key, value in fields.items())]


def take_up(s, pools, controller):
    """Nothing there, then a pool: it is decided on and acted for."""
    s.expect('it is ready with no pool at all', lambda: controller.page('/readyz')[0] == 200)
    s.check('it says that there is nothing to decide on', 'no pools' in controller.page('/readyz')[1])
    pools.apply('chat')
    s.expect('chat is decided on', lambda: pools.is_decided('chat'))
    s.expect('chat serves', lambda: s.pods('chat'))
    s.expect('its status says so', lambda: pools.one('chat')['status'].get('hot', 0) >= 1)
    said = s.must('kubectl', 'get', 'warmpools', '-n', world.SPACE)
    s.check(f'kubectl shows it:\n{said}', 'interactive' in said and '<none>' not in said.splitlines()[1])
    s.check('it is Ready', pools.condition('chat', 'Ready')['status'] == 'True')


def edit(s, pools):
    """More headroom is more nodes; status is kept apart from the spec, and the pool goes on learning."""
    before, changed = s.group('chat-spot')['desired'], time.time()
    ticks = pools.one('chat')['status']['lastDecision']['tick']
    pools.apply('chat', headroom=('headroom: { min: 2 }', 'headroom: { min: 5 }'))
    s.expect('the change is decided on', lambda: pools.is_decided('chat'))
    s.expect('more headroom is more machines', lambda: s.group('chat-spot')['desired'] >= before + 3)
    s.expect('an event on the WarmPool tells it', lambda: s.told('TriggeredScaleUp', since=changed))
    s.check('the history goes on', pools.one('chat')['status']['lastDecision']['tick'] > ticks)


def second(s, pools, controller):
    """A pool beside it; the first is not disturbed."""
    pods = {key for key, _ in s.pods('chat')}
    pools.apply('embed')
    s.expect('embed is decided on', lambda: pools.is_decided('embed'))
    s.expect('embed serves', lambda: s.pods('embed'))
    s.check('the pods of chat that served serve on', pods <= {key for key, _ in s.pods('chat')})
    s.check('chat is decided on as before', pools.is_decided('chat'))
    pools.apply('train')
    s.expect('train is decided on', lambda: pools.is_decided('train'))
    s.check('and has no machine', s.group('train')['desired'] == 0)
    s.check('three pools are told by /metrics', controller.metric('preheat_pool_hot_replicas', pool='train') is not None)


def elsewhere(s, pools, controller):
    """By its labels a pool becomes another controller's, and comes back."""
    s.must('kubectl', 'label', 'warmpool', 'train', '-n', world.SPACE, 'rig=elsewhere')
    s.expect('a pool of other labels is let go', lambda: controller.metric('preheat_pool_hot_replicas', pool='train') is None
             and controller.metric('preheat_pool_hot_replicas', pool='chat') is not None)
    s.must('kubectl', 'label', 'warmpool', 'train', '-n', world.SPACE, 'rig-')
    s.expect('and taken up again', lambda: controller.metric('preheat_pool_hot_replicas', pool='train') is not None)


def broken(s, pools, controller):
    """What only the controller can see is refused by a condition; the others and what was in force before go on."""
    text = pools.texts['embed'].replace('name: embed,', 'name: twin,', 1).replace('max: 4 }', 'max: 3 }')
    path = pools.write('twin', text)
    s.must('kubectl', 'apply', '-f', path)
    s.expect('a pool that tells a shared group otherwise is refused, with the reason',
             lambda: "allowed: 4" in pools.condition('twin', 'Ready')['message'])
    s.mark('it says: ' + pools.condition('twin', 'Ready')['message'])
    s.check('by a condition', pools.condition('twin', 'Ready')['status'] == 'False')
    s.check('and the log says it once', len(logged(controller, 'warmpool-refused', name='twin')) == 1)
    s.expect('and by a metric', lambda: controller.metric('preheat_refused_pools', pool='twin') == 1)
    pools.patch('chat', {'spec': {'headroom': {'min': 1000}}})
    s.expect('a change that cannot be kept is refused',
             lambda: 'stays in force' in pools.condition('chat', 'Ready')['message'])
    s.mark('it says: ' + pools.condition('chat', 'Ready')['message'])
    tick = controller.metric('preheat_ticks_total')
    s.expect('decisions go on, for all three',
             lambda: (controller.metric('preheat_ticks_total') or 0) > tick + 3
             and controller.metric('preheat_pool_hot_replicas', pool='chat'))
    pools.patch('chat', {'spec': {'headroom': {'min': 2}}})
    s.expect('put right, it is in force', lambda: pools.is_decided('chat'))
    s.must('kubectl', 'delete', '-f', path)
    code, said = refused_by_server(s, pools)
    s.check(f'what the schema can see is refused at once: {said}', code != 0 and 'p95' in said)


def refused_by_server(s, pools):
    text = pools.texts['train'].replace('p50: 150s', 'p50: 900s')
    path = pools.write('upside-down', text)
    return stage.process.run(['kubectl', 'apply', '-f', path])


def placeholders(s, pools):
    """Another way to keep it warm: pods that hold GPUs until replicas push them out. They belong to the WarmPool."""
    s.must('kubectl', 'apply', '-f', os.path.join(stage.ROOT, 'deploy', 'base', 'priorities.yaml'))
    s.must('kubectl', 'create', 'rolebinding', 'preheat-placeholders', '-n', world.SPACE,
           '--clusterrole=preheat-placeholders', f'--serviceaccount={stage.SPACE}:preheat-a')
    pools.patch('embed', {'spec': {'workload': {'warm': 'placeholders'}, 'headroom': {'min': 4}}})
    s.expect('placeholders stand beside embed', lambda: s.kube.one('Deployment', 'embed-placeholder', world.SPACE))
    s.expect('and hold GPUs', lambda: [p for p in s.watches['Pod'].snapshot().items()
                                       if 'embed-placeholder' in p[0] and p[1]['node']])
    pools.patch('embed', {'spec': {'workload': {'warm': 'replicas'}}})
    s.expect('kept warm by replicas again, they are given up', lambda: s.kube.one(
        'Deployment', 'embed-placeholder', world.SPACE)['spec']['replicas'] == 0)


def take_away(s, pools, controller):
    """A pool that goes leaves its machines as they are: whose they are then is not for us to say."""
    machines = s.group('embed')['desired']
    gone = time.time()
    s.must('kubectl', 'delete', 'warmpool', 'embed', '-n', world.SPACE)
    s.expect('its metrics end', lambda: controller.metric('preheat_pool_hot_replicas', pool='embed') is None
             and controller.metric('preheat_pool_hot_replicas', pool='chat') is not None)
    s.expect('its placeholders end', lambda: not s.kube.one('Deployment', 'embed-placeholder', world.SPACE))
    s.pass_time(600)
    s.check('nothing more is done to its group',
            not [c for verb in ('grow', 'remove', 'stop') for c in s.calls('embed', verb, gone + 1)])
    s.check('its machines stay', s.group('embed')['desired'] == machines)
    s.check('the other two are decided on', pools.is_decided('chat') and pools.is_decided('train'))


def restart(s, pools, controller):
    """Killed and started again: it reads its pools before it leads, and goes on with the same history."""
    tick = pools.one('chat')['status']['lastDecision']['tick']
    since = pools.condition('chat', 'Ready')['lastTransitionTime']
    controller.kill()
    controller.start()
    s.expect('it goes on', lambda: pools.one('chat')['status']['lastDecision']['tick'] > tick)
    s.check('Ready is as old as before', pools.condition('chat', 'Ready')['lastTransitionTime'] == since)


def objects(s):
    manifest = s.open_world(world.World())
    pools = Pools(s, manifest)
    s.serve_pools()
    s.accounts('preheat-a')
    s.evidence['lease'] = stage.LEASE
    controller = s.controller('preheat-a', '--watch-pools', '--lease', stage.LEASE, '--namespace', stage.SPACE,
                              '--identity', 'preheat-a', '--pool-selector', 'rig!=elsewhere').start()
    take_up(s, pools, controller)
    edit(s, pools)
    second(s, pools, controller)
    elsewhere(s, pools, controller)
    broken(s, pools, controller)
    placeholders(s, pools)
    take_away(s, pools, controller)
    restart(s, pools, controller)
    s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    s.replay(controller)
    s.judge()


if __name__ == '__main__':
    stage.main(objects, 'objects')
