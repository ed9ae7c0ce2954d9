#!/usr/bin/env python3
"""A morning on the rig: three pools, 60 machines, two replicas of the controller, and all that can go wrong before noon."""
import json
import os
import signal
import time

import kube
import process
import stage
import world

RECORDED = os.path.join(stage.ROOT, '..', 'shared', 'traces', 'servegen_large_d1.3-5.7.bins.csv.gz')


def open_morning(s, w):
    """Traffic, machines, what a team has in its cluster, and two replicas of which one leads."""
    w.trace = traffic(s)
    manifest = s.open_world(w)
    s.accounts('preheat-a', 'preheat-b')
    s.evidence['lease'] = stage.LEASE
    replicas = [s.controller(name, '--pool', manifest, '--lease', stage.LEASE, '--namespace', stage.SPACE,
                             '--identity', name) for name in ('preheat-a', 'preheat-b')]
    replicas[0].start()
    s.expect('the first replica leads', lambda: s.leader() == 'preheat-a', 20)
    replicas[1].start()
    s.expect('chat serves', lambda: s.pods('chat'), 60)
    s.expect('embed has its smallest node, and serves on it', lambda: len(s.pods('embed')) >= 1, 60)
    s.expect('both replicas are ready', lambda: all(r.page('/readyz')[0] == 200 for r in replicas), 20)
    return replicas


def traffic(s):
    """Recorded traffic where it is, else made up; both rise threefold over the morning."""
    if os.path.exists(RECORDED) and not s.options.generated:
        s.mark('traffic: recorded (ServeGen, language model, from 07:40), scaled to this fleet')
        return {'file': os.path.abspath(RECORDED), 'start': '30m', 'after': '2m', 'length': '7200s', 'scale': 0.07}
    s.mark('traffic: made up by preheat generate (ramp)')
    path = os.path.join(s.folder, 'morning.csv.gz')
    s.must(s.options.preheat, 'generate', '--shape', 'ramp:3', '--length', '2h', '--rate', '5', '--prompt-tokens', '1000',
           '--output-tokens', '200', '--seed', str(s.options.seed), '-o', path)
    return {'file': path, 'start': '0s', 'after': '2m', 'length': '7200s'}


def burst(s, more, for_s=180):
    """Traffic for so many replicas more than serve now: 8 sequences each, 6.32 s a request. Waits until what was asked for
    before serves, and there is room to grow."""
    s.expect('nothing starts in chat, and there is room to grow', lambda: is_calm(s), 120)
    chat = s.machines.score()['pools']['chat']
    s.machines.traffic('chat', max(chat['ready'] + more - chat['running'] / 8, more) * 8 / 6.32, for_s)


def under_load(s, sentence, condition, patience):
    """Expects what a growing chat must meet: traffic is kept above what serves until it came."""
    pushed = [0.0]

    def look():
        found = condition()
        if not found and time.monotonic() - pushed[0] > s.real(180):
            pushed[0] = time.monotonic()
            chat = s.machines.score()['pools']['chat']
            s.machines.traffic('chat', max(chat['ready'] + 2 - chat['running'] / 8, 1) * 8 / 6.32, 180)
        return found
    return s.expect(sentence, look, patience)


def is_calm(s):
    groups = s.machines.groups()
    starting = [m for name in ('chat-spot', 'chat-od') for m in groups[name]['machines'] if m['state'] in ('pending', 'waking')]
    return not starting and not marked(s) and len(s.pods('chat')) == len(s.pods('chat', ready=False)) and \
        groups['chat-spot']['desired'] <= s.evidence['groups']['chat-spot']['max'] - 4


def spare(s):
    chat = s.machines.score()['pools']['chat']
    return chat['ready'] - chat['running'] / 8


