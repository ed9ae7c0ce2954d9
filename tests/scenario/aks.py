#!/usr/bin/env python3
"""A pool on AKS: a spot and a regular agent pool behind Azure's own protocols, and what happens to such pools."""
import time

import account
import stage


def wrong_starts(s, cloud):
    """Each says what is wrong, where, and goes on."""
    spot = 'cluster: prod, pool: a100spot'
    right = cloud.environment()
    secret = {k: v for k, v in right.items() if k != 'AZURE_FEDERATED_TOKEN_FILE'} | {'AZURE_CLIENT_SECRET': 'wrong'}
    cloud.refuses([
        ('credentials that are wrong', ('a100-spot', 'AADSTS'), (), secret),
        ('an agent pool that is not there', ('a100-spot', 'a100none'), ((spot, 'cluster: prod, pool: a100none'),), None)])


def settled(s):
    """Each pool runs what was asked of it."""
    return all(g['desired'] == len([m for m in g['machines'] if m['state'] == 'running'])
               and all(m['state'] in ('running', 'stopped') for m in g['machines']) for g in s.machines.groups().values())


def sizes(s):
    return sum(g['desired'] for g in s.machines.groups().values())


def grows(s):
    s.expect('a replica serves on the machine that was there', lambda: len(s.pods(account.APP)) >= 1)
    s.machines.traffic('chat', 2.5, 700)
    s.expect('spot machines are bought, and run', lambda: len(s.running('a100spot')) >= 2)


def runs_dry(s, cloud):
    begun = time.time()
    out = s.machines.fault('stock-out', 'a100spot')
    cloud.more(3)
    s.expect('an event tells the stock-out', lambda: s.told('StockOut', 'a100-spot', begun))
    s.expect('machines of the regular pool are asked for instead', lambda: s.group('a100')['desired'] >= 2)
    s.expect('an event tells that, too', lambda: s.told('FellBack', 'a100', begun))
    s.machines.end_faults(out['id'])
    bought = len(s.group('a100spot')['machines'])
    s.pass_time(300)
    s.check('Azure is believed: the spot pool is left alone for its hour', len(s.group('a100spot')['machines']) <= bought)


def taken(s):
    """A spot machine gets its notice: its successor is asked for at once."""
    s.expect('all that was asked for serves', lambda: settled(s) and len(s.pods(account.APP)) == sizes(s)
             and len(s.running('a100spot')) >= 2)
    begun, before = time.time(), s.machines.calls()['purchases']
    s.machines.fault('spot-loss', 'a100spot', value=1)
    s.evidence.setdefault('taken', []).append(begun)
    s.expect('an event tells the notice', lambda: s.told('SpotInterruption', since=begun))
    s.expect('its successor is bought', lambda: s.machines.calls()['purchases'] > before)


def calm(s):
    """Nothing is on its way, and nothing more has been wished for a while."""
    last = max(c['at'] for c in s.machines.calls()['calls'] if c['method'] in ('PUT', 'POST') and 'agentPools' in c['path'])
    return settled(s) and time.time() - last / 1000 > s.real(120)


def by_hand(s, cloud):
    s.expect('nothing is on its way', lambda: calm(s))
    begun = time.time()
    cloud.add_by_hand('a100spot', 2)
    s.expect('an event tells that somebody else did it', lambda: s.told('ForeignSizeChange', 'a100-spot', begun))


def shrinks(s):
    begun = time.time()
    s.expect('the traffic is over', lambda: s.machines.score()['pools']['chat']['running'] == 0, 3600)
    s.expect('machines go', lambda: s.group('a100spot')['desired'] + s.group('a100')['desired'] <= 2 and settled(s), 3600)
    s.check('what we stop is not called the work of others', not s.told('ForeignSizeChange', 'a100 ', begun))


def aks(s):
    cloud = account.Aks(s)
    cloud.open()
    s.accounts('preheat-a')
    wrong_starts(s, cloud)
    controller = s.controller('preheat-a', '--pool', cloud.manifest(), '--no-election', '--namespace', stage.SPACE)
    controller.environment.update(cloud.environment())
    controller.start()
    grows(s)
    taken(s)
    by_hand(s, cloud)
    cut_off = s.machines.score()['pools']['chat']['interrupted']
    s.mark(f'{cut_off} requests ended with the spot machine that Azure took')
    runs_dry(s, cloud)
    shrinks(s)
    cloud.stands_by('a100', controller)
    s.check('no request was cut off by what we did', s.machines.score()['pools']['chat']['interrupted'] == cut_off)
    s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    s.replay(controller)
    s.judge(account.LAWS)


if __name__ == '__main__':
    stage.main(aks, 'aks')
