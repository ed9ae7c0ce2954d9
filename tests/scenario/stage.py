"""What the scenarios stand on: a rig, its machines, replicas of the controller, eyes that write down what happens.

A scenario marks what it does, expects things within a time of its own, and at the end is judged by the laws. What failed
is kept, with the logs, in build/scenario/NAME.
"""
import argparse
import calendar
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import kube
import laws
import process
from world import ROOT, WORKLOADS

RIG = os.path.join(ROOT, 'tests', 'rig')
SPACE = 'preheat'
LEASE = 'preheat'
PATIENCE = 180.0, 3600.0  # seconds of ours, and simulated ones; who waits in vain has failed, so long is no cost
FASTEST, SLOWEST = 30, 10  # simulated seconds in one of ours
UNDISTURBED = 0.7  # seconds that the sample of work takes where FASTEST is borne


class Sampler(threading.Thread):
    """Looks at the cloud and the score a few times a second."""

    def __init__(self, machines):
        super().__init__(daemon=True)
        self.machines, self.samples, self.scores = machines, [], []
        self.logs = {}  # path: [(time, size)], as the times in the logs run as fast as the scenario's
        self.ended = threading.Event()

    def run(self):
        while not self.ended.wait(0.3):
            for path, sizes in self.logs.items():
                sizes.append((time.time(), os.path.getsize(path) if os.path.exists(path) else 0))
            try:
                groups = self.machines.groups()
                score = self.machines.score()
            except (OSError, ValueError):
                continue
            at = time.time()
            self.samples.append([at, {name: {
                'desired': g['desired'], 'surge': g['surge'], 'standby': g['standby_desired'],
                'machines': sum(m['goal'] == 'run' and m['state'] != 'terminating' for m in g['machines']),
                'running': sum(m['state'] == 'running' for m in g['machines'])} for name, g in groups.items()}])
            self.scores.append([at, score['simulated_s'], score['pools']])


class Pulse(threading.Thread):
    """Changes something about a pod and a node every two seconds. Where nothing changes the server says once a minute of ours that
    a watch has missed nothing: half an hour of a hurried clock, for which drains and smaller numbers would wait."""

    def __init__(self, server, watches):
        super().__init__(daemon=True)
        self.server, self.watches, self.ended = server, watches, threading.Event()

    def run(self):
        beat = 0
        while not self.ended.wait(2):
            beat += 1
            for kind in ('Pod', 'Node'):
                for key in list(self.watches[kind].snapshot())[:1]:
                    self.touch(kind, key, beat)

    def touch(self, kind, key, beat):
        space, _, name = key.rpartition('/')
        try:
            self.server.patch(kind, name, space, {'metadata': {'annotations': {'scenario': str(beat)}}})
        except (OSError, http.client.HTTPException, kube.Refused):
            pass  # it went, or the server is away


