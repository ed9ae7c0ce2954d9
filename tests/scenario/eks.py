#!/usr/bin/env python3
"""A pool on EKS: a spot and an on-demand node group behind AWS's own protocols, and what happens to such groups."""
import time

import account
import stage


def machines(s, group, *states):
    return [m['id'] for m in s.group(group)['machines'] if m['state'] in states]


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


def grows(s):
    """Traffic comes: spot machines are bought for it. One zone that has none is AWS's own to go round."""
    s.expect('a replica serves on the on-demand machine that was there', lambda: len(s.pods(account.APP)) >= 1)
    out = s.machines.fault('stock-out', 'g5-spot', zone='eu-west-1a')
    s.machines.traffic('chat', 2.0, 1800)
    s.expect('spot machines are bought', lambda: s.group('g5-spot')['desired'] >= 2)
    s.expect('they run in the zone that has some', lambda: len(s.running('g5-spot')) >= 2 and all(
        m['zone'] == 'eu-west-1b' for m in s.running('g5-spot')))
    s.machines.end_faults(out['id'])


def runs_dry(s, cloud):
    """Both zones have none: on-demand machines come instead, at once; the launches that failed are given up."""
    begun = time.time()
    out = s.machines.fault('stock-out', 'g5-spot')
    cloud.more(3)
    s.expect('an event tells the stock-out', lambda: s.told('StockOut', 'g5-spot', begun))
    s.expect('on-demand machines are asked for instead', lambda: s.group('g5-od')['desired'] >= 2)
    s.expect('an event tells that, too', lambda: s.told('FellBack', 'g5-od', begun))
    s.expect('what cannot come is given up', lambda: s.group('g5-spot')['desired'] == len(s.running('g5-spot')))
    s.machines.end_faults(out['id'])
    ended = time.time()
    cloud.more(4)
    s.expect('the spot group is asked again once its back-off is over, and has machines',
             lambda: [m for m in s.group('g5-spot')['machines'] if m['launched_at'] / 1000 > ended])


def bad_account(s):
    """Too many calls for the account, and credentials that AWS calls expired: both pass."""
    controller = s.controllers['preheat-a']
    s.machines.fault('throttle', 'g5-spot', count=3)
    s.expect('throttled calls are told', lambda: any('"kind":"throttled"' in t for _, t in controller.lines()[-200:]))
    s.machines.fault('expired', 'g5-spot', count=1)
    s.pass_time(60)
    s.machines.end_faults()


def lost_answer(s, controller):
    """AWS does what it was asked, and nobody hears of it: the size is absolute, and nothing is bought twice."""
    s.expect('nothing is on its way', lambda: settled(s))
    before, begun, stood = s.machines.calls()['purchases'], time.time(), sizes(s)
    earlier = decisions(controller)
    lost = s.machines.fault('lost-answer', 'g5-spot', count=1)
    s.machines.traffic('chat', 4, 200)
    s.expect('machines come', lambda: s.machines.calls()['purchases'] > before)
    s.expect('an answer was lost', lambda: not [f for f in s.machines.faults() if f['id'] == lost['id'] and not f['used']])
    s.expect('and what it says is there', lambda: settled(s))
    # A machine holds one replica: whatever was bought, ended and bought again meanwhile, there were never more than decided.
    largest = max(sum(g['desired'] for g in groups.values()) for at, groups in s.sampler.samples if at >= begun)
    decided = max([stood] + earlier[-1:] + decisions(controller)[len(earlier):])
    s.check(f'at most {largest} machines were asked for, at most {decided} decided', largest <= decided)
    s.machines.end_faults()


def decisions(controller):
    return [o['to'] for o, _ in controller.lines() if o and o.get('event') == 'decided']


def sizes(s):
    return sum(g['desired'] for g in s.machines.groups().values())


def settled(s):
    """Each group runs what was asked of it."""
    return all(g['desired'] == len([m for m in g['machines'] if m['state'] == 'running'])
               and all(m['state'] in ('running', 'stopped') for m in g['machines']) for g in s.machines.groups().values())