def ahead_of_demand(s):
    """Traffic that doubles in ten minutes finds warm replicas: new ones are asked for before they are needed."""
    s.expect('two replicas of headroom stand ready before traffic rises', lambda: spare(s) >= 1.9, 60)
    before = s.machines.score()['pools']['chat']
    for step in range(10):
        s.machines.traffic('chat', 0.5 * 8 / 6.32, 600 - 60 * step)
        s.pass_time(60)
    after = s.machines.score()['pools']['chat']
    late, arrived = after['late'] - before['late'], after['requests'] - before['requests']
    s.check(f"chat went from {before['ready']} to {after['ready']} replicas, and has one to spare",
            after['ready'] > before['ready'] or spare(s) >= 1)
    # Told, not judged: with both cores busy the fast clock outruns the machines, and lateness measures the test's host.
    s.mark(f'{late} of {arrived} requests were late while traffic rose')
    s.expect('an event tells the growth', lambda: s.told('TriggeredScaleUp'), 20)


def train_wakes(s, name, pods, patience):
    """From zero: nothing is bought before a Job asks; then as many nodes as its gang needs, all of them."""
    s.check('train has no machine before its Job', s.group('train')['desired'] == 0)
    s.kube.create(world.job(name, pods, '240s'))
    s.expect('the Job has its pods', lambda: len(s.pods('train', ready=False)) >= pods, 60)
    s.expect(f'the pool wakes: {pods} machines of train for the gang of {name}',
             lambda: s.group('train')['desired'] == pods, patience)


def train_done(s, name):
    s.expect(f'job {name} is done', lambda: (s.kube.one('Job', name, world.SPACE).get('status') or {}).get('completionTime'),
             90)
    s.expect('train is back at zero', lambda: s.group('train')['desired'] == 0 and not s.group('train')['machines'], 60)


def stock_out(s):
    """The preferred group has nothing: the next one is asked within a few ticks, and the first again later."""
    fault = s.machines.fault('stock-out', 'chat-spot')
    before = s.group('chat-od')['desired']
    burst(s, 2)
    failed = under_load(s, 'the spot group runs dry', lambda: s.group('chat-spot')['failures'], 40)
    s.expect('on-demand machines are asked for instead, a few ticks later',
             lambda: s.group('chat-od')['desired'] > before, s.real(120) + 1)
    s.expect('an event tells the stock-out', lambda: s.told('StockOut|CapacityUnavailable|TriggeredScaleUp', 'chat-spot'), 15)
    s.machines.end_faults(fault['id'])
    ended = time.time()
    under_load(s, 'the spot group is asked again once its back-off is over',
               lambda: [c for c in s.calls('chat-spot', 'grow', ended) if c['status'] == 202], 60)
    return failed


def broken_machines(s):
    """A GPU that never appears and an image that cannot be pulled: found, told, replaced."""
    for fault, stage_name in (('gpu-never-appears', 'device'), ('image-pull-fails', 'image')):
        begun = time.time()
        struck = s.machines.fault(fault, '*', count=1)
        burst(s, 2)
        line = under_load(s, f'a start is stuck, or was not needed any more ({fault})',
                          lambda e=begun, n=stage_name: stuck_line(s, n, e) or given_up_line(s, e), 120)
        if line and line['event'] == 'start-stuck':
            machine = line['machine']
            s.check(f'it says which machine and why: {line["why"]}', machine in line['why'])
            s.expect(f'the machine {machine} goes', lambda m=machine: m not in machine_names(s), 40)
            s.expect('an event tells it', lambda m=machine: [e for e in s.told('NodeStuck|PodStuck|StartStuck') if
                                                             m in e['note'] or m == e['name']], 15)
        s.machines.end_faults(struck['id'])


def given_up_line(s, since):
    """The policy may cancel the struck start itself; that counts once it had time enough to be found stuck."""
    if time.time() - since < 60:
        return None
    return next(log_lines(s, since, '"why":"cancelled before it served"'), None)


def stuck_line(s, stage_name, since):
    return next(log_lines(s, since, '"event":"start-stuck"', f'"stage":"{stage_name}"'), None)


def log_lines(s, since, *words):
    """What any replica has logged since, with all of these words."""
    for controller in s.controllers.values():
        sizes = s.sampler.logs[controller.log]
        begin = max([size for when, size in sizes if when < since] or [0])
        with open(controller.log, 'rb') as file:
            file.seek(begin)
            for text in file.read().decode(errors='replace').splitlines():
                if all(word in text for word in words):
                    yield json.loads(text)


def machine_names(s):
    return [m['id'] for g in s.machines.groups().values() for m in g['machines'] if m['state'] != 'terminating']