class Stage:
    def __init__(self, name):
        options = argparse.ArgumentParser()
        options.add_argument('--preheat', required=True)
        options.add_argument('--machines', required=True)
        options.add_argument('--speed', type=float, default=0, help='default: as fast as this machine bears')
        options.add_argument('--seed', type=int, default=1)
        options.add_argument('--generated', action='store_true', help='made-up traffic also where recorded is there')
        self.options = options.parse_args()
        self.name, self.begun = name, time.time()
        self.folder = tempfile.mkdtemp(prefix=f'preheat-{name}.')
        self.rig = os.environ['RIG_DIR']
        self.kube = kube.Kube(self.rig)
        self.marks, self.failures = [], []
        self.speed = self.options.speed or self.bearable_speed()
        self.programs, self.watches, self.controllers = [], {}, {}
        self.machines = self.sampler = self.pulse = None
        self.evidence = {'speed': self.speed, 'stale': [], 'let': [], 'expected_errors': [], 'lease': '', 'users': {}}

    # What is told, expected, waited for

    def mark(self, text):
        now = time.time()
        self.marks.append((now, text))
        print(f'{now - self.begun:7.1f} s  {text}', flush=True)

    def fail(self, text):
        self.failures.append((time.time(), text))
        self.mark(f'FAILED: {text}')

    def skip(self, why):
        """A part that cannot run here. On a build server that is a failure."""
        if os.environ.get('CI') == 'true':
            self.fail(f'skipped: {why}')
        else:
            self.mark(f'SKIPPED: {why}')

    def bearable_speed(self):
        """A tick has to be long beside what is done in it: both are measured here, with whatever else keeps this host busy."""
        begun = time.monotonic()
        for _ in range(4):
            process.run([self.options.preheat, 'check', os.path.join(ROOT, 'examples', 'rig', 'pools.yaml')])
            for number in range(10):
                self.kube.patch('Namespace', 'default', None, {'metadata': {'annotations': {'scenario': str(number)}}})
        took = time.monotonic() - begun
        speed = round(max(SLOWEST, min(FASTEST, FASTEST * UNDISTURBED / took)))
        self.mark(f'a sample of the work took {took:.2f} s: the clock runs {speed} times as fast as ours')
        return speed

    def expect(self, sentence, condition, simulated=PATIENCE[1]):
        """Waits for it as long as anything may take; its value. A scenario goes on when it does not come, to find more."""
        began, patience = time.monotonic(), max(PATIENCE[0], self.real(simulated))
        try:
            value = process.until(condition, patience)
        except (OSError, kube.Refused, KeyError) as error:
            value, sentence = None, f'{sentence} ({type(error).__name__}: {error})'
        if value:
            self.mark(f'ok ({time.monotonic() - began:.1f} s): {sentence}')
        else:
            self.fail(f'{sentence}: not within {patience:.0f} s')
        return value

    def check(self, sentence, holds):
        if holds:
            self.mark(f'ok: {sentence}')
        else:
            self.fail(sentence)

    def real(self, simulated):
        """Seconds of ours that so many simulated ones are."""
        return simulated / self.speed

    def pass_time(self, simulated):
        """Lets simulated time pass: the scenario's own clock, not a wait for luck."""
        time.sleep(self.real(simulated))

    # What is started

    def start_machines(self, config, limits, *options):
        self.machines = process.Machines(self.folder, self.options.machines, config, os.environ['KUBECONFIG'], self.speed,
                                         '--seed', str(self.options.seed), *options)
        self.programs.append(self.machines.start())
        if not process.until(self.answers, 20):
            raise SystemExit('the machines do not answer:\n' + tail(self.machines.log))
        self.evidence['groups'] = limits
        self.sampler = Sampler(self.machines)
        self.sampler.start()

    def open_world(self, world, workloads=WORKLOADS):
        """Machines, what a team has in its cluster, eyes on it; the path of the manifests."""
        self.start_machines(world.cloud(), world.limits())
        self.must('kubectl', 'apply', '-f', workloads)
        self.open_eyes()
        path = os.path.join(self.folder, 'pools.yaml')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(world.manifests(self.machines.url))
        self.must(self.options.preheat, 'check', path)
        return path

    def answers(self):
        try:
            return self.machines.groups()
        except OSError:
            if not self.machines.is_running():
                raise SystemExit('the machines ended:\n' + tail(self.machines.log)) from None
            return None

    def open_eyes(self):
        for kind, shorten in (('Pod', kube.short_pod), ('Node', kube.short_node),
                              ('Deployment', kube.short_deployment), ('Event', kube.short_event)):
            self.watches[kind] = kube.Watch(self.kube, kind, shorten)
            self.watches[kind].start()
        self.pulse = Pulse(self.kube, self.watches)
        self.pulse.start()

    def accounts(self, *names, beside=()):
        """Service accounts with exactly the rights of deploy/, one per replica so that they can be told apart."""
        for path in ('base/namespace', 'base/rbac', *beside):
            self.must('kubectl', 'apply', '-f', os.path.join(ROOT, 'deploy', f'{path}.yaml'))
        for name in names:
            self.kube.create({'apiVersion': 'v1', 'kind': 'ServiceAccount', 'metadata': {'name': name, 'namespace': SPACE}})
        subjects = [{'kind': 'ServiceAccount', 'name': name, 'namespace': SPACE} for name in names]
        for binding in json.loads(self.must('kubectl', 'get', 'clusterrolebindings,rolebindings', '-A', '-o', 'json'))['items']:
            if not any(s.get('namespace') == SPACE and s['kind'] == 'ServiceAccount' for s in binding.get('subjects', [])):
                continue
            meta = binding['metadata']
            space = ['-n', meta['namespace']] if 'namespace' in meta else []
            self.must('kubectl', 'patch', binding['kind'].lower(), meta['name'], *space, '--type=merge', '-p',
                      json.dumps({'subjects': subjects}))

    def serve_pools(self):
        """The server knows WarmPools from now on."""
        self.must(os.path.join(RIG, 'apply_crd.sh'))

    def must(self, *command):
        code, said = process.run(list(command))
        if code:
            raise SystemExit(f"{' '.join(command)}: exit code {code}\n{said}")
        return said

    def controller(self, name, *arguments, verb='run', account=None):
        """A replica that runs as the service account of its name, or another; not started yet."""
        path, account = os.path.join(self.folder, f'{name}.kubeconfig'), account or name
        code = subprocess.run([os.path.join(RIG, 'kubeconfig_for.sh'), SPACE, account], stdout=open(path, 'wb'), check=False)
        if code.returncode:
            raise SystemExit(f'no token for {account}')
        made = process.Controller(self.folder, name, self.options.preheat,
                                  ['--speed', f'{self.speed:g}', *arguments], path, verb)
        self.programs.append(made)
        self.controllers[name] = made
        self.sampler.logs[made.log] = []
        self.evidence['users'][f'system:serviceaccount:{SPACE}:{account}'] = name
        return made

    def rig_verb(self, *words):
        return process.run([os.path.join(RIG, 'rig.sh'), *words, '--dir', self.rig])

    # What is looked at

    def pods(self, app, ready=True):
        return [(key, p) for key, p in self.watches['Pod'].snapshot().items()
                if p['app'] == app and not p['ending'] and (p['ready'] or not ready)]

    def group(self, name):
        return self.machines.groups()[name]

    def running(self, name):
        return [m for m in self.group(name)['machines'] if m['state'] == 'running']

    def settled(self):
        """Each group runs what was asked of it."""
        return all(g['desired'] == len([m for m in g['machines'] if m['state'] == 'running'])
                   and all(m['state'] in ('running', 'stopped') for m in g['machines']) for g in self.machines.groups().values())

    def calls(self, group, verb, since=0.0):
        return [c for c in laws.changes({'cloud': self.machines.calls()})
                if laws.group_of(c) == group and laws.verb_of(c) == verb and c['at'] / 1000 >= since]

    def told(self, reason, text='', since=0.0):
        """Events of that reason whose note holds the text."""
        return [e for at, _, e in self.watches['Event'].history()
                if e and at >= since and re.search(reason, e['reason']) and text in e['note']]

    def is_let(self, began, resource, name=''):
        """Until now an owner who is no cloud wrote these objects, and it was known: the law owner_is_let looks at them."""
        self.evidence['let'].append([began, time.time(), resource, name])

    def leader(self):
        lease = self.kube.one('Lease', LEASE, SPACE)
        return lease and lease['spec'].get('holderIdentity')

    # The end

    def collect(self):
        evidence = self.evidence
        evidence['cloud'] = self.machines.calls()
        evidence['samples'] = self.sampler.samples
        for key, kind in (('pods', 'Pod'), ('nodes', 'Node'), ('deployments', 'Deployment')):
            evidence[key] = self.watches[kind].history() if kind in self.watches else []
        evidence['events'] = self.watches['Event'].snapshot() if 'Event' in self.watches else {}
        evidence['logs'] = {name: [text for _, text in c.lines()] for name, c in self.controllers.items()}
        evidence['audit'] = read_audit(os.path.join(self.rig, 'audit.log'), set(evidence['users']))
        return evidence

    def judge(self, rules=laws.LAWS):
        evidence = self.collect()
        for law, at, text in laws.judge(evidence, rules):
            self.failures.append((at, f'law {law}: {text}'))
        held = len(rules) - len({text.split(':')[0] for _, text in self.failures if text.startswith('law ')})
        self.mark(f"{held} of {len(rules)} laws held over {len(evidence['audit'])} calls to the API server, "
                  f"{len(laws.changes(evidence))} changing calls to the cloud, {len(evidence['pods'])} states of pods")

    def replay(self, controller):
        """Every recorded tick decides the same again."""
        code, said = process.run([self.options.preheat, 'replay', '--db', controller.db, '-o', 'json'])
        self.check(f'replay of the history of {controller.name}: 0 differences'
                   + (f' (exit code {code}: {said.strip()[-500:]})' if code else ''), code == 0)
        return said

    def close(self):
        """Ends everything; the exit code."""
        for program in reversed(self.programs):
            program.stop(10)
        if self.sampler:
            self.sampler.ended.set()
        if self.pulse:
            self.pulse.ended.set()
        for watch in self.watches.values():
            watch.stop()
        if self.failures:
            self.tell_failures()
        shutil.rmtree(self.folder, ignore_errors=True)
        return 1 if self.failures else 0

    def tell_failures(self):
        kept = os.path.join(ROOT, 'build', 'scenario', self.name)
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.folder, kept)
        shutil.copy(os.path.join(self.rig, 'audit.log'), kept)
        with open(os.path.join(kept, 'evidence.json'), 'w', encoding='utf-8') as file:
            json.dump(self.evidence, file)
        print(f'\n{len(self.failures)} failed; logs and evidence are in build/scenario/{self.name}')
        told = {}
        for at, text in self.failures:
            kind = text.split(':')[0] if text.startswith('law ') else text
            told[kind] = told.get(kind, 0) + 1
            if told[kind] > 3:
                continue
            print(f'\n* {text}')
            if at:
                print(f'  at {at - self.begun:.1f} s; around it:')
                self.tell_around(at)
        print('\n'.join(f'{count} times {kind}' for kind, count in told.items() if count > 3))

    def tell_around(self, at):
        for when, text in self.marks:
            if abs(when - at) < 15:
                print(f'    {when - self.begun:7.1f} s  (scenario) {text}')
        for name, controller in self.controllers.items():
            sizes = self.sampler.logs[controller.log]
            begin = max([size for when, size in sizes if when < at - 1.5] or [0])
            end = min([size for when, size in sizes if when > at + 1.5] or [1 << 60])
            with open(controller.log, 'rb') as file:
                file.seek(begin)
                near = file.read(min(end - begin, 1 << 20)).decode(errors='replace').splitlines()
            for text in near[-12:]:
                print(f'    {name}: {text[:300]}')


