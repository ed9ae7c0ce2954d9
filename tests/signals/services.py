#!/usr/bin/env python3
"""Three vLLM-like services of other capacities, each behind an HPA, for some hours: what a Prometheus kept of them, and what a cluster
says of them today. Each replica has a queue of its own and a request goes to the least loaded, as behind a router.
  services.py FOLDER HOURS: writes metrics.om (OpenMetrics), cluster.yaml and truth.json: what was so, to the request."""
import bisect
import heapq
import json
import math
import random
import sys
import time

SCRAPE = 15
OBJECTIVE = 2
EDGES = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0)

# slots: what a replica runs at once; tokens are means of lognormal draws; rate: requests a second at noon and at night; metric and target: of the HPA.
SERVICES = (
    dict(name='chat', slots=12, prompt=600, output=180, itl=0.030, prefill=8000, rate=(5.0, 1.0), least=2, most=8, metric='running', target=9, lead=260, gpu='g5.xlarge', gpus=1),
    dict(name='code', slots=40, prompt=2500, output=60, itl=0.022, prefill=12000, rate=(16.0, 3.0), least=1, most=6, metric='running', target=34, lead=320, gpu='g5.2xlarge', gpus=1,
         silent=((0.30, 0.32), (0.61, 0.615))),
    dict(name='summary', slots=6, prompt=5000, output=400, itl=0.018, prefill=10000, rate=(1.2, 0.3), least=1, most=6, metric='waiting', target=1, lead=400, gpu='g5.12xlarge', gpus=4,
         model='chat-lora'),
)


class Replica:
    def __init__(self, name, at):
        self.name, self.born = name, at
        self.running, self.queue, self.leaving = 0, [], False
        self.done = self.prompt = self.output = self.itl_count = 0
        self.itl_sum = self.waited_sum = 0.0
        self.waits = [0] * (len(EDGES) + 1)

    def load(self):
        return self.running + len(self.queue)


