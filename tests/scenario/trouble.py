"""What goes wrong with any cloud's account, and must hold all the same."""
import json
import time

import account
import process


def sizes(s):
    return sum(g['desired'] for g in s.machines.groups().values())


def decisions(controller):
    return [o['to'] for o, _ in controller.lines() if o and o.get('event') == 'decided']


def taken(s, cloud):
    """A spot machine that is needed gets its notice: its successor is asked for at once."""
    cloud.more(0, 1500)
    s.expect('all that was asked for serves', lambda: s.settled() and len(s.pods(account.APP)) == sizes(s)
             and len(s.running(cloud.spot)) >= 2)
    begun, before, had = time.time(), s.machines.calls()['purchases'], sizes(s)
    s.machines.fault('spot-loss', cloud.spot, value=1)
    s.evidence.setdefault('taken', []).append(begun)
    s.expect('an event tells the notice', lambda: s.told('SpotInterruption', since=begun))
    s.expect('its successor is bought, or fewer are needed', lambda: s.machines.calls()['purchases'] > before
             or decisions(s.controllers['preheat-a'])[-1] < had)


def falls_back(s, cloud, begun):
    """What spot has not is asked for on demand at once; there may be none left to be asked for."""
    s.expect('an event tells the stock-out', lambda: s.told('StockOut', cloud.spot_group, begun))
    s.expect('on-demand machines are asked for instead', lambda: s.group(cloud.on_demand)['desired'] >= 2)
    s.expect('an event tells that, too, or all are asked for', lambda: s.told('FellBack', cloud.on_demand, begun)
             or s.group(cloud.on_demand)['desired'] == cloud.limits()[cloud.on_demand]['max'])


def calm(s):
    """Nothing is on its way, and no size has changed for two minutes."""
    lately = [{name: g['desired'] for name, g in groups.items()} for at, groups in s.sampler.samples
              if at > time.time() - s.real(120)]
    return s.settled() and lately and all(sizes == lately[0] for sizes in lately)


def by_hand(s, cloud):
    """Somebody sets the size in the console. What we ask for in the same moment is absolute, and may swallow it."""
    begun, told = time.time(), None
    for _ in range(5):
        s.expect('nothing is on its way, and there is room', lambda: calm(s) and s.group(cloud.spot)['desired'] <= 8, 7200)
        cloud.add_by_hand(cloud.spot, 2)
        told = process.until(lambda: s.told('ForeignSizeChange', cloud.spot_group, begun), max(20.0, s.real(300)))
        if told:
            break
    s.check('an event tells that somebody else did it', told)


def too_many_calls(s, cloud, controller):
    since = len(controller.lines())
    s.machines.fault('throttle', cloud.spot, count=3)
    s.expect('throttled calls are told', lambda: any('"kind":"throttled"' in t for _, t in controller.lines()[since:]))
    s.machines.end_faults()


def lost_answer(s, cloud, controller):
    """The cloud does what it was asked, and nobody hears of it, nor do lists show it for a minute: nothing is bought twice."""
    cloud.quiet()
    most = sum(limits['max'] for limits in cloud.limits().values())
    s.expect('nothing is on its way, and there is room', lambda: s.settled() and sizes(s) + 2 <= most, 7200)
    before, begun, stood = s.machines.calls()['purchases'], time.time(), sizes(s)
    earlier = decisions(controller)
    lost = s.machines.fault('lost-answer', cloud.spot, count=1)
    s.machines.fault('late-list', value=60)
    cloud.more(2, 200)
    s.expect('machines come', lambda: s.machines.calls()['purchases'] > before)
    s.expect('an answer was lost', lambda: not [f for f in s.machines.faults() if f['id'] == lost['id'] and not f['used']])
    s.expect('and what it says is there', s.settled)
    # A machine holds one replica: whatever was bought, ended and bought again meanwhile, there were never more than decided.
    largest = max(sum(g['desired'] for g in groups.values()) for at, groups in s.sampler.samples if at >= begun)
    decided = max([stood] + earlier[-1:] + decisions(controller)[len(earlier):])
    s.check(f'at most {largest} machines were asked for, at most {decided} decided', largest <= decided)
    s.machines.end_faults()


