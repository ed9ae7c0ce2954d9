#!/usr/bin/env python3
"""A pool on EKS: a spot and an on-demand node group behind AWS's own protocols, and what happens to such groups."""
import re
import time

import account
import process
import stage
import trouble


CHANGES = 'Action=(SetDesiredCapacity|TerminateInstanceInAutoScalingGroup|LaunchInstances|PutWarmPool|SetInstanceProtection)'


def wrong_starts(s, cloud):
    """Each says what is wrong, where, and goes on."""
    spot = 'nodegroup: g5-spot, region: eu-west-1, clusterAutoscalerTags: ignore'
    nobody = {k: v for k, v in cloud.environment().items() if k not in ('AWS_ROLE_ARN', 'AWS_WEB_IDENTITY_TOKEN_FILE')}
    cloud.refuses([
        ('no credentials at all', ('g5-spot', 'credentials'), (), nobody),
        ('another region than the account has', ('g5-spot', 'eu-west-2'), ((spot, spot.replace('west-1', 'west-2')),), None),
        ('a node group that is not there', ('g5-spot', 'g5-none'), ((spot, spot.replace('g5-spot', 'g5-none')),), None),
        ("Cluster Autoscaler's tags", ('g5-spot', 'clusterAutoscalerTags'),
         ((spot, spot.replace(', clusterAutoscalerTags: ignore', '')),), None)])


def grows(s, cloud):
    """Traffic comes: spot machines are bought for it. One zone that has none is AWS's own to go round, and to balance later."""
    s.expect('a replica serves on the on-demand machine that was there', lambda: len(s.pods(account.APP)) >= 1)
    out = s.machines.fault('stock-out', 'g5-spot', zone='eu-west-1a')
    cloud.traffic(2.0, 3600)
    s.expect('spot machines are bought', lambda: s.group('g5-spot')['desired'] >= 2)
    s.expect('they run in the zone that has some', lambda: len(s.running('g5-spot')) >= 2 and all(
        m['zone'] == 'eu-west-1b' for m in s.running('g5-spot')))
    s.expect('that is all for now', lambda: trouble.calm(s))
    s.machines.end_faults(out['id'])
    balanced(s, cloud)


def balanced(s, cloud):
    """Zones are uneven: Auto Scaling launches in the empty one before it ends one of the other that somebody's console has left
    unprotected. Both are let."""
    began, old = time.time(), {m['id'] for m in s.running('g5-spot')}

    def ended():
        """By Auto Scaling: not by us."""
        ours = ' '.join(x['body'] for x in cloud.exchanges(began) if 'Action=TerminateInstance' in x['body'])
        return [i for i in old - {m['id'] for m in s.group('g5-spot')['machines']} if i not in ours]

    s.machines.fault('az-rebalance', 'g5-spot')
    s.pass_time(120)
    s.check('none is ended while all are protected', not ended())
    for _ in range(3):  # who looks in between protects it first
        s.machines.fault('unprotected', 'g5-spot')
        if process.until(ended, max(20.0, s.real(300))):
            break
    gone, came = ended(), [m['id'] for m in s.running('g5-spot') if m['zone'] == 'eu-west-1a']
    s.check(f'{gone} of the full zone ended, {came} of the empty one runs', gone and came)
    s.machines.end_faults()
    s.expect('what came is protected as all are', lambda: any('Action=SetInstanceProtection' in x['body'] and any(
        i in x['body'] for i in came) for x in cloud.exchanges(began)))
    s.check('nobody is said to have changed the size, or to fight over it', not s.told('ForeignSizeChange|NodeGroupContended', since=began))


def runs_dry(s, cloud):
    """Both zones have none: on-demand machines come instead, at once; the launches that failed are given up."""
    begun = time.time()
    out = s.machines.fault('stock-out', 'g5-spot')
    cloud.more(3)
    trouble.falls_back(s, cloud, begun)
    s.expect('what cannot come is given up', lambda: s.group('g5-spot')['desired'] == len(s.running('g5-spot')))
    s.machines.end_faults(out['id'])
    ended = time.time()
    cloud.more(4)
    s.expect('the spot group is asked again once its back-off is over, and has machines',
             lambda: [m for m in s.group('g5-spot')['machines'] if m['launched_at'] / 1000 > ended])