def bad_cloud(s):
    """An answer is lost and calls are throttled; the cloud of another pool hangs. Chat gets its machines, once."""
    hang = s.machines.fault('hang', 'embed')
    burst(s, 3)
    begun, before = time.time(), s.group('chat-spot')['desired'] + s.group('chat-od')['desired']
    lost = [s.machines.fault('lost-answer', group, count=2) for group in ('chat-spot', 'chat-od')]
    under_load(s, 'an answer of the cloud is lost', lambda: lost_answers(s, begun), 40)
    throttle = s.machines.fault('throttle', 'chat-spot', for_s=60)
    s.expect('chat grows all the same, though the cloud of embed hangs',
             lambda: s.group('chat-spot')['desired'] + s.group('chat-od')['desired'] > before, 30)
    for fault in (hang, *lost, throttle):
        s.machines.end_faults(fault['id'])


def lost_answers(s, since):
    return [c for g in ('chat-spot', 'chat-od') for c in s.calls(g, 'grow', since) if c['status'] == 0]


def leader_killed(s, replicas):
    """kill -9 of the leader while machines are on their way; the other goes on, the first comes back as follower."""
    burst(s, 2)
    under_load(s, 'machines are on their way', lambda: starting(s), 40)
    replicas[0].kill()
    killed = time.time()
    s.mark('the leader is killed')
    s.expect('the other replica leads', lambda: s.leader() == 'preheat-b', 25)
    s.expect('and decides', lambda: [t for o, t in replicas[1].lines() if o and o.get('event') == 'leading'], 15)
    taken = time.time()
    between = [c for c in stage.laws.changes({'cloud': s.machines.calls()}) if killed + 0.2 < c['at'] / 1000 < taken - 15]
    s.check('nobody asked the cloud for anything while nobody led', not between)
    replicas[0].start()
    s.expect('the first comes back and is ready', lambda: replicas[0].page('/readyz')[0] == 200, 30)
    s.check('as follower', s.leader() == 'preheat-b')


def starting(s):
    return [m for g in s.machines.groups().values() for m in g['machines'] if m['state'] in ('pending', 'waking')]


def leader_paused(s, replicas):
    """The leader is held still for longer than its lease, and wakes up in the belief that it leads: it may not act on it."""
    replicas[1].signal(signal.SIGSTOP)
    s.mark('the leader is held still')
    s.expect('the other replica leads', lambda: s.leader() == 'preheat-a', 25)
    replicas[1].signal(signal.SIGCONT)
    s.expect('the one that woke up follows', lambda: follows(replicas[1]), 20)
    s.check('and the other leads on', s.leader() == 'preheat-a')


def follows(replica):
    return [o for o, _ in replica.lines()[-40:] if o and o.get('event') == 'stopped-acting']


def server_restarts(s):
    """The API server is away for some seconds, then forgets old versions: watches begin anew, and work goes on."""
    s.mark('the API server restarts')
    begun = time.time()
    s.rig_verb('restart-apiserver', '--after', '3')
    s.expect('it answers again', lambda: answers(s.kube), 60)
    s.pass_time(60)
    s.evidence['away'] = [[begun, time.time() + 10]]
    s.rig_verb('compact')
    s.mark('old versions are compacted: watches expire')
    train_wakes(s, 'second', 3, 20)
    s.expect('all three pods of the gang run', lambda: len(s.pods('train')) == 3, 60)


def answers(client):
    try:
        return client.get('/readyz')
    except (OSError, kube.Refused):
        return None


def missing_signals(s):
    """Chat's metrics hang: nothing is released on what is not known."""
    fault = s.machines.fault('metrics-hang', pool='chat', share=1)
    begun = time.time()
    s.pass_time(240)
    ended = time.time()
    s.machines.end_faults(fault['id'])
    # The first half minute is allowed: readings from before are still good.
    s.evidence['stale'] += [[begun + s.real(60), ended, group] for group in ('chat-spot', 'chat-od')]
    s.mark('chat could not be read for four minutes')


