#!/usr/bin/env python3
"""A machine bought for the warm pool of an EKS node group: it was never a node and has no image. It wakes as that, also where
Preheat begins anew while it stands by."""
import json

import account
import stage
import trouble


class Warm(account.Eks):
    """Spot has none, and a stop keeps the disks of on-demand machines."""

    def tenancy(self):
        tenancy = super().tenancy()
        tenancy['groups'][1]['eks'].pop('instance_store')
        return tenancy


def stands_by(s):
    return trouble.calm(s) and any(m['state'] == 'stopped' for m in s.group('g5-od')['machines'])


def never_ran(s, controller, after=-1):
    """As the last decision has it, once there is one after that tick."""
    told = json.loads(s.must(s.options.preheat, 'explain', '--db', controller.db, '-o', 'json'))
    return told['tick'] > after and sum(g['standby_first'] for g in told['input']['groups'])


def last_tick(s, controller):
    return json.loads(s.must(s.options.preheat, 'explain', '--db', controller.db, '-o', 'json'))['tick']


def first_wakes(s, controller):
    """That ended with a replica that serves."""
    rows = json.loads(s.must(s.options.preheat, 'lead-time', '--db', controller.db, '-o', 'json'))
    return sum(r['count'] for r in rows if r['start'] == 'first wake' and r['stage'] == 'all')


def standby(s):
    cloud = Warm(s)
    cloud.open()
    s.accounts('preheat-a')
    manifest = cloud.manifest(edits=((cloud.standby_lead, 'p50: 30s, p95: 45s'),))
    controller = s.controller('preheat-a', '-f', manifest, '--no-election', '--namespace', stage.SPACE)
    controller.environment.update(cloud.environment())
    s.machines.fault('stock-out', 'g5-spot')
    controller.start()
    s.expect('a replica serves on the on-demand machine that was there', lambda: len(s.pods(account.APP)) >= 1)
    cloud.traffic(0.2, 7200)
    s.expect('one is bought to stand by', lambda: stands_by(s), 7200)
    s.expect('the decision knows that it never ran', lambda: never_ran(s, controller) > 0)
    controller.kill()
    last, wakes = last_tick(s, controller), first_wakes(s, controller)
    controller.start()
    s.expect('and so does the first one after a restart', lambda: never_ran(s, controller, last) > 0)
    cloud.more(4, 3600)
    s.expect('it is woken as one that had never run, and serves', lambda: first_wakes(s, controller) > wakes, 3600)
    s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    s.replay(controller)
    s.judge(account.LAWS)


if __name__ == '__main__':
    stage.main(standby, 'standby')