def expired(s):
    """Credentials that AWS calls expired are fetched anew."""
    s.machines.fault('expired', 'g5-spot', count=1)
    s.pass_time(60)
    s.machines.end_faults()


def replaced(s):
    """A machine whose check fails, and one that EC2 will want back: each is the owner's to replace, and no size is ours to set."""
    s.expect('spot machines serve', lambda: s.settled() and len(s.running('g5-spot')) >= 2)
    for act in ('health-check', 'capacity-rebalance'):
        begun, before = time.time(), {m['id'] for m in s.running('g5-spot')}
        s.machines.fault(act, 'g5-spot')
        s.expect(f'{act}: one is gone, another came', lambda before=before: s.settled() and
                 before - {m['id'] for m in s.group('g5-spot')['machines']})
        s.check(f'{act}: nobody is said to fight over it', not s.told('NodeGroupContended', since=begun))


def updated(s, cloud, controller):
    """EKS updates the node group: four machines more, the old ones cordoned, emptied and ended one by one. Nothing is undone."""
    cloud.traffic(3 * account.A_REPLICA, 1500)
    s.expect('spot machines serve', lambda: s.settled() and 2 <= len(s.running('g5-spot')) <= 8 and
             len(s.pods(account.APP)) >= len(s.running('g5-spot')), 7200)
    begun, old = time.time(), {m['id'] for m in s.running('g5-spot')}
    s.machines.fault('nodegroup-update', 'g5-spot')
    s.expect('an event names the update', lambda: s.told('NodeGroupBusy', 'list-updates', begun))
    told = time.time()
    s.expect('the surge runs', lambda: len({m['id'] for m in s.running('g5-spot')} - old) >= 4)
    surge = {m['id'] for m in s.running('g5-spot')} - old
    s.expect('all of the old are replaced', lambda: not old & {m['id'] for m in s.group('g5-spot')['machines']}, 7200)
    s.expect('the sizes fall back', lambda: len(s.group('g5-spot')['machines']) <= len(old), 7200)
    s.expect('that it is over is noticed', lambda: controller.metric(
        'preheat_pool_problem', pool='chat', problem='group-busy') == 0, 7200)
    over = min(x['at'] / 1000 for x in cloud.exchanges(told) if 'node-groups/g5-spot' in x['url'] and '"ACTIVE"' in x['response'])
    # A machine is protected at its first look, which may come before the update is known.
    ours = [x['body'] for x in cloud.exchanges(begun) if x['at'] / 1000 < over and re.match(CHANGES, x['body'])
            and ((any(i in x['body'] for i in surge) and 'Action=SetInstanceProtection' not in x['body']) or (x['at'] / 1000 > told and any(
                name in x['body'] for name in ('eks-g5-spot', *old))))]
    s.check(f'we changed nothing of it meanwhile, and ended none of the surge: {ours}', not ours)


