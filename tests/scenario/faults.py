#!/usr/bin/env python3
"""What goes wrong beneath one replica while the other and the world are well: its clock jumps, calls on its history fail or find
no room, each of its lines to its peers is cut. All the while pods ask for machines: each gets its own, once, and every call that
the cloud took stands in a history. The clock is ours: times of the API server count, and curl waits as long as it does."""
import datetime
import glob
import json
import os
import re
import sqlite3
import time

import faulty
import stage
import world

DAY, HOUR = 86400, 3600
INTERVAL = 1  # seconds between two ticks
QUICK = {'provision': '2s', 'register': '1s', 'device': '1s', 'image': '1s', 'load': '1s', 'wake': '1s', 'wake_register': '1s',
         'wake_device': '1s', 'stop': '1s', 'terminate': '1s', 'refuse': '1s'}
LEASE = ('--lease-duration', '8s', '--lease-renew', '5s', '--lease-retry', '1s')
PEERS = ('the API server', 'the cloud', 'the model servers', 'the other replica')


class Faults(world.World):
    """Training gets a machine a pod, at once."""

    def __init__(self):
        super().__init__(chat_spot=4, chat_od=6, train=60)
        self.jobs = 0

    def cloud(self):
        config = super().cloud()
        for group in config['groups']:
            group['stages'] = QUICK
        return config

    def manifests(self, endpoint):
        text = re.sub(r'(provision|register|device|image|load): \{ p50: \d+s, p95: \d+s \}', r'\1: { p50: 1s, p95: 2s }',
                      super().manifests(endpoint))
        return text.replace('total: { p50: 150s, p95: 260s }', 'total: { p50: 5s, p95: 10s }').replace('interval: 15s', 'interval: 2s')


class Replica:
    """One of two, with what is wrong beneath it."""

    def __init__(self, s, name):
        self.s, self.name, self.lines, self.faults = s, name, {}, None
        self.controller = s.controller(name, '-f', os.path.join(s.folder, 'pools.yaml'), '--lease', stage.LEASE, '--namespace',
                                       stage.SPACE, '--identity', name, '--interval', f'{INTERVAL}s', *LEASE)

    def lead_lines(self, other):
        cloud = int(self.s.machines.url.rsplit(':', 1)[1])
        self.lines = dict(zip(PEERS, map(faulty.Line, (self.s.kube.port, cloud, 8000, other.controller.port))))
        self.faults = faulty.Faults(self.controller, self.lines.values())

    def leads(self):
        return self.s.leader() == self.name

    def logged(self, event):
        return [o for o, _ in self.controller.lines() if o and o.get('event') == event]

    def level(self):
        return self.controller.metric('preheat_history_lag_ticks') == 0

    def last_tick(self):
        """When it was, by the history."""
        said = self.s.must(self.s.options.preheat, 'history', '--all', '--number', '1', '--utc', '-o', 'json', '--db', self.controller.db)
        row = json.loads(said)[-1]
        return datetime.datetime.fromisoformat(row['time'].replace('Z', '+00:00')).timestamp()


def soon(s, sentence, condition):
    s.expect(sentence, condition, 0)


def pods_wait(s, w, pods=1):
    """More have to be trained from now on."""
    w.jobs += pods
    s.kube.create(world.job(f'job-{w.jobs}', pods, '9999s'))


def they_come(s, w, when):
    soon(s, f'{when}: each of {w.jobs} pods runs on a machine of its own, and there is no other', lambda: (
        s.group('train')['desired'] == len(s.running('train')) == len(s.pods('train')) == w.jobs))


def grows(s, w, when, pods=1):
    pods_wait(s, w, pods)
    they_come(s, w, when)


def by_role(replicas):
    return sorted(replicas, key=lambda r: not r.leads())


def clock_jumps(s, w, replicas):
    """The leader's, and what it decides and records is of the API server's time."""
    leader, _ = by_role(replicas)
    for days in (60, -60, 0):
        leader.faults.clock_ahead(days * DAY)
        soon(s, f"the leader's clock is {days} days ahead, and it knows", lambda days=days: abs(
            (leader.controller.metric('preheat_clock_ahead_seconds') or 0) - days * DAY) < 60)
        grows(s, w, f'{days} days ahead')
        s.check('it is recorded in the true time', abs(leader.last_tick() - time.time()) < 60)
        s.check('and it leads on', leader.leads())


def hours_off(s, w, replicas):
    """For some ticks, too little to be taken for an error at once: whoever leads next puts it right."""
    leader, _ = by_role(replicas)
    leader.faults.clock_ahead(3 * HOUR)
    grows(s, w, 'three hours ahead')
    leader.faults.clock_ahead(0)
    grows(s, w, 'and back again')


def disk_fails(s, w, replicas):
    """Each call on the history: a follower sets its copy aside, a leader ends, as what it cannot record it may not do."""
    leader, follower = by_role(replicas)
    follower.faults.every_call_fails()
    grows(s, w, "calls on the follower's disk fail")
    soon(s, 'it was struck', lambda: follower.faults.struck())
    follower.faults.disk_is_well()
    soon(s, 'the follower has the history again', follower.level)
    leader.faults.every_call_fails()
    pods_wait(s, w)
    soon(s, "calls on the leader's disk fail: it ends", lambda: not leader.controller.is_running())
    s.check(f'and says why, with {leader.controller.ended()}', leader.logged('history-not-written'))
    they_come(s, w, 'the other leads')
    leader.controller.start()
    soon(s, 'a start on such a disk has no history', lambda: leader.logged('history-copy-not-opened'))
    leader.faults.disk_is_well()
    all_is_well(s, replicas)


