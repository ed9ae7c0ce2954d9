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

RECORDED = os.path.join(os.environ.get('PREHEAT_SHARED') or os.path.join(stage.ROOT, '..', 'shared'), 'traces',
                        'servegen_large_d1.3-5.7.bins.csv.gz')


def open_morning(s, w):
    """Traffic, machines, what a team has in its cluster, and two replicas of which one leads."""
    w.trace = traffic(s)
    manifest = s.open_world(w)
    s.accounts('preheat-a', 'preheat-b')
    s.evidence['lease'] = stage.LEASE
    replicas = [s.controller(name, '-f', manifest, '--lease', stage.LEASE, '--namespace', stage.SPACE,
                             '--identity', name) for name in ('preheat-a', 'preheat-b')]
    replicas[0].start()
    s.expect('the first replica leads', lambda: s.leader() == 'preheat-a')
    replicas[1].start()
    s.expect('chat serves', lambda: s.pods('chat'))
    s.expect('embed has its smallest node, and serves on it', lambda: len(s.pods('embed')) >= 1)
    s.expect('both replicas are ready', lambda: all(r.page('/readyz')[0] == 200 for r in replicas))
    return replicas


def traffic(s):
    """Recorded traffic where it is, else made up; both rise threefold over the morning."""
    if os.path.exists(RECORDED) and not s.options.generated:
        s.mark('traffic: recorded (ServeGen, language model, from 07:40), scaled to this fleet')
        return {'file': os.path.abspath(RECORDED), 'start': '30m', 'after': '2m', 'length': '4500s', 'scale': 0.07}
    s.mark('traffic: made up by preheat generate (ramp)')
    path = os.path.join(s.folder, 'morning.csv.gz')
    s.must(s.options.preheat, 'generate', '--shape', 'ramp:3', '--length', '75m', '--rate', '5', '--prompt-tokens', '1000',
           '--output-tokens', '200', '--seed', str(s.options.seed), '--out', path)
    return {'file': path, 'start': '0s', 'after': '2m', 'length': '4500s'}


def spare(s):
    """Replicas of chat that have nothing to do: 8 sequences each."""
    chat = s.machines.score()['pools']['chat']
    return chat['ready'] - chat['running'] / 8


def ahead_of_demand(s):
    """Traffic rises, faster and faster, half a replica in the first minute (6.32 s a request): before it needs all that there
    are, more are asked for."""
    s.expect('two replicas of headroom stand ready before traffic rises', lambda: spare(s) >= 1.9)
    before, asked = s.machines.score()['pools']['chat'], time.time()
    steps = []

    def grows():
        if not steps or time.monotonic() > steps[-1] + s.real(60):
            steps.append(time.monotonic())
            s.machines.traffic('chat', (0.4 + 0.1 * len(steps)) * 8 / 6.32, 600)
        return [c for group in ('chat-spot', 'chat-od') for c in s.calls(group, 'grow', asked)] or None
    s.expect('machines are asked for', grows)
    s.mark(f'{spare(s):.1f} of its replicas were to spare then')
    s.expect('an event tells the growth', lambda: s.told('TriggeredScaleUp', since=asked))
    after = s.machines.score()['pools']['chat']
    # Told, not judged: with both cores busy the fast clock outruns the machines, and lateness measures the test's host.
    s.mark(f"{after['late'] - before['late']} of {after['requests'] - before['requests']} requests were late while traffic rose")


def train_wakes(s, name, pods):
    """From zero: nothing is bought before a Job asks; then as many nodes as its gang needs, all of them."""
    s.check('train has no machine before its Job', s.group('train')['desired'] == 0)
    s.kube.create(world.job(name, pods, '240s'))
    s.expect('the Job has its pods', lambda: len(s.pods('train', ready=False)) >= pods)
    s.expect(f'the pool wakes: {pods} machines of train for the gang of {name}', lambda: s.group('train')['desired'] == pods)


def train_done(s, name):
    s.expect(f'job {name} is done', lambda: (s.kube.one('Job', name, world.SPACE).get('status') or {}).get('completionTime'))
    s.expect('train is back at zero', lambda: s.group('train')['desired'] == 0 and not s.group('train')['machines'])


