#!/usr/bin/env python3
"""kill -9 of the only controller, again and again, at drawn times and while calls to the cloud are open: never is anything
bought twice or forgotten."""
import random
import re
import time

import kube
import laws
import stage
import world

ROUNDS = 12


def crash(s):
    draw = random.Random(s.options.seed)
    s.mark(f'seed {s.options.seed}')
    w = world.World(chat_spot=12, chat_od=8, embed=2, train=4)
    manifest = s.open_world(w)
    keep(manifest, 2)
    s.accounts('preheat-a')
    controller = s.controller('preheat-a', '-f', manifest, '--no-election', '--namespace', stage.SPACE).start()
    s.expect('chat and embed serve', lambda: s.pods('chat') and s.pods('embed'))
    for number in range(ROUNDS):
        one_round(s, controller, draw, number, manifest)
    s.machines.end_faults()
    s.pass_time(60)
    s.expect('chat comes down to its headroom', lambda: s.group('chat-spot')['desired'] + s.group('chat-od')['desired'] <= 3, 7200)
    come_to_rest(s, controller)
    settled(s)
    s.replay(controller)
    s.judge()


def come_to_rest(s, controller):
    """Ends it when nothing is under way; when something was begun just then, it goes on for a while. The time in which nobody was
    there to begin anything is no rest: what a start finds idle has its three minutes from then on."""
    while True:
        s.expect('it is ready', lambda: controller.page('/readyz')[0] == 200)
        since = time.time()
        s.expect('nothing is under way any more', lambda: at_rest(s, since))
        s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
        if at_rest(s, since) or s.failures:
            return
        controller.start()


def one_round(s, controller, draw, number, manifest):
    """Something to do, often with a cloud that keeps its answer, and the end in the midst of it. First the fleet grows,
    by traffic and by what each new start is told to keep beyond it, then it shrinks."""
    is_growing = number < ROUNDS * 2 // 3
    faults = hinder(s, draw)
    if is_growing and number % 3 != 2:
        s.machines.traffic('chat', draw.uniform(1, 4), draw.uniform(60, 240))
    if number in (2, 7):
        s.kube.create(world.job(f'job-{number}', 2, '120s'))
    begun = time.time()
    how = draw.choice(['call', 'any', 'any']) if is_growing else 'call'
    if how == 'call':
        wait_for_change(s, begun, draw.uniform(3, 6) if is_growing else s.real(600))
        time.sleep(draw.choice([0, 0.01, 0.05, 0.2]))
    else:
        time.sleep(draw.uniform(0.3, 6))
    controller.kill()
    s.mark(f'round {number}: killed {time.time() - begun:.1f} s into it ({how}; {", ".join(faults) or "a good cloud"})')
    time.sleep(draw.choice([0, 0, 1, 4]))
    s.machines.end_faults()
    keep(manifest, draw.randint(3, 12) if number + 1 < ROUNDS * 2 // 3 else max(2, 8 - 2 * (number + 2 - ROUNDS * 2 // 3)))
    controller.start()


def keep(manifest, headroom):
    with open(manifest, encoding='utf-8') as file:
        text = file.read()
    with open(manifest, 'w', encoding='utf-8') as file:
        file.write(re.sub(r'headroom: \{ min: \d+ \}', f'headroom: {{ min: {headroom} }}',
                          re.sub(r'scaleDown: \{ after: \d+m \}', 'scaleDown: { after: 1m }', text)))


def hinder(s, draw):
    faults = [('slow-answer', {'value': draw.choice([200, 1500])}), ('lost-answer', {'count': 2}), ('hang', {'count': 3}),
              ('server-error', {'count': 2}), ('throttle', {'count': 2})]
    chosen = draw.sample(faults, draw.choice([0, 1, 1, 2]))
    for name, more in chosen:
        s.machines.fault(name, draw.choice(['chat-spot', 'chat-od', 'train']), **more)
    return [name for name, _ in chosen]


def wait_for_change(s, since, patience):
    """Until the cloud has been asked to change something, or a node was marked to go."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        calls = laws.changes({'cloud': s.machines.calls()})
        if calls and calls[-1]['at'] / 1000 >= since:
            return
        if any(at >= since and node and node['ours'] for at, _, node in s.watches['Node'].history()):
            return
        time.sleep(0.01)


def settled(s):
    """At the end machines, nodes and replicas are what is wanted, and nothing else is there."""
    wanted = {}
    for name in ('chat', 'embed'):
        wanted[name] = s.kube.one('Deployment', name, world.SPACE)['spec']['replicas']
        s.check(f'{name}: {wanted[name]} replicas are wanted, {len(s.pods(name))} serve', len(s.pods(name)) == wanted[name])
    machines = len(s.running('chat-spot')) + len(s.running('chat-od'))
    s.check(f'chat: {machines} machines run for {wanted["chat"]} replicas', machines == wanted['chat'])
    s.check('train is at zero', not s.running('train') and s.group('train')['desired'] == 0)
    groups = s.machines.groups()
    for name, group in groups.items():
        serving = sum(m['goal'] == 'run' for m in group['machines'])
        s.check(f'{name}: {group["desired"]} machines are asked for, {serving} are there', serving == group['desired'])
    s.evidence['final'] = {'nodes': s.watches['Node'].snapshot(), 'replicas': wanted,
                           'machines': {m['id']: m['state'] for g in groups.values() for m in g['machines']}}


def at_rest(s, since):
    """No machine changes state, no pod waits, no node is marked, and the cloud was asked nothing for five minutes, all of them after
    this time."""
    groups = s.machines.groups()
    states = {m['id']: m['state'] for g in groups.values() for m in g['machines']}
    moving = [m for g in groups.values() for m in g['machines'] if m['state'] not in ('running', 'stopped')]
    calls = laws.changes({'cloud': s.machines.calls()})
    marked = [name for name, n in s.watches['Node'].snapshot().items() if (n['cordoned'] or n['ours']) and
              states.get(name) != 'stopped']
    waiting = [p for p in s.watches['Pod'].snapshot().values() if p['phase'] == 'Pending' or p['ending']]
    try:
        jobs = [j for j in s.kube.items('Job', world.SPACE) if not (j.get('status') or {}).get('completionTime')]
    except (OSError, kube.Refused):
        return False
    asked = max(since, calls[-1]['at'] / 1000)
    return not (s.running('train') or moving or marked or waiting or jobs) and time.time() - asked > s.real(300)


if __name__ == '__main__':
    stage.main(crash, 'crash')
