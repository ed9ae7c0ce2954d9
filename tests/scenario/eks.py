#!/usr/bin/env python3
"""A pool on EKS: a spot and an on-demand node group behind AWS's own protocols, and what happens to such groups."""
import time

import account
import stage


def calls(s, action, since=0.0):
    """What AWS was asked and did not refuse."""
    return [c for c in s.machines.calls()['calls'] if c['path'].endswith(':' + action) and c['at'] / 1000 >= since
            and c['status'] in (0, 200)]


def machines(s, group, *states):
    return [m['id'] for m in s.group(group)['machines'] if m['state'] in states]


def wrong_starts(s, cloud):
    """Each says what is wrong, where, and goes on."""
    spot = 'nodegroup: g5-spot, region: eu-west-1, clusterAutoscalerTags: ignore'
    nobody = {k: v for k, v in cloud.environment().items() if k not in ('AWS_ROLE_ARN', 'AWS_WEB_IDENTITY_TOKEN_FILE')}
    cloud.refuses([
        ('no credentials at all', ('g5-spot', 'credentials'), (), nobody),
        ('another region than the account has', ('g5-spot', 'eu-west-2'), ((spot, spot.replace('west-1', 'west-2')),), None),
        ('a node group that is not there', ('g5-none', 'not found'), ((spot, spot.replace('g5-spot', 'g5-none')),), None),
        ("Cluster Autoscaler's tags", ('g5-spot', 'clusterAutoscalerTags'),
         ((spot, spot.replace(', clusterAutoscalerTags: ignore', '')),), None)])


def grows(s):
    """Traffic comes: spot machines are bought for it. One zone that has none is AWS's own to go round."""
    s.expect('a replica serves on the on-demand machine that was there', lambda: len(s.pods(account.APP)) >= 1)
    out = s.machines.fault('stock-out', 'g5-spot', zone='eu-west-1a')
    s.machines.traffic('chat', 2.0, 900)
    s.expect('spot machines are bought', lambda: s.group('g5-spot')['desired'] >= 2)
    s.expect('they run in the zone that has some', lambda: len(s.running('g5-spot')) >= 2 and all(
        m['zone'] == 'eu-west-1b' for m in s.running('g5-spot')))
    s.machines.end_faults(out['id'])


def runs_dry(s):
    """Both zones have none: on-demand machines come instead, at once; the launches that failed are given up."""
    begun = time.time()
    out = s.machines.fault('stock-out', 'g5-spot')
    s.machines.traffic('chat', 1.5, 600)
    s.expect('an event tells the stock-out', lambda: s.told('StockOut', 'g5-spot', begun))
    s.expect('on-demand machines are asked for instead', lambda: s.group('g5-od')['desired'] >= 2)
    s.expect('an event tells that, too', lambda: s.told('FellBack', 'g5-od', begun))
    s.expect('what cannot come is given up', lambda: s.group('g5-spot')['desired'] == len(s.running('g5-spot')))
    s.machines.end_faults(out['id'])
    s.machines.traffic('chat', 1.5, 600)
    s.expect('the spot group is asked again, and has machines',
             lambda: len([m for m in s.group('g5-spot')['machines'] if m['launched_at'] / 1000 > begun]) > 0)


def bad_account(s):
    """Too many calls for the account, and an answer that is lost: bought once."""
    begun = time.time()
    s.machines.fault('throttle', 'g5-spot', count=3)
    s.expect('throttled calls are told', lambda: any('throttled' in t for _, t in s.controllers['preheat-a'].lines()[-200:]))
    s.machines.end_faults()


def taken(s):
    """A spot machine gets its notice: its successor is asked for at once."""
    s.expect('nothing is on its way', lambda: s.group('g5-spot')['desired'] == len(s.running('g5-spot')) >= 2)
    begun, before = time.time(), s.machines.calls()['purchases']
    s.machines.fault('spot-loss', 'g5-spot', value=1)
    s.evidence.setdefault('taken', []).append(begun)
    s.expect('an event tells the notice', lambda: s.told('SpotInterruption', since=begun))
    s.expect('its successor is bought', lambda: s.machines.calls()['purchases'] > before)