def refreshed(s, cloud, controller):
    """An instance refresh waits for what we protect; it passes once the pool is paused, and what it left is ours again."""
    cloud.more(0, 900)
    s.expect('it is calm', lambda: trouble.calm(s), 3600)
    begun, old = time.time(), {m['id'] for m in s.group('g5-od')['machines']}
    s.machines.fault('instance-refresh', 'g5-od')
    s.pass_time(240)
    left = old & {m['id'] for m in s.group('g5-od')['machines']}
    s.check('it waits for protected machines', left)
    s.check('the controller ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    cloud.manifest(edits=(('  mode: act\n', '  mode: paused\n'),))
    controller.start()
    s.expect('once the pool is paused all are replaced', lambda: not left & {m['id'] for m in s.group('g5-od')['machines']}
             and len(s.running('g5-od')) >= s.group('g5-od')['desired'] > 0, 3600)
    s.check('and it ends, too', controller.stop(30) == 0)
    cloud.manifest()
    controller.start()
    s.expect('it is ready again', lambda: controller.page('/readyz')[0] == 200)
    s.expect('replicas serve on what is there', lambda: s.settled() and len(s.pods(account.APP)) >= len(s.running('g5-od')), 3600)
    s.check('nobody is said to fight over it', not s.told('NodeGroupContended', since=begun))


def serves_held(s, cloud):
    """Nodes of machines that AWS shows in Pending:Wait, on which replicas serve."""
    told = [x['response'] for x in cloud.exchanges() if 'Action=DescribeAutoScalingGroups' in x['body'] and 'g5-spot' in x['response']]
    ids = re.findall(r'<InstanceId>([^<]*)</InstanceId><InstanceType>[^<]*</InstanceType><AvailabilityZone>[^<]*</AvailabilityZone>'
                     r'<LifecycleState>Pending:Wait<', told[-1]) if told else []
    nodes = {n['metadata']['name'] for n in s.kube.get('/api/v1/nodes')['items'] if n['spec'].get('providerID', '').endswith(tuple(ids))}
    return nodes & {p['node'] for _, p in s.pods(account.APP)} if ids else set()


def held(s, cloud):
    """A launch hook of somebody's holds what boots: it serves all the same."""
    cloud.quiet()
    s.expect('it is calm, and there is room', lambda: s.settled() and s.group('g5-spot')['desired'] <= 8, 7200)
    s.machines.fault('launch-hook', 'g5-spot', value=2400)
    cloud.more(2, 600)
    s.expect('replicas serve on machines in Pending:Wait', lambda: serves_held(s, cloud))
    s.machines.end_faults()


def kept(s, cloud):
    """A hook holds a machine that fails its check for half an hour, as on EKS: what serves there goes once others do, before that."""
    cloud.more(0, 1500)
    s.expect('spot machines serve', lambda: s.settled() and len(s.running('g5-spot')) >= 2
             and len(s.pods(account.APP)) >= len(s.running('g5-spot')))
    begun, cut_off = time.time(), s.machines.score()['pools']['chat']['interrupted']
    hook = s.machines.fault('terminate-hook', 'g5-spot', value=1800)
    s.machines.fault('health-check', 'g5-spot')
    ends = s.expect('one is held at its end', lambda: next(
        (m['id'] for m in s.group('g5-spot')['machines'] if m['state'] == 'terminating'), None))
    s.expect('an event tells it', lambda: s.told('MachineTerminating', since=begun))
    node = next((n['metadata']['name'] for n in s.kube.items('Node') if n['spec']['providerID'].endswith(f'/{ends}')), None)
    s.expect('what served there went', lambda: not [p for _, p in s.pods(account.APP, False) if p['node'] == node])
    s.check('and the machine ran on until then', node and ends in [m['id'] for m in s.group('g5-spot')['machines']])
    s.machines.end_faults(hook['id'])
    s.check('no request was cut off by that', s.machines.score()['pools']['chat']['interrupted'] == cut_off)
    s.expect('it ends', s.settled)
    s.check('nobody is said to fight over it', not s.told('NodeGroupContended', since=begun))


def switched_off(s, cloud, controller):
    """A schedule sets the size to 0, as before the end of a Capacity Block: it stays so, whatever is wanted, until its next action.
    A request of ours that is under way in that moment swallows it."""
    begun = time.time()
    cloud.more(1, 1500)
    for _ in range(3):
        s.expect('machines serve, and nothing is on its way', lambda: trouble.calm(s) and s.running('g5-spot'), 7200)
        s.machines.fault('scheduled-action', 'g5-spot')
        if process.until(lambda: s.told('NodeGroupBusy', 'schedule', begun), max(20.0, s.real(300))):
            break
    s.check('an event tells that a schedule emptied it', s.told('NodeGroupBusy', 'schedule', begun))
    s.expect('its machines go', lambda: not s.group('g5-spot')['machines'])
    had = s.group('g5-od')['desired']
    cloud.more(2, 900)
    s.expect('on-demand machines come instead', lambda: len(s.running('g5-od')) > had or had == cloud.limits()['g5-od']['max'])
    s.pass_time(900)
    s.check("the schedule's 0 stays", s.group('g5-spot')['desired'] == 0)
    s.check('and is still told', controller.metric('preheat_pool_problem', pool='chat', problem='group-busy') == 1)
    s.machines.fault('scheduled-action', 'g5-spot', value=2)
    s.expect('its next action raises it, and they serve', lambda: len(s.running('g5-spot')) >= 2 and s.settled())
    s.expect('that it is over is noticed', lambda: controller.metric(
        'preheat_pool_problem', pool='chat', problem='group-busy') == 0, 7200)
    s.check('nobody is said to fight over it', not s.told('NodeGroupContended', since=begun))


def asked_for(lines, group, size):
    """Machines by which the group of that size was to grow, all growths together."""
    asked = 0
    for o, _ in lines:
        if o and o.get('event') == 'provider-asked' and o['group'] == group and o['verb'] in ('grow', 'cancel', 'remove'):
            asked += max(0, o['desired'] - size)
            size = o['desired']
    return asked


def abandoned(s, cloud, controller):
    """The hook says no to each: Auto Scaling launches the next, without end. What is missing is had elsewhere."""
    begun, since, bought = time.time(), len(controller.lines()), s.machines.calls()['by_group']['g5-spot']
    size = s.group('g5-spot')['desired']
    s.machines.fault('launch-hook', 'g5-spot', value=20)
    s.machines.fault('hook-abandons', 'g5-spot')
    cloud.traffic(1.5 * account.A_REPLICA, 600)
    s.expect('it is told why', lambda: any(o and o.get('event') == 'launch-ended' for o, _ in controller.lines()[since:]))
    s.expect('on-demand machines come', lambda: len(s.running('g5-od')) >= 2)
    s.pass_time(600)
    more = s.machines.calls()['by_group']['g5-spot'] - bought
    asked = asked_for(controller.lines()[since:], 'g5-spot', size)
    s.check(f'{more} spot machines were launched for nothing, for {asked} that were asked for', 1 <= more <= 4 * asked)  # without a call-off 30
    s.check('nobody is said to fight over it', not s.told('NodeGroupContended', since=begun))
    s.machines.end_faults()


def shrinks(s, cloud):
    """No traffic: nodes are emptied and go."""
    cloud.quiet()
    s.expect('the traffic is over', lambda: s.machines.score()['pools']['chat']['running'] == 0, 3600)
    s.expect('machines go', lambda: s.group('g5-spot')['desired'] + s.group('g5-od')['desired'] <= 2 and s.settled(), 3600)


def eks(s):
    cloud = account.Eks(s)
    cloud.open()
    s.accounts('preheat-a')
    wrong_starts(s, cloud)
    controller = s.controller('preheat-a', '-f', cloud.manifest(), '--no-election', '--namespace', stage.SPACE)
    controller.environment.update(cloud.environment())
    controller.start()
    grows(s, cloud)
    trouble.taken(s, cloud)
    runs_dry(s, cloud)
    trouble.too_many_calls(s, cloud, controller)
    expired(s)
    trouble.by_hand(s, cloud)
    cut_off = s.machines.score()['pools']['chat']['interrupted']
    s.mark(f'{cut_off} requests ended with the spot machine that AWS took')
    trouble.lost_answer(s, cloud, controller)
    trouble.half_truths(s, cloud, controller)
    trouble.killed(s, cloud, controller, 6)
    trouble.revoked(s, cloud)
    updated(s, cloud, controller)
    replaced(s)
    refreshed(s, cloud, controller)
    held(s, cloud)
    kept(s, cloud)
    switched_off(s, cloud, controller)
    cut_off = s.machines.score()['pools']['chat']['interrupted']
    trouble.shrinks_by_old_reads(s, lambda: shrinks(s, cloud), controller)
    s.check('no request was cut off by what we did', s.machines.score()['pools']['chat']['interrupted'] == cut_off)
    abandoned(s, cloud, controller)
    s.check('credentials were renewed', len([x for x in cloud.exchanges() if 'AssumeRoleWithWebIdentity' in x['body']]) >= 2)
    s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    s.replay(controller)
    trouble.stands_by(s, cloud, 'standby')
    s.check('it is told that its images lie on an instance store, which a stop empties',
            s.told('AbilityMissing', 'localStorage.strategy RAID0'))
    s.judge(account.LAWS)


if __name__ == '__main__':
    stage.main(eks, 'eks')