def embed_wants(s, replicas):
    """Its team asks for so many: pods wait until there are nodes for them, four on each."""
    s.kube.patch('Deployment', 'embed', world.SPACE, {'spec': {'replicas': replicas}})


def embed_wants_more(s):
    """More than all of its machines hold, so that one has to be bought: pods that a tick saw late may have brought one too many."""
    replicas = 4 * sum(state != 'terminating' for group in ('embed', 'embed-od') for state in states(s, group)) + 4
    embed_wants(s, replicas)
    return replicas


def embed_serves(s, replicas):
    s.expect(f'all {replicas} replicas of embed serve', lambda: len(s.pods('embed')) == replicas)


def stock_out(s):
    """The preferred group has nothing: the next one is asked, and the first again later."""
    begun, fault = time.time(), s.machines.fault('stock-out', 'embed')
    embed_wants(s, 8)
    s.expect('the preferred group runs dry', lambda: s.group('embed')['failures'])
    s.expect('an on-demand machine is asked for instead', lambda: s.group('embed-od')['desired'] == 1)
    s.expect('an event tells the stock-out', lambda: s.told('StockOut|CapacityUnavailable', 'embed', begun))
    embed_wants(s, 12)
    embed_serves(s, 8)
    s.machines.end_faults(fault['id'])
    ended = time.time()
    s.expect('the preferred group is asked again once its back-off is over',
             lambda: [c for c in s.calls('embed', 'grow', ended) if c['status'] == 202])
    embed_serves(s, 12)


def broken_machines(s):
    """A GPU that never appears and an image that cannot be pulled: found, told, replaced."""
    line, replicas = struck(s, 'gpu-never-appears', 'device')
    if line:
        s.expect(f"the machine {line['machine']} goes", lambda: line['machine'] not in machine_names(s))
    embed_serves(s, replicas)
    _, replicas = struck(s, 'image-pull-fails', 'image')
    embed_serves(s, replicas)


def struck(s, fault, stage_name):
    """Pods wait for a machine that is struck; what is told of it."""
    begun, number = time.time(), s.machines.fault(fault, 'embed', count=1)['id']
    replicas = embed_wants_more(s)
    line = s.expect(f'a start is stuck ({fault})', lambda: next(stuck_lines(s, stage_name, begun), None))
    if line:
        s.check(f"it says which machine and why: {line['why']}", line['machine'] in line['why'])
        s.expect('an event tells it', lambda: [e for e in s.told('NodeStuck|PodStuck|StartStuck', since=begun)
                                               if line['machine'] in e['note'] or line['machine'] == e['name']])
    s.machines.end_faults(number)
    return line, replicas


def stuck_lines(s, stage_name, since):
    return log_lines(s, since, '"event":"start-stuck"', f'"stage":"{stage_name}"', '"pool":"embed"')


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


def states(s, group):
    return [m['state'] for m in s.group(group)['machines']]


def machine_names(s):
    return [m['id'] for g in s.machines.groups().values() for m in g['machines'] if m['state'] != 'terminating']


def bad_cloud(s):
    """An answer is lost and calls are throttled; the cloud of another pool hangs. Embed gets its machine, once."""
    s.expect('none of the machines of embed is on its way', lambda: set(states(s, 'embed')) == {'running'})
    hangs = [s.machines.fault('hang', group) for group in ('chat-spot', 'chat-od')]
    begun = time.time()
    lost, throttle = s.machines.fault('lost-answer', 'embed', count=1), s.machines.fault('throttle', 'embed', count=2)
    before, replicas = machine_names(s), embed_wants_more(s)
    s.expect('an answer of the cloud is lost', lambda: [  # it may be that of the machine that goes because it was broken
        c for verb in ('grow', 'remove', 'cancel') for c in s.calls('embed', verb, begun) if c['status'] == 0])
    # Of either group: one that was throttled for long has to wait, and the machine that was broken may go meanwhile.
    s.expect('embed grows all the same, though the cloud of chat hangs', lambda: [
        name for name in set(machine_names(s)) - set(before) if name.startswith('embed')])
    for fault in (*hangs, lost, throttle):
        s.machines.end_faults(fault['id'])
    embed_serves(s, replicas)


def by_role(s, replicas):
    """Who leads, and who does not. On a busy host the Lease may have changed hands before."""
    return sorted(replicas, key=lambda replica: replica.name != s.leader())


