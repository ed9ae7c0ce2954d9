#!/usr/bin/env python3
"""Two models on one GPU behind their Services, with a real API server: who is called while asleep is woken, no request is lost,
and whoever is awake is reached without Preheat."""
import http.client
import http.server
import json
import signal
import threading
import time

import kube
import process
import stage

SPACE, NODE, IP = 'llm', 'gpu-1', '10.99.0.1'
MODELS = 'm0', 'm1'
GROUP = {'name': 'small', 'min': 0, 'max': 1, 'instance_type': 'g5.xlarge', 'count': 1, 'cpu': '4', 'memory': '16Gi',
         'stages': {}}
POOL = '''apiVersion: preheat.dev/v1alpha1
kind: WarmPool
metadata: {{ name: {name}, namespace: llm }}
spec:
  mode: act
  share: {{ name: small, wakeWithin: 1m }}
  objective: {{ queueWait: 30s, attainment: 95% }}
  workload: {{ selector: {{ matchLabels: {{ app: {name} }} }}, gpusPerReplica: 1, maxSequences: 8 }}
  signals:
    engine: vllm
    scrape: {{ port: {port}, interval: 5s }}
    queue: {{ activator: {{ service: {name}, hold: 10m }} }}
  nodeGroups:
    - {{ name: small, provider: simulated, simulated: {{ endpoint: "{endpoint}" }}, zone: z1, instanceType: g5.xlarge,
        capacityType: on-demand, gpusPerNode: 1, pricePerHour: 1.21, min: 0, max: 1 }}
'''


class Engine:
    """As vLLM with its sleep calls: a move takes a moment, a completion comes in pieces."""

    def __init__(self, address):
        self.address, self.asleep, self.running, self.requests, self.wrong = address, True, 0, [], []
        self.lock = threading.Lock()
        engine = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def say(self, status, text=''):
                self.send_response(status)
                self.send_header('Content-Length', str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def do_GET(self):
                self.say(200, {'/metrics': engine.page, '/is_sleeping': lambda: json.dumps({'is_sleeping': engine.asleep}),
                               '/v1/models': lambda: json.dumps({'data': [{'id': 'm'}]})}[self.path]())

            def do_POST(self):
                self.rfile.read(int(self.headers['Content-Length'] or 0))
                if self.path.startswith(('/sleep', '/wake_up')):
                    engine.move(self.path.startswith('/sleep'))
                    self.say(200)
                elif self.headers['X-Caller']:
                    self.complete()
                else:
                    self.say(200, '{}')  # the token after a wake

            def complete(self):
                engine.begin(self.headers)
                self.send_response(200)
                self.send_header('Transfer-Encoding', 'chunked')
                self.end_headers()
                for number in range(5):
                    self.wfile.write(f'6\r\ntoken{number}\r\n'.encode())
                    time.sleep(0.1)
                self.wfile.write(b'0\r\n\r\n')
                engine.end()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server.server_port

    def page(self):
        return (f'vllm:num_requests_running {self.running}\nvllm:num_requests_waiting 0\n'
                f'vllm:engine_sleep_state{{sleep_state="awake"}} {int(not self.asleep)}\n'
                'vllm:engine_sleep_state{sleep_state="discard_all"} 0\n')

    def move(self, asleep):
        with self.lock:
            if asleep and self.running:
                self.wrong.append('put to sleep with requests')
        time.sleep(0.2)
        self.asleep = asleep

    def begin(self, headers):
        with self.lock:
            self.running += 1
            self.requests.append(headers['X-Caller'])
            if self.asleep:
                self.wrong.append('a request came while it slept')
            if headers['Connection'] != 'close':
                self.wrong.append(f"Connection: {headers['Connection']}")

    def end(self):
        with self.lock:
            self.running -= 1


class Services:
    """This is the cluster's own controller of their slices, which sees labels a moment late; the real one, beside it, finds no
    pod: it could not name the addresses of these."""

    def __init__(self, s, engines):
        self.kube, self.engines, self.known = s.kube, engines, {}
        self.ended = threading.Event()
        kube.PLURALS.update({'Service': ('v1', 'services'), 'EndpointSlice': ('discovery.k8s.io/v1', 'endpointslices')})
        for name in MODELS:
            self.kube.create({'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': name, 'namespace': SPACE},
                              'spec': {'selector': {'played': name},
                                       'ports': [{'name': 'http', 'port': 80, 'targetPort': engines[name].port}]}})
            self.kube.create({'apiVersion': 'discovery.k8s.io/v1', 'kind': 'EndpointSlice', 'addressType': 'IPv4',
                              'metadata': {'name': f'{name}-own', 'namespace': SPACE,
                                           'labels': {'kubernetes.io/service-name': name}},
                              'endpoints': [], 'ports': [{'name': 'http', 'port': engines[name].port}]})
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        while not self.ended.wait(0.5):
            for name in MODELS:
                awake = label(self.kube, name) == 'awake'
                if awake != self.known.get(name):
                    self.known[name] = awake
                    found = [{'addresses': ['10.99.0.9'], 'conditions': {'ready': True}}] if awake else []
                    self.kube.patch('EndpointSlice', f'{name}-own', SPACE, {'endpoints': found})


