#!/usr/bin/env python3
"""What is seen from outside: probes, /metrics, WarmPools, events and `preheat status` say the same, and say it in trouble:
models that tell nothing, a cloud without machines, an API server that is away, a leader that dies."""
import json
import os
import re
import shutil
import subprocess

import process
import stage
import world


def seen(s):
    w = world.World(chat_spot=12, chat_od=8, embed=2, train=2)
    manifest = s.open_world(w)
    s.accounts('preheat-a', 'preheat-b')
    s.serve_pools()
    s.expect('WarmPools are taken', lambda: process.run(['kubectl', 'apply', '-f', manifest])[0] == 0)
    s.check('before any decision status says so', 'Nothing has been decided yet' in status(s, '-A'))
    first = start(s, 'preheat-a')
    s.expect('it leads and is ready', lambda: first.page('/readyz') == (200, 'ready: leading\n'))
    second = start(s, 'preheat-b')
    s.expect('the other follows and is ready', lambda: second.page('/readyz')[1].startswith('ready: following preheat-0_'))
    s.check('one of both leads', [r.metric('preheat_leader') for r in (first, second)] == [1, 0])
    s.check('only the leader tells of pools', second.metric('preheat_pool_hot_replicas', pool='chat') is None)
    s.expect('chat serves', lambda: s.pods('chat'))
    the_same_everywhere(s, first)
    silent_models(s, first)
    no_machines(s, first)
    server_away(s, first, second)
    next_leader(s, first, second)
    s.check('it ends by itself on SIGTERM with 0', second.stop(30) == 0)
    s.replay(second)


def start(s, name):
    """Both are called alike, as containers of one Pod are: each makes a name of its own of that."""
    made = s.controller(name, '--watch-pools', '--namespace', stage.SPACE,
                        '--lease-duration', '4s', '--lease-renew', '3s', '--lease-retry', '500ms')
    made.environment['POD_NAME'] = 'preheat-0'
    return made.start()


def status(s, *arguments):
    return process.run([s.options.preheat, 'status', *arguments])[1]


def rows_of(s, *arguments):
    """Without what is remarked on standard error."""
    return json.loads(subprocess.run([s.options.preheat, 'status', '-o', 'json', *arguments], stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL, timeout=60, check=False).stdout or '[]')


def pool(s, name):
    return json.loads(s.must('kubectl', 'get', 'warmpool', name, '-n', world.SPACE, '-o', 'json')).get('status', {})


def condition(s, name, kind):
    for found in pool(s, name).get('conditions', []):
        if found['type'] == kind:
            return found
    return {'status': '', 'reason': '', 'message': '', 'lastTransitionTime': ''}


def the_same_everywhere(s, leader):
    """The object, the table made from it, the metric and the history agree; Prometheus takes the page."""
    rows = s.expect('status shows three pools', lambda: three_rows(s)) or []
    for row in rows:
        s.expect(f"metrics and status agree about {row['name']}", lambda name=row['name']: agree(s, leader, name))
    table = status(s, '-n', world.SPACE)
    s.check(f'status is a table as kubectl makes them:\n{table}',
            re.match(r'NAMESPACE +NAME +MODE +HOT +STANDBY +DEMAND +WAIT +LIMIT +CHANGED\n', table))
    s.check('a history tells the same pools', [row['name'] for row in rows_of(s, '--db', leader.db)] == ['chat', 'embed', 'train'])
    promtool(s, leader)


def three_rows(s):
    rows = rows_of(s, '-A')
    return rows if len(rows) == 3 and all(row['hot'] is not None for row in rows) else None


def agree(s, leader, name):
    told = rows_of(s, '-n', world.SPACE, '--pool', name)[0]
    return all(leader.metric(f'preheat_pool_{metric}_replicas', pool=name) == told[key]
               for metric, key in (('hot', 'hot'), ('standby', 'standby'), ('decided', 'decided')))


