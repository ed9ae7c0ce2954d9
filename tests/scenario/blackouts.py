#!/usr/bin/env python3
"""Blackouts: what Preheat does when it hears less and less. A fleet has machines to spare, which would be given back; one
model server falls silent, then half of them, then all for ten minutes while another pool's Prometheus is down, too. Nothing is
given back, all of it is said, what the API server shows still scales up, and when all speak again the surplus goes."""
import csv
import json
import os
import shutil
import time

import process
import stage
import world
from seen import condition

DOCS = os.path.join(stage.ROOT, 'docs', 'signals.md')
CHAT, EMBED = 'chat-spot', 'embed'
SURPLUS = 6  # replicas


class Blackouts(world.World):
    """chat is read pod by pod, embed by way of a Prometheus server."""

    def __init__(self, prometheus):
        super().__init__(chat_spot=28, chat_od=6, embed=4, train=1)
        self.prometheus = prometheus

    def cloud(self):
        config = super().cloud()
        for group in config['groups']:
            group['initial'] = {CHAT: SURPLUS, EMBED: 2}.get(group['name'], 0)
        return config

    def manifests(self, endpoint):
        text = super().manifests(endpoint)
        direct = 'signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 15s } }'
        chat, embed, train = text.split('\n---\n')
        if self.prometheus:
            embed = embed.replace(direct, f'signals: {{ engine: vllm, prometheus: {{ url: "{self.prometheus}", interval: 15s }} }}')
        text = '\n---\n'.join((chat, embed, train))
        if self.prometheus and self.prometheus not in text:
            raise SystemExit('examples/rig/pools.yaml tells the signals of embed otherwise than the blackouts need')
        text = text.replace('pricePerHour: 1.21, min: 1,', 'pricePerHour: 1.21, min: 0,')
        return text.replace('headroom: { min: 2 }', 'headroom: { min: 0 }').replace('after: 5m', 'after: 1m')


class Prometheus(process.Program):
    """A real one, that reads the pods of embed."""

    def __init__(self, folder, port, pods):
        path = os.path.join(folder, 'prometheus.yml')
        with open(path, 'w', encoding='utf-8') as file:
            json.dump({'global': {'scrape_interval': '500ms'}, 'scrape_configs': [{'job_name': 'pods', 'static_configs': [
                {'targets': [pod['status']['podIP'] + ':8000'],
                 'labels': {'namespace': world.SPACE, 'pod': pod['metadata']['name']}} for pod in pods]}]}, file)
        super().__init__(folder, 'prometheus', ['prometheus', f'--config.file={path}', f'--web.listen-address=127.0.0.1:{port}',
                                                f'--storage.tsdb.path={folder}/prometheus', '--log.level=warn'])
        self.port = port

    def reads(self):
        try:
            found = json.loads(process.fetch(f'http://127.0.0.1:{self.port}/api/v1/query?query=vllm:num_requests_running'))
        except OSError:
            return False
        return len(found['data']['result']) >= 8


class Watcher:
    """What one pool's metrics and object say, from a moment on."""

    def __init__(self, s, controller, pool, group):
        self.s, self.controller, self.pool, self.group = s, controller, pool, group
        self.begin()

    def begin(self):
        self.begun, self.tick = time.time(), self.controller.metric('preheat_ticks_total') or 0

    def state(self):
        for state in ('fresh', 'partial', 'stale', 'gone'):
            if self.controller.metric('preheat_pool_signals_state', pool=self.pool, state=state) == 1:
                return state
        return ''

    def held(self):
        return self.controller.metric('preheat_pool_held_by', pool=self.pool, limit='stale') == 1

    def shrinking(self):
        """Calls since that made it smaller; none may be."""
        return [call for verb in ('remove', 'stop', 'cancel') for call in self.s.calls(self.group, verb, self.begun)]

    def expect_state(self, state, reason):
        self.s.expect(f'{self.pool}: the metric says {state}', lambda: self.state() == state)
        found = self.s.expect(f'{self.pool}: the condition SignalsFresh says {reason}',
                              lambda: condition(self.s, self.pool, 'SignalsFresh')['reason'] == reason)
        return condition(self.s, self.pool, 'SignalsFresh') if found else {}

    def expect_nothing_given_back(self, simulated):
        self.s.pass_time(simulated)
        self.s.check(f'{self.pool}: nothing was given back {self.shrinking()[:1]}', not self.shrinking())
        decided = [int(row['decided']) for row in self.rows()]
        self.s.check(f'{self.pool}: nothing was decided to be, in {len(decided)} ticks', decided and decided == sorted(decided))

    def rows(self):
        said = self.s.must(self.s.options.preheat, 'history', '--all', '--db', self.controller.db, '--pool', self.pool, '-o', 'csv',
                           '--number', '1000')
        return [row for row in csv.DictReader(said.splitlines()) if int(row['tick']) > self.tick]


