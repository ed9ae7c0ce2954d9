#!/usr/bin/env python3
"""A pool on EKS: two managed node groups, behind AWS's own protocols, with all that happens to them."""
import time

import account
import stage


def calls(s, action, since=0.0, group=None):
    """What AWS was asked, that was not refused."""
    return [c for c in s.machines.calls()['calls'] if c['path'].endswith(':' + action) and c['at'] / 1000 >= since and c['status'] == 200]


def serving(s, count):
    return len(s.pods(account.APP)) >= count


def grows(s):
    """Traffic comes: spot machines are bought for it."""
    s.expect('a replica serves on the on-demand machine that was there', lambda: serving(s, 1))
    s.machines.traffic('chat', 3.0, 600)
    s.expect('spot machines are bought', lambda: s.group('g5-spot')['desired'] >= 2)
    s.expect('and serve', lambda: len(s.running('g5-spot')) >= 2 and serving(s, 3))


def eks(s):
    cloud = account.Eks(s)
    cloud.open()
    s.accounts('preheat-a')
    controller = s.controller('preheat-a', '--pool', cloud.manifest(), '--no-election', '--namespace', stage.SPACE)
    controller.environment.update(cloud.environment())
    controller.start()
    grows(s)
    s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    s.replay(controller)
    print(s.must(s.options.preheat, 'history', '--db', controller.db, '--launches'))
    print(s.must(s.options.preheat, 'history', '--db', controller.db, '-c'))
    import json
    for c in s.machines.calls()['calls']:
        if 'Describe' not in c['path']: print(json.dumps(c))
    print(json.dumps(s.machines.groups())[:1500])
    s.judge()


if __name__ == '__main__':
    stage.main(eks, 'eks')