def half_truths(s, cloud, controller):
    """Reads up to a minute old, in any order; requests that arrive twice; a yes that means nothing, or one machine less or more.
    There are never more machines than were decided and the cloud added, and nobody is blamed for what the cloud did."""
    cloud.quiet()
    most = sum(limits['max'] for limits in cloud.limits().values())
    s.expect('nothing is on its way, and there is room', lambda: s.settled() and sizes(s) + 5 <= most, 7200)
    begun, since, stood, earlier = time.time(), len(controller.lines()), sizes(s), decisions(controller)
    s.machines.fault('mixed-reads', value=60)
    twice = s.machines.fault('twice')
    no = s.machines.fault('no-effect', cloud.spot, count=1)
    cloud.more(2, 1500)
    s.expect('a growth was accepted, and nothing came of it', lambda: used(s, no))
    less = s.machines.fault('one-less', cloud.spot, count=1)
    s.expect('machines come all the same', lambda: sizes(s) > stood and s.settled())
    more = s.machines.fault('one-more', cloud.spot, count=1)
    cloud.more(2, 1500)
    spot = cloud.limits()[cloud.spot]
    s.expect('one more came than was asked for, or there is room for none',
             lambda: (used(s, more) and s.settled()) or s.group(cloud.spot)['desired'] >= spot['max'])
    s.evidence['added'] = {cloud.spot: used(s, more)}
    largest = max(sum(g['machines'] for g in groups.values()) for at, groups in s.sampler.samples if at >= begun)
    decided = max([stood] + earlier[-1:] + decisions(controller)[len(earlier):])
    s.check(f'there were at most {largest} machines, of which the cloud added {used(s, more)}, and {decided} were decided',
            largest <= decided + used(s, more))
    s.check('requests arrived twice', used(s, twice))
    said = [o['event'] for o, _ in controller.lines()[since:] if o]
    s.check('that somebody else changed the size is said of that one only',
            said.count('group-resized-by-others') <= used(s, more))
    s.check('and nobody is said to fight over it', 'group-contended' not in said)
    s.mark(f'of half truths {used(s, no)} did nothing, {used(s, less)} did one less')
    s.machines.end_faults()


def shrinks_by_old_reads(s, shrink, controller):
    """It goes by reads up to a minute old, in any order, and what it asks for arrives twice. Events may tell late of what was
    before: the log says when."""
    since, old, twice = len(controller.lines()), s.machines.fault('mixed-reads', value=60), s.machines.fault('twice')
    shrink()
    s.check('it went by old reads, and requests arrived twice', used(s, old) and used(s, twice))
    s.check('nobody is said to have changed the size, or to fight over it',
            not [o for o, _ in controller.lines()[since:]
                 if o and o.get('event') in ('group-resized-by-others', 'group-contended')])
    s.expect('no node is left cordoned', lambda: not cordoned(s))
    s.machines.end_faults()


def used(s, fault):
    return sum(f['used'] for f in s.machines.faults() if f['id'] == fault['id'])


def cordoned(s):
    """Nodes of machines that run and shall go on."""
    serving = {m.get('node') or m['id'] for g in s.machines.groups().values() for m in g['machines'] if m['state'] == 'running'}
    return [name for name, n in s.watches['Node'].snapshot().items() if n['cordoned'] and name in serving]