class Service:
    """Requests, replicas and the HPA of one service, event by event."""

    def __init__(self, spec, seconds, rng):
        self.spec, self.seconds, self.rng = spec, seconds, rng
        self.replicas, self.events, self.count, self.made = [], [], 0, 0
        self.wished, self.coming, self.highest = spec['least'], 0, []
        self.requests = self.late = 0
        self.replica_seconds = 0.0
        self.rows = []
        for _ in range(spec['least']):
            self.add(0)

    def push(self, at, what, *rest):
        self.count += 1
        heapq.heappush(self.events, (at, self.count, what, rest))

    def add(self, at):
        self.made += 1
        self.replicas.append(Replica(f"{self.spec['name']}-7d9c{self.made // 50}-{self.made:04x}", at))

    def rate(self, at):
        noon, night = self.spec['rate']
        wave = (1 - math.cos(2 * math.pi * at / self.seconds)) / 2
        burst = 1.5 if (at // 1800) % 5 == 3 else 1
        return (night + (noon - night) * wave) * burst

    def tokens(self, mean):
        return max(1, int(mean * self.rng.lognormvariate(-0.18, 0.6)))

    def arrive(self, at):
        choice = min((r for r in self.replicas if not r.leaving), key=Replica.load)
        request = (at, self.tokens(self.spec['prompt']), self.tokens(self.spec['output']))
        choice.queue.append(request)
        self.start(choice, at)
        self.push(at + self.rng.expovariate(self.rate(at)), self.arrive)

    def start(self, r, at):
        while r.queue and r.running < self.spec['slots']:
            came, prompt, output = r.queue.pop(0)
            wait = at - came
            r.running += 1
            took = prompt / self.spec['prefill'] + output * self.spec['itl']
            self.push(at + took, self.end, r, prompt, output, wait)

    def end(self, at, r, prompt, output, wait):
        r.running -= 1
        r.done += 1
        r.prompt += prompt
        r.output += output
        r.itl_sum += output * self.spec['itl']
        r.itl_count += output
        r.waited_sum += wait
        r.waits[bisect.bisect_left(EDGES, wait)] += 1
        self.requests += 1
        self.late += wait > OBJECTIVE
        self.start(r, at)
        if r.leaving and not r.load():
            self.replicas.remove(r)

    def scale(self, at):
        """As the HPA's controller: the mean over the replicas that serve, the highest wish of five minutes on the way down."""
        serving = [r for r in self.replicas if not r.leaving]
        level = sum(r.running if self.spec['metric'] == 'running' else len(r.queue) for r in serving)
        ratio = level / len(serving) / self.spec['target']
        want = self.wished if abs(ratio - 1) <= 0.1 else math.ceil(level / self.spec['target'])
        want = min(max(want, self.spec['least']), self.spec['most'])
        want = min(want, max(2 * self.wished, 4))
        self.highest = [(t, n) for t, n in self.highest if t > at - 300] + [(at, want)]
        self.wished = max(want, min(self.wished, max(n for _, n in self.highest)))
        while len(serving) + self.coming < self.wished:
            self.coming += 1
            self.push(at + self.spec['lead'] * self.rng.uniform(0.8, 1.3), self.join)
        for r in sorted(serving, key=Replica.load)[:max(0, len(serving) - self.wished)]:
            r.leaving = True
            if not r.load():
                self.replicas.remove(r)
        self.push(at + 15, self.scale)

    def join(self, at):
        self.coming -= 1
        self.add(at)

    def scrape(self, at):
        self.replica_seconds += SCRAPE * len(self.replicas)
        silent = any(a <= at / self.seconds < b for a, b in self.spec.get('silent', ()))
        if not silent:
            self.rows += [(at, r.name, r.running, len(r.queue), r.done, r.prompt, r.output, r.itl_sum, r.itl_count, r.waited_sum,
                           tuple(r.waits)) for r in self.replicas]
        self.push(at + SCRAPE, self.scrape)

    def play(self):
        self.push(0, self.arrive)
        self.push(1, self.scale)
        self.push(0, self.scrape)
        while self.events:
            at, _, what, rest = heapq.heappop(self.events)
            if at > self.seconds:
                return
            what(at, *rest)

    def model(self):
        return self.spec.get('model', self.spec['name'])


def families(service):
    """(family, type, rows of (labels, seconds, value)) of one service."""
    spec, out = service.spec, {}

    def put(family, kind, suffix, labels, at, value):
        out.setdefault((family, kind), []).append((suffix, labels, at, value))

    for at, pod, running, waiting, done, prompt, output, itl_sum, itl_count, waited, waits in service.rows:
        labels = f'namespace="llm",pod="{pod}",instance="{pod}:8000",job="{spec["name"]}",model_name="{service.model()}"'
        put('vllm:num_requests_running', 'gauge', '', labels, at, running)
        put('vllm:num_requests_waiting', 'gauge', '', labels, at, waiting)
        put('vllm:request_success', 'counter', '_total', labels + ',finished_reason="stop"', at, done)
        put('vllm:prompt_tokens', 'counter', '_total', labels, at, prompt)
        put('vllm:generation_tokens', 'counter', '_total', labels, at, output)
        put('vllm:inter_token_latency_seconds', 'histogram', '_sum', labels, at, itl_sum)
        put('vllm:inter_token_latency_seconds', 'histogram', '_count', labels, at, itl_count)
        total = 0
        for edge, count in zip(EDGES + (math.inf,), waits):
            total += count
            le = '+Inf' if edge == math.inf else edge
            put('vllm:request_queue_time_seconds', 'histogram', '_bucket', f'{labels},le="{le}"', at, total)
        put('vllm:request_queue_time_seconds', 'histogram', '_sum', labels, at, waited)
        put('vllm:request_queue_time_seconds', 'histogram', '_count', labels, at, total)
        put('vllm:time_to_first_token_seconds', 'histogram', '_count', labels, at, total + running)
    return out


def write_metrics(path, services, begin):
    merged = {}
    for s in services:
        for key, rows in families(s).items():
            merged.setdefault(key, []).extend(rows)
    with open(path, 'w', encoding='utf-8') as file:
        for (family, kind), rows in sorted(merged.items()):
            file.write(f'# TYPE {family} {kind}\n')
            for suffix, labels, at, value in sorted(rows, key=lambda r: (r[0], r[1], r[2])):
                file.write(f'{family}{suffix}{{{labels}}} {value:.10g} {begin + at}\n')
        file.write('# EOF\n')


def stamp(at):
    return time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(at))


