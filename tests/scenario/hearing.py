#!/usr/bin/env python3
"""Is what it hears true? Model servers that behave as vLLM does, with recorded traffic: what the controller learned of their
capacity, of the time that starts take and of demand is held against what the servers and machines themselves say they had."""
import csv
import json
import os
import shutil

import process
import stage
import world

RECORDED = os.path.join(os.environ.get('PREHEAT_SHARED') or os.path.join(stage.ROOT, '..', 'shared'), 'traces',
                        'azure23_conv.csv.gz')
ALERTS = os.path.join(stage.ROOT, 'deploy', 'alerts', '*.rules.yaml')
HEARD_FOR = 2700  # simulated seconds
WAVES = 4
STAGES = ('provision', 'register', 'device', 'image', 'load')
CAPACITY, LEAD, DEMAND = 0.10, 0.05, 0.05  # how far off they may be
RANKS = 5  # points: what a percentile of some forty starts is known to, of which the older count less
JITTER = 0.3  # seconds of ours that a busy host may add between what happens and what is heard; the fast clock multiplies them
# What the manifest says of starts; the machines' own are half as long again.
TRUE_STAGES = {'provision': ('66s', '88s'), 'register': ('60s', '80s'), 'device': ('60s', '80s'), 'image': ('96s', '132s'),
               'load': ('90s', '120s')}
MANIFEST = '''apiVersion: preheat.dev/v1alpha1
kind: WarmPool
metadata: {{ name: chat, namespace: llm }}
spec:
  mode: act
  class: interactive
  objective: {{ queueWait: 2s, attainment: 99% }}
  workload:
    selector: {{ matchLabels: {{ app: chat }} }}
    scaleTargetRef: {{ apiVersion: apps/v1, kind: Deployment, name: chat }}
    gpusPerReplica: 1
    maxSequences: 16
    prefillTokensPerSecond: 25k
    interTokenLatency: 30ms
  signals: {{ engine: vllm, scrape: {{ port: 8000, path: /metrics, interval: 15s }} }}
  nodeGroups:
    - {{ name: chat-spot, provider: simulated, simulated: {{ endpoint: "{endpoint}" }}, zone: z1,
        instanceType: g5.xlarge, capacityType: spot, gpusPerNode: 1, pricePerHour: 0.48, min: 1, max: 60 }}
  leadTime:
    provision: {{ p50: 44s, p95: 59s }}
    register: {{ p50: 40s, p95: 53s }}
    device: {{ p50: 40s, p95: 53s }}
    image: {{ p50: 64s, p95: 88s }}
    load: {{ p50: 60s, p95: 80s }}
  scaleDown: {{ after: 1m }}
'''


class Hearing(world.World):
    """One pool. Sixteen sequences are what its servers allow; their KV cache has room for about ten."""

    def cloud(self):
        config = super().cloud()
        group, pool = config['groups'][0], config['pools'][0]
        for name, (p50, p95) in TRUE_STAGES.items():
            group['stages'][name] = {'p50': p50, 'p95': p95}
        group.update(initial=6, max=60)
        pool.update(groups=['chat-spot'], max_sequences=16, kv_tokens=15000, prefix_hits=0.2,
                    trace={'file': os.path.abspath(RECORDED), 'start': '0s', 'after': '60s', 'scale': 1.2})
        return {'groups': [group], 'pools': [pool]}

    def manifests(self, endpoint):
        return MANIFEST.format(endpoint=endpoint)


class Prometheus(process.Program):
    """A real one, that reads the controller's metrics and our alert rules."""

    def __init__(self, folder, target):
        self.port = process.free_port()
        path = os.path.join(folder, 'prometheus.yml')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(f'global: {{ scrape_interval: 500ms, evaluation_interval: 1s }}\nrule_files: [ "{ALERTS}" ]\nscrape_configs:\n'
                       f'  - job_name: preheat\n    static_configs: [ {{ targets: [ "127.0.0.1:{target}" ] }} ]\n')
        super().__init__(folder, 'prometheus', ['prometheus', f'--config.file={path}', f'--web.listen-address=127.0.0.1:{self.port}',
                                                f'--storage.tsdb.path={folder}/prometheus', '--log.level=warn'])
        self.url = f'http://127.0.0.1:{self.port}'

    def ask(self, path):
        return json.loads(process.fetch(self.url + path))['data']


