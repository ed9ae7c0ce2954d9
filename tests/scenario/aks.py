#!/usr/bin/env python3
"""A pool on AKS: a spot and a regular agent pool behind Azure's own protocols, and what happens to such pools."""
import time

import account
import stage
import trouble


def wrong_starts(s, cloud):
    """Each says what is wrong, where, and goes on."""
    spot = 'cluster: prod, pool: a100spot'
    right = cloud.environment()
    secret = {k: v for k, v in right.items() if k != 'AZURE_FEDERATED_TOKEN_FILE'} | {'AZURE_CLIENT_SECRET': 'wrong'}
    nobody = {k: v for k, v in right.items() if 'CLIENT' not in k and 'TENANT' not in k and 'TOKEN' not in k}
    nobody['AZURE_POD_IDENTITY_AUTHORITY_HOST'] = 'http://127.0.0.1:1'  # nor has the machine one
    place = 'aks: { subscription: 00000000-0000-0000-0000-000000000000, resourceGroup: llm, cluster: prod, pool: a100spot }'
    cloud.refuses([
        ('no credentials at all', ('a100-spot', 'identity'), (), nobody),
        ('another subscription', ('a100-spot', 'ubscription'), ((place, place.replace('00000000-', '00000001-')),), None),
        ('a pool that AKS sizes itself', ('enableAutoScaling',), ((spot, 'cluster: prod, pool: a100auto'),), None),
        ('credentials that are wrong', ('a100-spot', 'AADSTS'), (), secret),
        ('an agent pool that is not there', ('a100-spot', 'a100none'), ((spot, 'cluster: prod, pool: a100none'),), None)])


def grows(s, cloud):
    s.expect('a replica serves on the machine that was there', lambda: len(s.pods(account.APP)) >= 1)
    cloud.traffic(2.5, 700)
    s.expect('spot machines are bought, and run', lambda: len(s.running('a100spot')) >= 2)


def upgraded(s, cloud, controller, fault, state):
    """AKS gives the pool another node image or version: a machine beside the count, then the others cordoned, emptied and reimaged
    one by one."""
    cloud.quiet()
    cloud.traffic(3 * account.A_REPLICA, 1500)
    s.expect('spot machines serve', lambda: s.settled() and 2 <= len(s.running('a100spot')) <= 8 and
             len(s.pods(account.APP)) >= len(s.running('a100spot')), 7200)
    begun, before = time.time(), {m['id'] for m in s.running('a100spot')}
    s.machines.fault(fault, 'a100spot')
    s.expect('an event names the upgrade', lambda: s.told('NodeGroupBusy', f'provisioningState {state})', begun))
    told = time.time()
    s.expect('a machine beside them runs', lambda: before < {m['id'] for m in s.running('a100spot')})
    s.expect('that it is over is noticed', lambda: controller.metric(
        'preheat_pool_problem', pool='chat', problem='group-busy') == 0, 7200)
    pool = [x for x in cloud.exchanges(told) if '/agentPools/a100spot' in x['url']]
    ends = [x for x in pool if x['method'] == 'GET' and ('"Succeeded"' in x['response'] or '"Failed"' in x['response'])]
    s.check('it succeeded: all could be evicted', ends and '"Succeeded"' in ends[0]['response'])
    s.check('machines keep their names', before <= {m['id'] for m in s.group('a100spot')['machines']})
    ours = [f"{x['method']} {x['url']}" for x in pool if x['method'] != 'GET' and ends and x['at'] < ends[0]['at']]
    s.check(f'we changed nothing of it meanwhile: {ours}', not ours)


def refused(s, cloud, controller):
    """AKS upgrades the whole cluster: no pool shows it, and every write is refused with 409. It is named, and not asked for ever."""
    cloud.quiet()
    s.expect('there is room for more', lambda: s.settled() and s.group('a100spot')['desired'] <= 6, 7200)
    upgrade, begun = s.machines.fault('cluster-upgrade', '*'), time.time()
    s.pass_time(120)  # what was accepted before it comes
    bought = s.machines.calls()['purchases']
    cloud.more(3, 3600)
    s.expect('an event names what is in the way', lambda: s.told('NodeGroupBusy', 'upgrade managed cluster', begun), 3600)
    s.pass_time(1200)
    s.check('nothing was bought meanwhile', s.machines.calls()['purchases'] == bought)
    writes = [x for x in cloud.exchanges(begun) if x['method'] != 'GET' and '/agentPools/' in x['url']]
    s.check(f'of {len(writes)} writes all were refused, and there were few', writes and len(writes) <= 40 and
            all(x['status'] == 409 for x in writes))
    s.machines.end_faults(upgrade['id'])
    s.expect('once it is over, machines come', lambda: s.machines.calls()['purchases'] > bought and s.settled(), 3600)
    s.expect('that it is over is noticed', lambda: controller.metric(
        'preheat_pool_problem', pool='chat', problem='group-busy') == 0, 7200)
    s.check('nobody is said to fight over it', not s.told('NodeGroupContended', since=begun))


