#!/usr/bin/env python3
"""A dry run beside pools that would act: everything is decided and written down, and not one writing call is made."""
import laws
import process
import stage
import world


def would_act(s):
    """Ticks at which something was decided that a run would have done."""
    code, said = process.run([s.options.preheat, 'history', '--db', s.controllers['preheat-a'].db, '-o', 'csv'])
    return len(said.strip().splitlines()) - 1 if code == 0 else 0


def dry_run(s):
    w = world.World()
    manifest = s.open_world(w)
    s.accounts('preheat-a')
    # What a run would end at once: more replicas than are wanted, work that asks for nodes, a chat that queues.
    s.machines.ask('/v1/groups/chat-spot/grow', {'token': 'by-hand', 'desired': 6})
    s.kube.patch('Deployment', 'chat', world.SPACE, {'spec': {'replicas': 7}})
    s.kube.create(world.job('night', 2, '240s'))
    s.expect('seven replicas of chat serve, made by hand', lambda: len(s.pods('chat')) == 7)
    controller = s.controller('preheat-a', '-f', manifest, '--dry-run', '--namespace', stage.SPACE).start()
    s.expect('it is ready', lambda: controller.page('/readyz')[0] == 200)
    s.expect('it decides what it would do', lambda: would_act(s) > 0)
    s.machines.traffic('chat', 80, 300)
    s.pass_time(900)
    s.check(f'it would have acted at {would_act(s)} ticks', would_act(s) > 3)
    s.check('seven replicas of chat still serve', len(s.pods('chat')) == 7)
    s.check('no event of its own', not [e for e in s.watches['Event'].snapshot().values() if 'preheat' in e['controller']])
    s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    s.replay(controller)
    judge(s)


def judge(s):
    evidence = s.collect()
    by_hand = [c for c in evidence['cloud']['calls'] if c.get('token') == 'by-hand']
    s.check('the cloud saw one changing call, which was made by hand', laws.changes(evidence) == by_hand)
    looks = [c for c in evidence['cloud']['calls'] if c['method'] == 'GET' and c['path'].startswith('/v1/groups/')]
    s.check('and was looked at', looks)
    evidence['cloud']['calls'] = looks
    s.collect = lambda: evidence
    s.check('the API server was read', [e for e in evidence['audit'] if e['user'] in evidence['users']])
    s.judge(laws.DRY_LAWS)


if __name__ == '__main__':
    stage.main(dry_run, 'dry_run')