def hearing(s):
    if not os.path.exists(RECORDED):
        s.skip('the recorded traffic (../shared/traces, PREHEAT_SHARED) is absent')
        return
    manifest = s.open_world(Hearing())
    s.accounts('listener')
    s.kube.patch('Deployment', 'chat', world.SPACE, {'spec': {'replicas': 6}})
    controller = s.controller('listener', '-f', manifest, '--no-election').start()
    prometheus = start_prometheus(s, controller)
    s.expect('it is ready', lambda: controller.page('/readyz')[0] == 200)
    s.expect('it hears the servers', lambda: (controller.metric('preheat_pool_running_requests', pool='chat') or 0) > 3)
    first, truth, heard = last_tick(s, controller), s.machines.score()['pools']['chat'], arrived(controller)
    waves(s)
    s.machines.fault('model-restarts', 'chat-spot', count=2, for_s=30)
    s.expect('two servers begin anew, with their counters', lambda: s.machines.score()['pools']['chat']['restarts'] == 2)
    begun = truth['elapsed_s']
    s.expect('the recorded traffic went on for its time',
             lambda: s.machines.score()['pools']['chat']['elapsed_s'] >= begun + HEARD_FOR, 2 * HEARD_FOR)
    last, end = last_tick(s, controller), s.machines.score()['pools']['chat']
    really = {key: end[key] - truth[key] for key in end}
    compare(s, controller, ticks(s, controller, first, last), arrived(controller) - heard, really)
    s.check(f"requests were preempted ({end['preemptions']})", end['preemptions'] > 0)
    if prometheus:
        same_to_prometheus(s, controller, prometheus)
    controller.stop(30)
    s.replay(controller)


def waves(s):
    """Beside the recorded traffic: what brings queues, and starts to be measured."""
    for number in range(WAVES):
        s.machines.traffic('chat', 14 + 10 * number, 480, 1155, 211)
        s.pass_time(HEARD_FOR / (WAVES + 1))


def last_tick(s, controller):
    return int(history(s, controller, '--number', '1')[0]['tick'])


def history(s, controller, *arguments):
    said = s.must(s.options.preheat, 'history', '--all', '--db', controller.db, '--pool', 'chat', '-o', 'csv', *arguments)
    return list(csv.DictReader(said.splitlines()))


def ticks(s, controller, first, last):
    return [r for r in history(s, controller, '--number', '100000') if first < int(r['tick']) <= last]