def disk_is_full(s, w, replicas):
    """Its reserve and its oldest ticks make room, whether the disk tells of it or a quota does not."""
    for is_told in (False, True):
        leader, follower = by_role(replicas)
        what = 'the disk is full' if is_told else 'a quota is used up'
        soon(s, 'there is a reserve', lambda leader=leader: os.path.exists(leader.controller.db + '-reserve'))
        leader.faults.has_room(0, is_told)
        grows(s, w, what, 2)
        soon(s, f'{what}: its metric says so', lambda leader=leader: leader.controller.metric('preheat_history_disk_full') == 1)
        grows(s, w, f'{what} still', 2)
        s.check('it leads on', leader.leads())
        leader.faults.disk_is_well()
        soon(s, 'it has room again', lambda leader=leader: leader.controller.metric('preheat_history_disk_full') == 0)
        follower.faults.has_room(0, is_told)
        grows(s, w, f'{what}, of the follower')
        follower.faults.disk_is_well()
        all_is_well(s, replicas)


def lines_are_cut(s, w, replicas):
    """Each line and each way; every pair of the two is for worlds."""
    api_server, cloud, model_servers, other_replica = PEERS
    for peer, way in ((api_server, 'no connection'), (api_server, 'answers are lost'), (cloud, 'requests are lost'),
                      (cloud, 'answers are lost'), (model_servers, 'both are lost')):
        cut_leader(s, w, replicas, peer, way)
    for peer, way in ((api_server, 'both are lost'), (other_replica, 'no connection')):
        cut_follower(s, w, replicas, peer, way)


def cut_leader(s, w, replicas, peer, way):
    leader, follower = by_role(replicas)
    what = f'from the leader to {peer} {way}'
    leader.lines[peer].cut(way)
    pods_wait(s, w)
    if peer == 'the API server':
        soon(s, f'{what}: the other leads', follower.leads)
    elif peer == 'the cloud':
        s.pass_time(4)
    if peer != 'the cloud':
        they_come(s, w, what)
    if peer == 'the model servers':
        s.pass_time(6)
    leader.lines[peer].mend()
    they_come(s, w, f'{what}, and mended')
    all_is_well(s, replicas)


def cut_follower(s, w, replicas, peer, way):
    leader, follower = by_role(replicas)
    what = f'from the follower to {peer} {way}'
    follower.lines[peer].cut(way)
    grows(s, w, what)
    s.pass_time(3)
    s.check('the leader leads on', leader.leads())
    follower.lines[peer].mend()
    all_is_well(s, replicas)


def all_is_well(s, replicas):
    soon(s, 'both are ready, and the follower has the history', lambda: all(
        r.controller.page('/readyz')[0] == 200 for r in replicas) and by_role(replicas)[1].level())


def tokens(replica):
    """Of the calls that its histories know, also those that were set aside."""
    found = set()
    for path in [replica.controller.db, *glob.glob(replica.controller.db + '.[0-9]*')]:
        with sqlite3.connect(path) as db:
            found |= {token for token, in db.execute('SELECT token FROM launch')}
        db.close()
    return found


def nothing_is_lost(s, replicas):
    for r in replicas:
        s.check(f'{r.name} ends by itself on SIGTERM with 0', r.controller.stop(30) == 0)
    for r in replicas:
        s.replay(r.controller)
        s.check(f'the last tick of {r.name} is of the true time', abs(r.last_tick() - time.time()) < 120)
    asked = [c for c in stage.laws.changes({'cloud': s.machines.calls()}) if stage.laws.is_done(c)]
    known = tokens(replicas[0]) | tokens(replicas[1])
    s.check(f'all {len(asked)} calls that the cloud took stand in a history', all(c['token'] in known for c in asked))


def open_world(s):
    w = Faults()
    s.speed = 1
    s.open_world(w)
    s.accounts('preheat-a', 'preheat-b')
    s.evidence['lease'] = stage.LEASE
    replicas = [Replica(s, 'preheat-a'), Replica(s, 'preheat-b')]
    for replica, other in zip(replicas, reversed(replicas)):
        replica.lead_lines(other)
    replicas[0].controller.start()
    soon(s, 'the first replica leads', replicas[0].leads)
    replicas[1].controller.start()
    soon(s, 'chat serves', lambda: s.pods('chat'))
    soon(s, 'both are ready', lambda: all(r.controller.page('/readyz')[0] == 200 for r in replicas))
    soon(s, 'the follower has the history', replicas[1].level)
    return w, replicas


def faults(s):
    w, replicas = open_world(s)
    grows(s, w, 'all is well')
    for part in (clock_jumps, disk_fails, disk_is_full, hours_off, lines_are_cut):
        part(s, w, replicas)
    soon(s, 'each machine runs', s.settled)
    s.evidence['final'] = {'nodes': s.watches['Node'].snapshot(), 'replicas': {}, 'machines': {
        m['id']: m['state'] for g in s.machines.groups().values() for m in g['machines']}}
    nothing_is_lost(s, replicas)
    s.evidence['expected_errors'] = ['history-not-written', 'history-disk-full', '"kind":"unavailable"', '^preheat run: .*-[ab].db: ']
    s.judge()


if __name__ == '__main__':
    stage.main(faults, 'faults')