def label(api, name):
    return api.one('Pod', name, SPACE)['metadata']['labels'].get('preheat.dev/engine-state')


def slice_of(s, name):
    return s.kube.one('EndpointSlice', f'{name}-preheat', SPACE)


def leads_here(s, name):
    found = slice_of(s, name)
    return found and found['endpoints'][0]['addresses'] == [IP] and found['ports'][0]['port']


def call(port, who):
    """Status, body, and the seconds between its first and its last piece."""
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=120)
    connection.request('POST', '/v1/completions', '{"prompt": "x"}', {'X-Caller': who, 'Content-Type': 'application/json'})
    answer = connection.getresponse()
    first = answer.read(1)
    begun = time.monotonic()
    return answer.status, (first + answer.read()).decode(), time.monotonic() - begun


def calls(port, who, count):
    """All at once."""
    found = [None] * count

    def one(number):
        found[number] = call(port, f'{who}-{number}')

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def open_cluster(s):
    engines = {name: Engine(f'127.77.0.{number + 1}') for number, name in enumerate(MODELS)}
    s.kube.create({'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': SPACE}})
    s.kube.create({'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': NODE}})
    s.kube.patch('Node', NODE, None, {'status': {'conditions': [{'type': 'Ready', 'status': 'True', 'reason': 'Played'}]}}, 'status')
    for name, engine in engines.items():
        s.kube.create({'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {
            'name': name, 'namespace': SPACE, 'labels': {'app': name, 'preheat.dev/engine-state': 'asleep'}},
            'spec': {'nodeName': NODE, 'containers': [{'name': 'engine', 'image': 'registry.invalid/vllm:1'}],
                     'automountServiceAccountToken': False}})
        now = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())
        s.kube.patch('Pod', name, SPACE, {'status': {
            'phase': 'Running', 'podIP': engine.address, 'podIPs': [{'ip': engine.address}], 'startTime': now,
            'conditions': [{'type': kind, 'status': 'True', 'lastTransitionTime': now}
                           for kind in ('PodScheduled', 'Initialized', 'ContainersReady', 'Ready')],
            'containerStatuses': [{'name': 'engine', 'ready': True, 'started': True, 'restartCount': 0, 'image': 'x', 'imageID': 'x',
                                   'state': {'running': {'startedAt': now}}}]}}, 'status')
    return engines


def manifest(s, engines):
    path = f'{s.folder}/pools.yaml'
    with open(path, 'w', encoding='utf-8') as file:
        file.write('---\n'.join(POOL.format(name=name, port=engines[name].port, endpoint=s.machines.url) for name in MODELS))
    s.must(s.options.preheat, 'check', path)
    return path


def bind(s, role):
    s.must('kubectl', 'create', 'rolebinding', role, '-n', SPACE, f'--clusterrole={role}', '--serviceaccount=preheat:preheat-a')