def leader_killed(s, replicas):
    """kill -9 of the leader while machines are on their way; the other goes on, the first comes back as follower."""
    train_wakes(s, 'second', 3)
    leader, other = by_role(s, replicas)
    leader.kill()
    killed = time.time()
    s.mark('the leader is killed while three machines are on their way')
    s.expect('the other replica leads', lambda: s.leader() == other.name)
    s.expect('and decides', lambda: [t for o, t in other.lines() if o and o.get('event') == 'leading'])
    taken = time.time()
    between = [c for c in stage.laws.changes({'cloud': s.machines.calls()}) if killed + 0.2 < c['at'] / 1000 < taken - 15]
    s.check('nobody asked the cloud for anything while nobody led', not between)
    leader.start()
    s.expect('the one that was killed comes back and is ready', lambda: leader.page('/readyz')[0] == 200)
    s.check('as follower', s.leader() == other.name)


def leader_paused(s, replicas):
    """The leader is held still for longer than its lease, and wakes up in the belief that it leads: it may not act on it."""
    leader, other = by_role(s, replicas)
    leader.signal(signal.SIGSTOP)
    s.mark('the leader is held still')
    s.expect('the other replica leads', lambda: s.leader() == other.name)
    leader.signal(signal.SIGCONT)
    s.expect('the one that woke up follows', lambda: follows(leader))
    s.check('and the other leads on', s.leader() == other.name)


def follows(replica):
    return [o for o, _ in replica.lines()[-40:] if o and o.get('event') == 'stopped-acting']


def server_restarts(s):
    """The API server is away for some seconds, then forgets old versions: watches begin anew, and work goes on."""
    s.mark('the API server restarts')
    begun = time.time()
    s.rig_verb('restart-apiserver', '--after', '3')
    s.expect('it answers again', lambda: answers(s.kube))
    s.pass_time(60)
    s.rig_verb('compact')
    s.mark('old versions are compacted: watches expire')
    s.expect('it answers after that, too', lambda: answers(s.kube))
    s.evidence['away'] = [[begun, time.time() + 10]]
    train_wakes(s, 'third', 2)
    s.expect('both pods of the gang run', lambda: len(s.pods('train')) == 2)


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
    s.expect('the traffic is over', lambda: s.machines.score()['pools']['chat']['running'] == 0, 7200)
    s.expect('chat comes down to its headroom', lambda: chat_size(s) <= 4, 7200)
    s.expect('an event tells it', lambda: s.told('ScaledDown'))
    s.expect('standby machines are kept stopped', lambda: any(m['state'] == 'stopped' for m in s.group('chat-od')['machines'])
             or s.group('chat-od')['standby_desired'] == 0)
    s.expect('no node is cordoned any more', lambda: not marked(s))


def marked(s):
    stopped = {m['id'] for g in s.machines.groups().values() for m in g['machines'] if m['state'] == 'stopped'}
    return [name for name, n in s.watches['Node'].snapshot().items() if n['cordoned'] and name not in stopped]


def chat_size(s):
    return s.group('chat-spot')['desired'] + s.group('chat-od')['desired']


def standing_still(s):
    """Five minutes without a change once the last one is over: nodes may wait ten minutes for their end after another one's."""
    def calm():
        last = max([c['at'] / 1000 for c in stage.laws.changes({'cloud': s.machines.calls()})] or [0])
        return time.time() - last > s.real(720)
    s.expect('the cloud is asked nothing for twelve minutes', calm, 7200)
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
    w = world.Morning()
    replicas = open_morning(s, w)
    train_wakes(s, 'first', 2)
    ahead_of_demand(s)
    stock_out(s)
    broken_machines(s)
    train_done(s, 'first')
    bad_cloud(s)
    leader_killed(s, replicas)
    leader_paused(s, replicas)
    train_done(s, 'second')
    server_restarts(s)
    missing_signals(s)
    train_done(s, 'third')
    quiet(s)
    standing_still(s)
    scores(s, replicas)
    final(s)
    afterwards(s, replicas)
    s.evidence['expected_errors'] = ['"kind":"unavailable"', 'lease']
    s.judge()


if __name__ == '__main__':
    stage.main(morning, 'morning')