def promtool(s, leader):
    tool = shutil.which('promtool')
    if not tool:
        s.mark('promtool is absent (apt-get install prometheus): the page is not checked here')
        return
    path = os.path.join(s.folder, 'metrics.txt')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(leader.page('/metrics')[1])
    code, said = process.run(['sh', '-c', f'promtool check metrics <{path}'])
    s.check(f'promtool finds no fault: {said}', code == 0 and not said)


def silent_models(s, leader):
    """Models that do not answer: nothing is scaled down, and it is said."""
    s.machines.fault('metrics-http500', pool='chat')
    s.expect('a condition says that signals are stale', lambda: condition(s, 'chat', 'SignalsFresh')['status'] == 'False')
    s.expect('an event, too', lambda: s.told('SignalsStale'))
    s.expect('and a metric', lambda: leader.metric('preheat_pool_signals_state', pool='chat', state='fresh') == 0)
    s.machines.end_faults()
    s.expect('and that they are fresh again', lambda: condition(s, 'chat', 'SignalsFresh')['status'] == 'True')


def no_machines(s, leader):
    """A cloud that has none: where it is tried again, and when."""
    for group in ('chat-spot', 'chat-od'):
        s.machines.fault('stock-out', group)
    s.machines.traffic('chat', 40, 600)
    s.expect('a condition says that there is no capacity',
             lambda: condition(s, 'chat', 'CapacityAvailable')['reason'] == 'StockOut')
    s.mark('it says: ' + condition(s, 'chat', 'CapacityAvailable')['message'])
    s.expect('an event names the group', lambda: s.told('StockOut', 'chat-'))
    s.expect('the group is blocked', lambda: leader.metric('preheat_node_group_blocked', group='chat-spot') == 1)
    s.machines.end_faults()
    s.expect('it is there again', lambda: condition(s, 'chat', 'CapacityAvailable')['status'] == 'True')


def server_away(s, leader, follower):
    """Nobody is restarted because the API server is."""
    code, said = s.rig_verb('restart-apiserver', '--after', '3')
    s.check(f'the API server was away for three seconds {said if code else ""}', code == 0)
    s.check('both live on', [r.page('/healthz') for r in (leader, follower)] == [(200, 'ok\n')] * 2)
    s.expect('one is ready and leads', lambda: any(r.page('/readyz') == (200, 'ready: leading\n') for r in (leader, follower)))
    s.expect('the other is ready', lambda: [r.page('/readyz')[0] for r in (leader, follower)] == [200, 200])


def next_leader(s, first, second):
    """Conditions keep the time of their change when the leader is another; the status goes on."""
    if second.metric('preheat_leader') == 1:
        first, second = second, first
    before, tick = condition(s, 'chat', 'Ready'), pool(s, 'chat')['lastDecision']['tick']
    s.check('chat is Ready', before['status'] == 'True')
    first.kill()
    s.expect('the other leads', lambda: second.page('/readyz') == (200, 'ready: leading\n'))
    s.expect('and writes the status', lambda: pool(s, 'chat')['lastDecision']['tick'] > tick)
    s.check('since when chat is Ready stays', condition(s, 'chat', 'Ready')['lastTransitionTime'] == before['lastTransitionTime'])
    first.start()
    s.expect('the one that was killed follows', lambda: first.page('/readyz')[1].startswith('ready: following'))
    count_writes(s, second)
    first.stop(30)


def count_writes(s, leader):
    """At most one write of a status a pool and tick."""
    ticks = max(leader.metric('preheat_ticks_total'), pool(s, 'chat')['lastDecision']['tick'])
    entries = stage.read_audit(os.path.join(s.rig, 'audit.log'), set(s.evidence['users']))
    writes = [e for e in entries if e['resource'] == 'warmpools' and e['verb'] == 'patch']
    s.check(f'{len(writes)} writes of three statuses in {ticks:.0f} ticks', 0 < len(writes) <= 3 * ticks)
    s.check('and none of anything else about them', all(e['sub'] == 'status' for e in writes))


if __name__ == '__main__':
    stage.main(seen, 'seen')