def activator(s):
    s.speed = 10
    s.start_machines({'groups': [GROUP], 'pools': []}, {'small': {'min': 0, 'max': 1, 'standby': 0}})
    engines = open_cluster(s)
    services = Services(s, engines)
    s.open_eyes()
    s.accounts('preheat-a')
    bind(s, 'preheat-share')
    controller = s.controller('preheat-a', '-f', manifest(s, engines), '--no-election')
    controller.environment['POD_IP'] = IP
    controller.start()
    s.expect('without the right to it, it says so', lambda: s.told('ActivatorNotOpen', 'services "m0" is forbidden'))
    bind(s, 'preheat-activator')
    s.expect('with it, both Services lead to Preheat', lambda: all(leads_here(s, name) for name in MODELS))

    status, text, spread = call(leads_here(s, 'm0'), 'first')
    s.check(f'a request to a sleeper is answered ({status}, {text})', (status, text) == (200, 'token0token1token2token3token4'))
    s.check(f'as it is made: its last piece {spread:.1f} s after the first', spread > 0.3)
    s.expect('who is awake is reached without Preheat', lambda: not slice_of(s, 'm0'))
    s.check('and the other is not', leads_here(s, 'm1'))

    found = calls(leads_here(s, 'm1'), 'crowd', 20)
    s.check('twenty at once to the other are all answered', all(status == 200 for status, _, _ in found))
    s.check('the first made room', engines['m0'].asleep and not engines['m1'].asleep)
    s.check('and its Service led here before its engine left it', led_here_before(s, 'm0'))

    controller.kill()
    leave_slice(s, 'gone', {})
    leave_slice(s, 'others', {'preheat.dev/keeper': 'another.preheat'})
    controller.start()
    s.expect('a new process has doors of its own', lambda: answers(s, 'm0'))
    s.expect('the slice of a pool that went meanwhile goes', lambda: not slice_of(s, 'gone'))
    s.check("another controller's stays", slice_of(s, 'others'))
    port, found = s.expect('the other leads here', lambda: leads_here(s, 'm1')), []
    last = threading.Thread(target=lambda: found.append(call(port, 'last')))
    last.start()
    s.expect('its engine has a request', lambda: engines['m1'].running)
    controller.signal(signal.SIGTERM)
    last.join()
    s.check(f'which is answered though the process was asked to stop {found}', found and found[0][0] == 200 and 'token4' in found[0][1])
    services.ended.set()
    s.check('it ends by itself on SIGTERM with 0', controller.ended() == 0)  # a second signal would end it at once
    for name, engine in engines.items():
        s.check(f'{name}: nothing went wrong {engine.wrong}', not engine.wrong)


def leave_slice(s, name, labels):
    """As that of m0, of a pool that there is no more."""
    found = s.expect('the Service of who sleeps leads here', lambda: slice_of(s, 'm0'))
    s.kube.create({'apiVersion': 'discovery.k8s.io/v1', 'kind': 'EndpointSlice', 'addressType': found['addressType'],
                   'metadata': {'name': f'{name}-preheat', 'namespace': SPACE,
                                'labels': found['metadata']['labels'] | {'kubernetes.io/service-name': name} | labels},
                   'endpoints': found['endpoints'], 'ports': found['ports']})


def led_here_before(s, name):
    """By the API server's log: woken (two labels), a slice written, and only then another label."""
    audit = [e for e in s.collect()['audit'] if e['verb'] == 'patch' and e['code'] < 300]
    labels = [e for e in audit if e['resource'] == 'pods' and e['name'] == name]
    slices = [e for e in audit if e['resource'] == 'endpointslices' and e['name'] == f'{name}-preheat']
    return len(labels) > 2 and any(labels[1]['done'] <= e['at'] and e['done'] <= labels[2]['at'] for e in slices)


def answers(s, name):
    port = leads_here(s, name)
    try:
        return port and call(port, 'again')[0] == 200
    except OSError:
        return False


if __name__ == '__main__':
    stage.main(activator, 'activator')