def rank(values, percent):
    """Nearest rank."""
    ordered = sorted(values)
    return ordered[-(-len(ordered) * percent // 100) - 1]


def about(values, percent):
    """The percentile, and between which ones it lies for certain."""
    return tuple(rank(values, p) for p in (percent, percent - RANKS, percent + RANKS))


def arrived(controller):
    return controller.metric('preheat_pool_arrived_requests_total', pool='chat')


def compare(s, controller, rows, heard, truth):
    """The table of what was heard and what was so; each line is a law."""
    elapsed = truth['elapsed_s']
    running = [float(r['running_milli']) for r in rows if r['running_milli']]  # a tick between two readings has none
    told = json.loads(s.must(s.options.preheat, 'explain', '--db', controller.db, '--pool', 'chat', '--tick',
                             str(int(rows[-1]['tick'])), '-o', 'json'))
    decision = told.get('decision', told)
    lines = [(name, heard_of_it, (was,) * 3, most) for name, heard_of_it, was, most in (
        ('slots of a replica', decision['slots_milli'] / 1000, truth['saturated_running_s'] / max(1, truth['saturated_s']), CAPACITY),
        ('requests that arrived', heard, truth['requests'], DEMAND),
        ('sequences running', sum(running) / 1000 / max(1, len(running)), truth['running_s'] / elapsed, DEMAND))]
    lines += lead_times(s, controller, decision)
    text = ['| what | heard | was so | off |', '|---|---|---|---|']
    for name, heard, (was, _, _), _ in lines:
        text.append(f'| {name} | {heard:.4g} | {was:.4g} | {100 * (heard / was - 1):+.1f} % |')
    s.mark('what was heard, and what was so:\n' + '\n'.join(text))
    for name, heard, (_, least, largest), most in lines:
        late = JITTER * s.speed if name.endswith('(s)') else 0
        s.check(f'{name}: {heard:.4g}, where {least:.4g} to {largest:.4g} were so, within {100 * most:.0f} %'
                + (f' and {late:.0f} s' if late else ''),
                least * (1 - most) - late <= heard <= largest * (1 + most) + late)


def lead_times(s, controller, decision):
    every = [x for x in s.machines.ask('/v1/starts')['starts'] if not x['woken']]
    served = [x for x in every if len(x['stages']) == 5]
    # Where a pod was taken back while it loaded, the stages are those of two.
    starts = [x for x in served if x['pods'] == 1]
    s.mark(f"{len(served)} starts, {len(starts)} of them with one pod only; {decision['lead_samples']} measured")
    totals = [x['at_s'][5] - x['at_s'][0] for x in starts]
    lines = [(f'start, p{p} (s)', decision[f'lead_cold_p{p}'] / 1000, about(totals, p), LEAD) for p in (50, 95)]
    for name in STAGES:
        own = [x['stages'][name] for x in (starts if name in ('image', 'load') else every) if name in x['stages']]
        lines += [(f'{name}, p{p} (s)', controller.metric('preheat_pool_stage_seconds', pool='chat', stage=name,
                                                         percentile=str(p)) or 0,
                   about(own, p), LEAD) for p in (50, 95)]
    return lines


def start_prometheus(s, controller):
    if not shutil.which('prometheus') or not shutil.which('promtool'):
        s.skip('prometheus is absent (apt-get install prometheus): /metrics is not read by it')
        return None
    made = Prometheus(s.folder, controller.port)
    s.programs.append(made.start())
    return made


def same_to_prometheus(s, controller, prometheus):
    """What a real server has read is what the page says; our alert rules load, and are evaluated without error."""
    path = os.path.join(s.folder, 'metrics.txt')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(controller.page('/metrics')[1])
    code, said = process.run(['sh', '-c', f'promtool check metrics <{path}'])
    s.check(f'promtool finds no fault: {said}', code == 0 and not said)
    for series in ('preheat_pool_slots_per_replica', 'preheat_pool_hot_replicas', 'preheat_pool_demand_replicas', 'preheat_leader',
                   'preheat_pool_arrived_requests_total', 'preheat_pool_lead_time_samples', 'preheat_ticks_total'):
        s.expect(f'promtool query instant {series} is what the page says', lambda name=series: agrees(controller, prometheus, name))
    rules = [rule for group in prometheus.ask('/api/v1/rules')['groups'] for rule in group['rules']]
    s.check(f"all {len(rules)} alert rules were evaluated {[r['name'] for r in rules if r['health'] != 'ok']}",
            rules and all(rule['health'] == 'ok' and not rule.get('lastError') for rule in rules))
    targets = prometheus.ask('/api/v1/targets')['activeTargets']
    s.check(f"the page was read without error {targets[0]['lastError']}", targets[0]['health'] == 'up')


def agrees(controller, prometheus, name):
    """The page goes on while it is compared: before or after what the server has."""
    before = controller.metric(name)
    code, said = process.run(['promtool', 'query', 'instant', '-o', 'json', prometheus.url, name])
    after = controller.metric(name)
    values = json.loads(said) if code == 0 and said else []
    return len(values) == 1 and min(before, after) <= float(values[0]['value'][1]) <= max(before, after)


if __name__ == '__main__':
    stage.main(hearing, 'hearing')
