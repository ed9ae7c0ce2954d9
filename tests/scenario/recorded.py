#!/usr/bin/env python3
"""A sceptic's way: record without touching anything, simulate what was recorded, decide anew on the recorded signals."""
import csv
import json
import os

import laws
import process
import stage
import world

RECORDED_FOR = 900  # simulated seconds


def chat_ticks(s, db):
    code, said = process.run([s.options.preheat, 'history', '--all', '--db', db, '--pool', 'chat', '--number', '1000', '-o', 'csv'])
    return list(csv.DictReader(said.splitlines())) if code == 0 else []


def record(s, manifest):
    """Nine hundred seconds of a chat that serves on machines bought by hand; no cloud is asked, nothing written."""
    s.machines.ask('/v1/groups/chat-spot/grow', {'token': 'by-hand', 'desired': 4})
    s.kube.patch('Deployment', 'chat', world.SPACE, {'spec': {'replicas': 4}})
    s.expect('four replicas of chat serve, made by hand', lambda: len(s.pods('chat')) == 4)
    recorder = s.controller('recorder', '-f', manifest, '--for', f'{RECORDED_FOR}s', verb='record').start()
    s.expect('it is ready', lambda: recorder.page('/readyz')[0] == 200)
    before = s.machines.score()['pools']['chat']['requests']
    s.machines.traffic('chat', 4, RECORDED_FOR)
    s.expect('it ends by itself when its time is over', lambda: not recorder.is_running(), 2 * RECORDED_FOR)
    s.check('with exit code 0', recorder.stop(5) == 0)
    s.evidence['sent'] = s.machines.score()['pools']['chat']['requests'] - before
    s.replay(recorder)
    return recorder


def cannot_read(s, manifest):
    """Replicas that answer at another port: said after a minute, not after a week."""
    deaf = os.path.join(s.folder, 'deaf.yaml')
    with open(manifest, encoding='utf-8') as file, open(deaf, 'w', encoding='utf-8') as out:
        out.write(file.read().replace('port: 8000', 'port: 9'))
    recorder = s.controller('deaf', '-f', deaf, '--for', f'{RECORDED_FOR}s', verb='record').start()
    s.expect('it gives up early', lambda: not recorder.is_running(), 300)
    s.check('with exit code 3', recorder.stop(5) == 3)


def arrived(ticks):
    return sum(int(t['started'] or 0) for t in ticks)


def simulate(s, recorder):
    """The same requests go through a modelled cluster."""
    out = os.path.join(s.folder, 'simulated')
    said = s.must(s.options.preheat, 'simulate', '--recording', recorder.db, '--out', out, '--force')
    with open(os.path.join(out, 'summary.json'), encoding='utf-8') as file:
        summary = json.load(file)
    pools = summary['pools']
    had = summary['recorded']['chat']
    s.mark(f"the fleet that was there: {had}")
    s.check('the model of the fleet that was there fits', had['model_fits'])
    chat = next(p for p in (pools if isinstance(pools, list) else pools.values()) if p.get('name', p.get('pool')) in (None, 'chat'))
    recorded = arrived(chat_ticks(s, recorder.db))
    s.mark(f"sent {s.evidence['sent']}, recorded {recorded}, simulated {chat['requests']} requests")
    s.check('the recording holds what was sent, within 3 % and the edges', abs(recorded - s.evidence['sent']) <= 0.03 * s.evidence['sent'] + 60)
    s.check('the simulation has as many, within 1 %', abs(chat['requests'] - recorded) <= 0.01 * recorded + 8)
    return said


def decide_anew(s, manifest, recorder):
    """The recorded signals drive a dry run beside model servers that say something else by now: nothing."""
    s.expect('the traffic is over', lambda: s.machines.score()['pools']['chat']['running'] == 0, 600)
    again = s.controller('again', '-f', manifest, '--dry-run', '--no-election', '--signals-from', recorder.db).start()
    s.expect('it ends with the recording', lambda: not again.is_running(), 2 * RECORDED_FOR)
    s.check('with exit code 0', again.stop(5) == 0)
    heard, said = arrived(chat_ticks(s, again.db)), arrived(chat_ticks(s, recorder.db))
    s.mark(f'{heard} requests were heard again, {said} were recorded')
    s.check('it heard what was recorded, within 3 %', abs(heard - said) <= 0.03 * said + 8)
    s.replay(again)
    return again


def refuses(s, manifest, text, *arguments):
    code, said = process.run([s.options.preheat, 'run', '-f', manifest, '--dry-run', '--db', os.path.join(s.folder, 'no.db'),
                              *arguments])
    s.check(f'refused with exit code {code}: {said.strip().splitlines()[-1][:200]}', code == 2 and text in said)


def recorded(s):
    w = world.World()
    manifest = s.open_world(w)
    s.accounts('recorder', 'deaf', 'again')
    recorder = record(s, manifest)
    cannot_read(s, manifest)
    simulate(s, recorder)
    decide_anew(s, manifest, recorder)
    with open(os.path.join(s.folder, 'none.db'), 'w', encoding='utf-8') as file:
        file.write('t_s,n_req\n')
    refuses(s, manifest, '--signals-from', '--signals-from', os.path.join(s.folder, 'none.db'))
    evidence = s.collect()
    by_hand = [c for c in evidence['cloud']['calls'] if c.get('token') == 'by-hand']
    s.check('the cloud saw one changing call, which was made by hand', laws.changes(evidence) == by_hand)
    writes = [e for e in evidence['audit'] if e['user'] in evidence['users'] and e['verb'] not in ('get', 'list', 'watch')]
    s.check(f'the API server saw no writing call {writes[:1]}', not writes)


if __name__ == '__main__':
    stage.main(recorded, 'recorded')