def objects(service, end):
    """The Deployment, its HPA, and the nodes and pods that are there at the end."""
    spec = service.spec
    name = spec['name']
    container = {'name': 'server', 'image': 'vllm/vllm-openai:v0.11.0',
                 'args': ['--model', f'models/{name}', f'--served-model-name={service.model()}', '--max-num-seqs', str(spec['slots'])],
                 'ports': [{'name': 'http', 'containerPort': 8000}], 'resources': {'limits': {'nvidia.com/gpu': spec['gpus']}}}
    labels = {'app': name}
    yield {'apiVersion': 'apps/v1', 'kind': 'Deployment', 'metadata': {'name': name, 'namespace': 'llm'},
           'spec': {'replicas': len(service.replicas), 'selector': {'matchLabels': labels},
                    'template': {'metadata': {'labels': labels},
                                 'spec': {'nodeSelector': {'eks.amazonaws.com/nodegroup': f'gpu-{name}'}, 'containers': [container]}}}}
    yield {'apiVersion': 'autoscaling/v2', 'kind': 'HorizontalPodAutoscaler', 'metadata': {'name': name, 'namespace': 'llm'},
           'spec': {'scaleTargetRef': {'apiVersion': 'apps/v1', 'kind': 'Deployment', 'name': name},
                    'minReplicas': spec['least'], 'maxReplicas': spec['most'],
                    'metrics': [{'type': 'Pods', 'pods': {'metric': {'name': f"vllm:num_requests_{spec['metric']}"},
                                                          'target': {'type': 'AverageValue', 'averageValue': str(spec['target'])}}}]}}
    for r in service.replicas:
        made, lead = end - 7200, spec['lead']
        count = {'nvidia.com/gpu': str(spec['gpus']), 'cpu': '8', 'memory': '64Gi', 'pods': '20'}
        yield {'apiVersion': 'v1', 'kind': 'Node',
               'metadata': {'name': f'node-{r.name}', 'creationTimestamp': stamp(made + 70),
                            'labels': {'eks.amazonaws.com/nodegroup': f'gpu-{name}', 'node.kubernetes.io/instance-type': spec['gpu']}},
               'status': {'allocatable': count, 'capacity': count,
                          'conditions': [{'type': 'Ready', 'status': 'True', 'lastTransitionTime': stamp(made + 110)}]}}
        yield {'apiVersion': 'v1', 'kind': 'Pod',
               'metadata': {'name': r.name, 'namespace': 'llm', 'creationTimestamp': stamp(made), 'labels': labels,
                            'ownerReferences': [{'apiVersion': 'apps/v1', 'kind': 'ReplicaSet', 'name': r.name.rsplit('-', 1)[0], 'controller': True, 'uid': 'x'}]},
               'spec': {'nodeName': f'node-{r.name}', 'containers': [container]},
               'status': {'phase': 'Running', 'conditions': [
                   {'type': 'PodScheduled', 'status': 'True', 'lastTransitionTime': stamp(made + 111)},
                   {'type': 'Ready', 'status': 'True', 'lastTransitionTime': stamp(made + lead)}]}}


def main():
    folder, hours = sys.argv[1], float(sys.argv[2])
    seconds = int(hours * 3600)
    end = int(time.time()) // SCRAPE * SCRAPE - 60
    services = [Service(spec, seconds, random.Random(spec['name'])) for spec in SERVICES]
    for s in services:
        s.play()
    write_metrics(f'{folder}/metrics.om', services, end - seconds)
    with open(f'{folder}/cluster.yaml', 'w', encoding='utf-8') as file:
        json.dump({'apiVersion': 'v1', 'kind': 'List', 'items': [o for s in services for o in objects(s, end)]}, file, indent=1)
    truth = {s.spec['name']: {'requests': s.requests, 'late_share': s.late / s.requests,
                              'gpu_hours': s.replica_seconds * s.spec['gpus'] / 3600, 'slots': s.spec['slots']} for s in services}
    with open(f'{folder}/truth.json', 'w', encoding='utf-8') as file:
        json.dump(truth, file, indent=1)


if __name__ == '__main__':
    main()
