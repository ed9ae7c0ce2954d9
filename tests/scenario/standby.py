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


def stopped(s):
    return {m['id'] for m in s.group('g5-od')['machines'] if m['state'] == 'stopped'}


def never_ran(s, controller):
    """As the last decision has it."""
    told = json.loads(s.must(s.options.preheat, 'explain', '--db', controller.db, '-o', 'json'))
    return sum(g['standby_first'] for g in told['input']['groups'])


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
    cloud.traffic(1.0, 7200)
    bought = s.expect('one is bought to stand by', lambda: trouble.calm(s) and stopped(s), 7200) or set()
    s.expect('the decision knows that it never ran', lambda: never_ran(s, controller) == len(stopped(s)))
    controller.kill()
    controller.start()
    s.expect('it is ready again', lambda: controller.page('/readyz')[0] == 200)
    s.pass_time(60)
    s.check('and still knows', never_ran(s, controller) == len(stopped(s)) > 0)
    cloud.more(4, 900)
    woken = s.expect('it is woken, and serves', lambda: [p for _, p in s.pods(account.APP) if any(
        n['metadata']['name'] == p['node'] and n['spec']['providerID'].endswith(tuple(bought)) for n in s.kube.items('Node'))], 3600)
    s.check('as one that had never run', woken and 'first wake' in s.must(s.options.preheat, 'lead-time', '--db', controller.db))
    s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    s.replay(controller)
    s.judge(account.LAWS)


if __name__ == '__main__':
    stage.main(standby, 'standby')