def deallocates(s, cloud):
    """Where deleteMachines only deallocates, what is removed stands by, is not called a stranger's work, and is woken."""
    fault = s.machines.fault('delete-deallocates', 'a100')
    trouble.stands_by(s, cloud, 'deallocates')
    s.machines.end_faults(fault['id'])


def runs_dry(s, cloud):
    cloud.quiet()
    s.expect('there is room for more', lambda: s.settled() and s.group('a100spot')['desired'] <= 6
             and s.group('a100')['desired'] <= 2, 7200)
    begun = time.time()
    out = s.machines.fault('stock-out', 'a100spot')
    cloud.more(3)
    trouble.falls_back(s, cloud, begun)
    s.machines.end_faults(out['id'])
    bought = len(s.group('a100spot')['machines'])
    s.pass_time(300)
    s.check('Azure is believed: the spot pool is left alone for its hour', len(s.group('a100spot')['machines']) <= bought)


def shrinks(s, cloud):
    begun = time.time()
    cloud.quiet()
    s.expect('the traffic is over', lambda: s.machines.score()['pools']['chat']['running'] == 0, 3600)
    s.expect('machines go', lambda: s.group('a100spot')['desired'] + s.group('a100')['desired'] <= 2 and s.settled(), 3600)
    s.check('what we stop is not called the work of others', not s.told('ForeignSizeChange', 'a100 ', begun))


def few_writes(s, cloud, throttled):
    """AKS takes 20 PUTs of an agent pool at once and one more a minute: what it would refuse is not sent. `throttled` is when
    the fault of that name made it refuse all the same."""
    puts = [x for x in cloud.exchanges() if x['method'] == 'PUT' and '/agentPools/' in x['url']]
    refused = [x['at'] for x in puts if x['status'] == 429 and not throttled[0] <= x['at'] / 1000 <= throttled[1]]
    s.check(f'none of {len(puts)} PUTs was one too many: {refused}', puts and not refused)


def aks(s):
    cloud = account.Aks(s)
    cloud.open()
    s.accounts('preheat-a')
    wrong_starts(s, cloud)
    controller = s.controller('preheat-a', '-f', cloud.manifest(), '--no-election', '--namespace', stage.SPACE)
    controller.environment.update(cloud.environment())
    controller.start()
    grows(s, cloud)
    trouble.taken(s, cloud)
    trouble.by_hand(s, cloud)
    cut_off = s.machines.score()['pools']['chat']['interrupted']
    s.mark(f'{cut_off} requests ended with the spot machine that Azure took')
    throttled = time.time()
    trouble.too_many_calls(s, cloud, controller)
    throttled = (throttled, time.time())
    trouble.lost_answer(s, cloud, controller)
    trouble.half_truths(s, cloud, controller)
    trouble.killed(s, cloud, controller, 8)
    trouble.revoked(s, cloud)
    upgraded(s, cloud, controller, 'image-upgrade', 'UpgradingNodeImageVersion')
    upgraded(s, cloud, controller, 'version-upgrade', 'Upgrading')
    refused(s, cloud, controller)
    cut_off = s.machines.score()['pools']['chat']['interrupted']
    runs_dry(s, cloud)
    trouble.shrinks_by_old_reads(s, lambda: shrinks(s, cloud), controller)
    s.check('no request was cut off by what we did', s.machines.score()['pools']['chat']['interrupted'] == cut_off)
    s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    s.replay(controller)
    trouble.stands_by(s, cloud, 'standby')
    deallocates(s, cloud)
    few_writes(s, cloud, throttled)
    s.judge(account.LAWS)


if __name__ == '__main__':
    stage.main(aks, 'aks')