def stamp_seconds(stamp):
    whole, _, fraction = stamp.rstrip('Z').partition('.')
    try:
        parsed = time.strptime(whole, '%Y-%m-%dT%H:%M:%S')
    except ValueError:
        return 0.0
    return calendar.timegm(parsed) + (float('0.' + fraction) if fraction.isdigit() else 0.0)


def read_audit(path, users):
    """The calls of these users, and whoever deleted pods."""
    entries = []
    with open(path, encoding='utf-8') as file:
        for line in file:
            if '"stage":"ResponseComplete"' not in line and '"stage":"Panic"' not in line:
                continue
            is_deletion = '"verb":"delete"' in line and '"resource":"pods"' in line
            if not is_deletion and '"username":"system:serviceaccount:preheat:' not in line:
                continue
            try:
                said = json.loads(line)
            except ValueError:
                continue
            user, about = said['user']['username'], said.get('objectRef') or {}
            if user in users or is_deletion:
                entries.append({'at': stamp_seconds(said['requestReceivedTimestamp']),
                                'done': stamp_seconds(said['stageTimestamp']), 'user': user,
                                'agent': said.get('userAgent', ''), 'verb': said['verb'],
                                'resource': about.get('resource', ''), 'sub': about.get('subresource', ''),
                                'name': about.get('name', ''), 'code': said.get('responseStatus', {}).get('code', 0)})
    return sorted(entries, key=lambda e: e['at'])


def tail(path, count=20):
    with open(path, encoding='utf-8', errors='replace') as file:
        return ''.join(file.readlines()[-count:])


def main(scenario, *arguments, **named):
    """Runs one, and ends what it started whatever happens."""
    stage = Stage(*arguments, **named)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    process.end_with_parent(signal.SIGTERM)
    try:
        scenario(stage)
    except (KeyboardInterrupt, SystemExit) as ended:
        stage.fail(f'ended early: {ended or "interrupted"}')
    except Exception as error:  # whatever it is: the evidence is kept and everything ends
        stage.fail(f'{type(error).__name__}: {error}')
        traceback.print_exc()
    sys.exit(stage.close())