def taken(s):
    """A spot machine gets its notice: its successor is asked for at once."""
    s.expect('all that was asked for serves', lambda: settled(s) and len(s.pods(account.APP)) == sizes(s)
             and len(s.running('g5-spot')) >= 2)
    begun, before = time.time(), s.machines.calls()['purchases']
    s.machines.fault('spot-loss', 'g5-spot', value=1)
    s.evidence.setdefault('taken', []).append(begun)
    s.expect('an event tells the notice', lambda: s.told('SpotInterruption', since=begun))
    s.expect('its successor is bought', lambda: s.machines.calls()['purchases'] > before)


def by_hand(s):
    """Somebody sets the size in the console."""
    s.expect('nothing is on its way, and there is room', lambda: settled(s) and s.group('g5-spot')['desired'] <= 8)
    begun, was = time.time(), s.group('g5-spot')['desired']
    s.machines.ask('/v1/groups/g5-spot/grow', {'token': 'by-hand', 'desired': was + 2})
    s.expect('an event tells that somebody else did it', lambda: s.told('ForeignSizeChange', 'g5-spot', begun))


def killed(s, controller):
    """kill -9 while machines are on their way: the next one finds them, and what succeeded in between."""
    s.expect('there is room for more', lambda: settled(s) and s.group('g5-spot')['desired'] <= 6)
    out = s.machines.fault('stock-out', 'g5-spot')
    before, asked = s.group('g5-spot')['desired'], time.time()
    s.machines.traffic('chat', 12, 200)
    s.expect('more is asked for', lambda: s.group('g5-spot')['desired'] > before)
    controller.kill()
    s.machines.end_faults(out['id'])
    s.mark('the controller is killed while AWS looks for machines, and AWS has some again')
    s.expect('the launches succeed with nobody there', lambda: s.group('g5-spot')['desired'] > before and settled(s))
    came = [m['id'] for m in s.running('g5-spot') if m['launched_at'] / 1000 > asked]
    s.check(f'{len(came)} came late', came)
    controller.start()
    s.expect('it is ready again', lambda: controller.page('/readyz')[0] == 200)
    s.expect('replicas serve on all that is there', lambda: len(s.pods(account.APP)) >= len(s.running('g5-spot')) > 0)
    s.check('what came late was adopted, not ended', set(came) <= set(machines(s, 'g5-spot', 'running')))
    s.check('and is not called the work of others', not s.told('ForeignSizeChange', since=asked))


def revoked(s, cloud):
    """The role may do nothing for a while."""
    begun = time.time()
    fault = s.machines.fault('auth', 'g5-spot')
    s.expect('an event names the group and why', lambda: s.told('ProviderFails', 'g5-spot', begun))
    s.mark('it says: ' + (s.told('ProviderFails', 'g5-spot', begun) or [{'note': ''}])[0]['note'])
    s.machines.end_faults(fault['id'])
    ended = time.time()
    s.expect('it comes back', lambda: [x for x in cloud.exchanges(ended) if 'g5-spot' in x['body'] and x['status'] == 200])


def shrinks(s):
    """No traffic: nodes are emptied and go."""
    s.expect('the traffic is over', lambda: s.machines.score()['pools']['chat']['running'] == 0, 3600)
    s.expect('machines go', lambda: s.group('g5-spot')['desired'] + s.group('g5-od')['desired'] <= 2 and settled(s), 3600)


def eks(s):
    cloud = account.Eks(s)
    cloud.open()
    s.accounts('preheat-a')
    wrong_starts(s, cloud)
    controller = s.controller('preheat-a', '--pool', cloud.manifest(), '--no-election', '--namespace', stage.SPACE)
    controller.environment.update(cloud.environment())
    controller.start()
    grows(s)
    taken(s)
    runs_dry(s, cloud)
    bad_account(s)
    by_hand(s)
    cut_off = s.machines.score()['pools']['chat']['interrupted']
    s.mark(f'{cut_off} requests ended with the spot machine that AWS took')
    lost_answer(s, controller)
    killed(s, controller)
    revoked(s, cloud)
    shrinks(s)
    cloud.stands_by('g5-od', controller)
    s.check('no request was cut off by what we did', s.machines.score()['pools']['chat']['interrupted'] == cut_off)
    s.check('credentials were renewed', len([x for x in cloud.exchanges() if 'AssumeRoleWithWebIdentity' in x['body']]) >= 2)
    s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    s.replay(controller)
    s.judge(account.LAWS)


if __name__ == '__main__':
    stage.main(eks, 'eks')