def blackouts(s):
    port = process.free_port() if shutil.which('prometheus') else 0
    if not port:
        s.skip('prometheus is absent (apt-get install prometheus): both pools are read pod by pod')
    manifest = s.open_world(Blackouts(f'http://127.0.0.1:{port}' if port else ''))
    s.serve_pools()
    s.expect('WarmPools are taken', lambda: process.run(['kubectl', 'apply', '-f', manifest])[0] == 0)
    s.accounts('listener')
    for name, replicas in (('chat', SURPLUS), ('embed', 8)):
        s.kube.patch('Deployment', name, world.SPACE, {'spec': {'replicas': replicas}})
    for name, busy, then in (('chat', 5, 0.5), ('embed', 20, 2)):
        s.machines.traffic(name, busy, 900)
        s.machines.traffic(name, then, 36000)
    s.expect('all replicas serve', lambda: len(s.pods('chat')) >= SURPLUS and len(s.pods('embed')) >= 8)
    prometheus = start_prometheus(s, port) if port else None
    if prometheus:
        s.expect('Prometheus reads the pods of embed', prometheus.reads)
    controller = s.controller('listener', '--watch-pools', '--no-election').start()
    s.expect('it is ready', lambda: controller.page('/readyz')[0] == 200)
    chat, embed = Watcher(s, controller, 'chat', CHAT), Watcher(s, controller, 'embed', EMBED)
    s.expect('both pools are heard', lambda: chat.state() == 'fresh' and embed.state() == 'fresh')
    for name in ('chat', 'embed'):
        s.expect(f'{name} is busy', lambda name=name: (controller.metric('preheat_pool_running_requests', pool=name) or 0) > 5)
    table = [one_pod(s, chat), half(s, chat)]
    table += everything(s, chat, embed, prometheus)
    speak_again(s, chat, embed, prometheus)
    in_docs(s, table, prometheus)
    controller.stop(30)
    s.replay(controller)


def start_prometheus(s, port):
    made = Prometheus(s.folder, port, s.kube.items('Pod', world.SPACE, 'app=embed'))
    s.programs.append(made.start())
    return made


def names(s, pool):
    return sorted(key.split('/')[1] for key, _ in s.pods(pool))


def silence(s, pool, pods):
    s.machines.fault('metrics-http500', pool=pool, pods=pods)


def row(what, state, condition_says, event, did):
    return f'| {what} | {state} | {condition_says} | {event} | {did} |'


def one_pod(s, chat):
    silence(s, 'chat', names(s, 'chat')[:1])
    said = chat.expect_state('partial', 'Partial')
    s.check(f"it names the pod: {said.get('message')}", '/metrics' in said.get('message', ''))
    chat.begin()
    chat.expect_nothing_given_back(120)
    return row('one pod of many', 'partial', 'Partial', 'none', 'no scale-down; demand is that of the others, times all by read')


def half(s, chat):
    """Queues, too: what half of the servers run is not what all can."""
    pods = names(s, 'chat')
    slots = chat.controller.metric('preheat_pool_slots_per_replica', pool='chat')
    silence(s, 'chat', pods[:len(pods) // 2])
    chat.begin()
    s.machines.traffic('chat', 12, 120)
    s.expect('chat queues', lambda: (chat.controller.metric('preheat_pool_waiting_requests', pool='chat') or 0) > 0)
    chat.expect_nothing_given_back(120)
    now = chat.controller.metric('preheat_pool_slots_per_replica', pool='chat')
    s.check(f'chat: half of what runs, seen, is not half of the room: {now} slots, {slots} before', now >= 0.9 * slots)
    s.check('chat: it grows by what the other half says', s.calls(CHAT, 'grow', chat.begun))
    s.expect('chat: what it bought serves', lambda: len(s.pods('chat')) >= machines(s))
    s.expect('chat: who came since is heard', lambda: chat.state() == 'partial')
    return row('half of the pods, and a queue', 'partial', 'Partial', 'none', 'scale-up goes on; no scale-down')


def machines(s):
    return sum(s.group(name)['desired'] for name in (CHAT, 'chat-od'))


def everything(s, chat, embed, prometheus):
    """Ten minutes of nothing at all."""
    began = time.time()
    chat.begin()
    embed.begin()
    s.machines.fault('metrics-hang', pool='chat')
    if prometheus:
        prometheus.kill()
    else:
        s.machines.fault('metrics-http500', pool='embed')
    rows = []
    for pool in (chat, embed):
        pool.expect_state('gone', 'Gone')
        s.expect(f'{pool.pool}: an event says so', lambda pool=pool: [e for e in s.told('SignalsStale', since=began) if e['name'] == pool.pool])
        s.check(f'{pool.pool}: decisions are held by stale signals', s.expect(f'{pool.pool}: held', pool.held))
    # Whoever sets more replicas while nothing is seen knows more than we do: they stay, wait, and bring machines.
    before = machines(s)
    wanted = len(s.pods('chat', ready=False)) + 3
    s.kube.patch('Deployment', 'chat', world.SPACE, {'spec': {'replicas': wanted}})
    s.expect('chat: pods that wait bring machines', lambda: machines(s) > before)
    left = 600 - (time.time() - began) * s.speed
    chat.expect_nothing_given_back(max(60, left))
    embed.expect_nothing_given_back(0)
    rows.append(row('all pods, ten minutes', 'stale, then gone', 'Stale, then Gone', 'SignalsStale',
                    'held by stale: no scale-down; pods that wait scale up'))
    if prometheus:
        rows.append(row('Prometheus down, ten minutes', 'stale, then gone', 'Stale, then Gone', 'SignalsStale',
                        'the same; the condition names the server'))
        s.expect('embed: the condition names the server',
                 lambda: f':{prometheus.port}' in condition(s, 'embed', 'SignalsFresh')['message'])
    return rows


def speak_again(s, chat, embed, prometheus):
    ended = time.time()
    s.machines.end_faults()
    if prometheus:
        prometheus.start()
    for pool in (chat, embed):
        pool.expect_state('fresh', 'Fresh')
        s.expect(f'{pool.pool}: an event says so', lambda pool=pool: [e for e in s.told('SignalsFresh', since=ended) if e['name'] == pool.pool])
        s.expect(f'{pool.pool}: now the surplus is given back', pool.shrinking)


def in_docs(s, table, prometheus):
    with open(DOCS, encoding='utf-8') as file:
        text = file.read()
    s.mark('what it did:\n' + '\n'.join(table))
    for line in table if prometheus else table[:3]:
        s.check(f'docs/signals.md has the row: {line}', line in text)


if __name__ == '__main__':
    stage.main(blackouts, 'blackouts')