def quiet(s):
    """Traffic is over: nodes are emptied by eviction and go; then the world stands still and is left alone."""
    s.expect('the traffic is over', lambda: s.machines.score()['pools']['chat']['running'] == 0, 120)
    s.expect('chat comes down to its headroom', lambda: chat_size(s) <= 4, 150)
    s.expect('an event tells it', lambda: s.told('ScaledDown'), 10)
    s.expect('standby machines are kept stopped', lambda: any(m['state'] == 'stopped' for m in s.group('chat-od')['machines'])
             or s.group('chat-od')['standby_desired'] == 0, 30)
    s.expect('no node is cordoned any more', lambda: not marked(s), 60)


def marked(s):
    stopped = {m['id'] for g in s.machines.groups().values() for m in g['machines'] if m['state'] == 'stopped'}
    return [name for name, n in s.watches['Node'].snapshot().items() if n['cordoned'] and name not in stopped]


def chat_size(s):
    return s.group('chat-spot')['desired'] + s.group('chat-od')['desired']


def standing_still(s):
    """Fifteen minutes without a change once the last one is over."""
    def calm():
        last = max([c['at'] / 1000 for c in stage.laws.changes({'cloud': s.machines.calls()})] or [0])
        return time.time() - last > s.real(300)
    s.expect('the cloud is asked nothing for five minutes', calm, 120)
    begin = time.time()
    s.pass_time(300)
    s.evidence['quiet'] = [begin, time.time()]


def final(s):
    machines = {m['id']: m['state'] for g in s.machines.groups().values() for m in g['machines']}
    s.evidence['final'] = {'nodes': s.watches['Node'].snapshot(), 'machines': machines, 'replicas': {}}


def scores(s, replicas):
    pools = s.machines.score()['pools']
    chat = pools['chat']
    s.mark(f"chat: {chat['requests']} requests, {chat['late_share']:.2%} late, wait p50 {chat['wait_p50_s']:.2f} s, "
           f"p99 {chat['wait_p99_s']:.1f} s, at most {chat['max_machines']} machines, "
           f"{chat['gpu_seconds'] / 3600:.1f} GPU hours, {s.machines.score()['purchases']} machines bought in all")
    lost = sum(at > 0 for at in s.evidence.get('taken', []))
    s.check(f"no request was cut off ({chat['interrupted']})", chat['interrupted'] == 0 or lost)
    peak = max(sum(g['machines'] for g in groups.values()) for _, groups in s.sampler.samples)
    s.mark(f'at most {peak} machines at a time')
    for r in replicas:
        status, text = r.page('/metrics')
        s.check(f'{r.name} shows its metrics', status == 200 and 'preheat_' in text)
        promtool(s, text)


def promtool(s, text):
    path = os.path.join(s.folder, 'metrics.txt')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    code, said = process.run(['sh', '-c', 'command -v promtool >/dev/null || exit 77; promtool check metrics <"$1"', '_', path])
    if code == 77:
        s.mark('promtool is absent: the metrics are not checked by it')
    else:
        s.check(f'promtool finds nothing wrong ({said.strip()[:300]})', code == 0)


def afterwards(s, replicas):
    """Both end when asked; their histories replay, and explain their largest decision."""
    for r in replicas:
        s.check(f'{r.name} ends by itself on SIGTERM with 0', r.stop(30) == 0)
    for r in replicas:
        s.replay(r)
        code, said = process.run([s.options.preheat, 'explain', '--db', r.db, '--pool', 'chat', '--largest'])
        s.check(f'explain tells the largest decision of {r.name}', code == 0 and len(said.splitlines()) > 3)
        if r is replicas[-1]:
            print('\n'.join('          | ' + line for line in said.splitlines()[:12]))


def morning(s):
    w = world.World()
    replicas = open_morning(s, w)
    train_wakes(s, 'first', 2, s.real(60) + 1)
    ahead_of_demand(s)
    stock_out(s)
    train_done(s, 'first')
    broken_machines(s)
    bad_cloud(s)
    leader_killed(s, replicas)
    leader_paused(s, replicas)
    server_restarts(s)
    missing_signals(s)
    train_done(s, 'second')
    quiet(s)
    standing_still(s)
    scores(s, replicas)
    final(s)
    afterwards(s, replicas)
    s.evidence['expected_errors'] = ['"kind":"unavailable"', 'lease']
    s.judge()


if __name__ == '__main__':
    stage.main(morning, 'morning')