def killed(s, cloud, controller, room):
    """kill -9 while machines are on their way: the next one finds them, and what succeeded in between. Where the cloud tries
    again by itself what it could not have, that happens meanwhile, too: it says late that it had none, so that nobody gives up
    before the kill."""
    cloud.quiet()
    s.expect('there is room for more', lambda: s.settled() and s.group(cloud.spot)['desired'] <= room)
    out = s.machines.fault('stock-out', cloud.spot, value=600) if cloud.tries_again else None
    before, asked = s.group(cloud.spot)['desired'], time.time()
    cloud.more(3, 900)
    s.expect('more is asked for', lambda: s.group(cloud.spot)['desired'] > before)
    controller.kill()
    s.mark('the controller is killed while machines are on their way')
    if out:
        s.machines.end_faults(out['id'])
    s.expect('they come with nobody there', lambda: s.group(cloud.spot)['desired'] > before and s.settled())
    group = s.group(cloud.spot)
    came = [m['id'] for m in group['machines'] if m['state'] == 'running' and m['launched_at'] / 1000 > asked]
    s.check(f'{len(came)} came late', came)
    if not came:
        s.mark(f'there were {before}, asked at {asked:.3f}; now {json.dumps(group)}')
    controller.start()
    s.expect('it is ready again', lambda: controller.page('/readyz')[0] == 200)
    s.expect('replicas serve on all that is there', lambda: len(s.pods(account.APP)) >= len(s.running(cloud.spot)) > 0)
    s.check('what came late was adopted, not ended', set(came) <= {m['id'] for m in s.running(cloud.spot)})
    s.check('and is not called the work of others', not s.told('ForeignSizeChange', since=asked))


def revoked(s, cloud):
    """We may do nothing for a while."""
    begun = time.time()
    fault = s.machines.fault('auth', cloud.spot)
    s.expect('an event names the group and why', lambda: s.told('ProviderFails', cloud.spot_group, begun))
    s.mark('it says: ' + (s.told('ProviderFails', cloud.spot_group, begun) or [{'note': ''}])[0]['note'])
    s.machines.end_faults(fault['id'])
    ended = time.time()
    s.expect('it comes back', lambda: [x for x in cloud.exchanges(ended) if cloud.spot in json.dumps(x) and x['status'] == 200])


BURSTS = 6  # at most: a rule has to prove that standby pays before it is the one in force


def stops(controller):
    return [o for o, _ in controller.lines() if o and o.get('event') == 'provider-asked' and o.get('verb') == 'stop']


def burst(s, cloud, controller):
    """Traffic that comes and goes; whether machines were stopped after it."""
    cloud.more(3, 400)
    s.expect('machines on demand serve', lambda: s.settled() and len(s.running(cloud.on_demand)) >= 3)
    s.expect('after the traffic they go', lambda: stops(controller) or (
        s.machines.score()['pools']['chat']['running'] == 0 and s.settled() and sizes(s) <= 2), 7200)
    return stops(controller)


def standing(s, cloud):
    return [m['id'] for m in s.group(cloud.on_demand)['machines'] if m['state'] == 'stopped']


def waits(is_so, seconds):
    """Seconds of ours; it need not come."""
    end = time.time() + seconds
    while time.time() < end and not is_so():
        time.sleep(0.5)
    return is_so()


def stands_by(s, cloud, name):
    """A tier that is as fast here as in its manifest: what is not needed any more is stopped, not ended, and the next
    traffic wakes it. Spot machines have run out, so that all of it happens to the group that has standby."""
    begun = time.time()
    manifest = cloud.manifest(f'{name}.yaml', ((cloud.standby_lead, 'p50: 30s, p95: 45s'),))
    controller = s.controller(name, '-f', manifest, '--no-election', '--namespace', account.SPACE, account='preheat-a')
    controller.environment.update(cloud.environment())
    out = s.machines.fault('stock-out', cloud.spot)
    controller.start()
    # Where a cloud stops the highest machine only, those that budgets let go first may all have been lower, and ended.
    for _ in range(BURSTS):
        if burst(s, cloud, controller) and waits(lambda: s.settled() and standing(s, cloud), 20):
            break
    s.check('the policy has some stopped, that are not needed any more', stops(controller))
    stopped = s.expect('and they stand by', lambda: s.settled() and standing(s, cloud), 7200)
    cloud.more(4, 400)
    s.expect('it is woken, and runs', lambda: [m for m in s.running(cloud.on_demand) if m['id'] in (stopped or [])], 7200)
    s.check('neither is called the work of others', not s.told('ForeignSizeChange', since=begun))
    s.machines.end_faults(out['id'])
    cloud.quiet()
    s.expect('the traffic is over', lambda: s.machines.score()['pools']['chat']['running'] == 0, 3600)
    s.expect('all is calm', s.settled, 3600)
    s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    s.replay(controller)