def by_hand(s):
    """Somebody sets the size in the console."""
    begun, was = time.time(), s.group('g5-spot')['desired']
    s.machines.ask('/v1/groups/g5-spot/grow', {'token': 'by-hand', 'desired': was + 1})
    s.expect('an event tells that somebody else did it', lambda: s.told('ForeignSizeChange', 'g5-spot', begun))


def killed(s, controller):
    """kill -9 while machines are on their way: the next one finds them, and what succeeded in between."""
    before = s.group('g5-od')['desired'] + s.group('g5-spot')['desired']
    out = s.machines.fault('stock-out', 'g5-spot')
    asked = time.time()
    s.machines.traffic('chat', 2.5, 300)
    s.expect('more is asked for', lambda: s.group('g5-od')['desired'] + s.group('g5-spot')['desired'] > before)
    controller.kill()
    s.machines.end_faults(out['id'])
    s.mark('the controller is killed, and AWS has machines again')
    s.pass_time(60)
    controller.start()
    s.expect('it is ready again', lambda: controller.page('/readyz')[0] == 200)
    s.check('nothing is called the work of others', not s.told('ForeignSizeChange', since=asked))


def revoked(s, cloud):
    """The role may not be taken for a while."""
    begun = time.time()
    cloud.token(account.Eks.TOKEN + '.expired')
    s.expect('an event names the group and why', lambda: s.told('ProviderFails', 'g5-', begun))
    s.mark('it says: ' + s.told('ProviderFails', 'g5-', begun)[0]['note'][:300])
    cloud.token()
    ended = time.time()
    s.expect('it comes back', lambda: calls(s, 'DescribeAutoScalingGroups', ended))


def shrinks(s):
    """No traffic: nodes are emptied and go, on-demand ones to the warm pool first."""
    s.expect('the traffic is over', lambda: s.machines.score()['pools']['chat']['running'] == 0, 3600)
    s.expect('an on-demand machine is stopped', lambda: machines(s, 'g5-od', 'stopped'), 3600)
    s.expect('spot machines go', lambda: s.group('g5-spot')['desired'] + s.group('g5-od')['desired'] <= 2, 3600)


def wakes(s):
    """Traffic comes again, and spot machines are not to be had: the stopped machine is the first."""
    stopped = machines(s, 'g5-od', 'stopped')
    out = s.machines.fault('stock-out', 'g5-spot')
    s.machines.traffic('chat', 4.0, 240)
    s.expect('a stopped machine is woken', lambda: set(stopped) & set(machines(s, 'g5-od', 'running', 'waking')))
    s.machines.end_faults(out['id'])


def eks(s):
    cloud = account.Eks(s)
    cloud.open()
    s.accounts('preheat-a')
    wrong_starts(s, cloud)
    controller = s.controller('preheat-a', '--pool', cloud.manifest(), '--no-election', '--namespace', stage.SPACE)
    controller.environment.update(cloud.environment())
    controller.start()
    grows(s)
    runs_dry(s)
    bad_account(s)
    taken(s)
    by_hand(s)
    killed(s, controller)
    revoked(s, cloud)
    shrinks(s)
    wakes(s)
    s.check(f"no request was cut off ({s.machines.score()['pools']['chat']['interrupted']})",
            s.machines.score()['pools']['chat']['interrupted'] == 0)
    s.check('credentials were renewed', len([x for x in cloud.exchanges() if 'AssumeRoleWithWebIdentity' in x['body']]) > 2)
    s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    s.replay(controller)
    s.judge(account.LAWS)


if __name__ == '__main__':
    stage.main(eks, 'eks')
