"""The API server of a rig, as cluster admin; and watches that write down what happened, with the time of arrival."""
import http.client
import json
import os
import socket
import ssl
import threading
import time

PLURALS = {
    'Namespace': ('v1', 'namespaces'), 'Node': ('v1', 'nodes'), 'Pod': ('v1', 'pods'),
    'ServiceAccount': ('v1', 'serviceaccounts'), 'Event': ('events.k8s.io/v1', 'events'),
    'Deployment': ('apps/v1', 'deployments'), 'Job': ('batch/v1', 'jobs'), 'ConfigMap': ('v1', 'configmaps'),
    'PodDisruptionBudget': ('policy/v1', 'poddisruptionbudgets'), 'Lease': ('coordination.k8s.io/v1', 'leases'),
    'PriorityClass': ('scheduling.k8s.io/v1', 'priorityclasses'),
}


class Refused(Exception):
    """The server's answer was an error."""

    def __init__(self, status, text):
        super().__init__(f'{status}: {text[:400]}')
        self.status = status


class Kube:
    def __init__(self, rig_dir):
        self.rig_dir = rig_dir
        pki = os.path.join(rig_dir, 'pki')
        self.tls = ssl.create_default_context(cafile=os.path.join(pki, 'ca.crt'))
        self.tls.load_cert_chain(os.path.join(pki, 'admin.crt'), os.path.join(pki, 'admin.key'))
        with open(os.path.join(rig_dir, 'kubeconfig'), encoding='utf-8') as file:
            server = next(line.split()[1] for line in file if line.strip().startswith('server:'))
        self.host, port = server.removeprefix('https://').split(':')
        self.port = int(port)

    def connect(self, timeout):
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=self.tls)

    def call(self, method, path, body=None, kind='application/json', timeout=20):
        connection = self.connect(timeout)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {'Content-Type': kind, 'User-Agent': 'scenario'})
            answer = connection.getresponse()
            said = answer.read().decode()
            if answer.status >= 300:
                raise Refused(answer.status, said)
            return json.loads(said) if said.startswith('{') else said
        finally:
            connection.close()

    def get(self, path):
        return self.call('GET', path)

    def items(self, kind, namespace=None, selector=''):
        query = f'?labelSelector={selector}' if selector else ''
        return self.get(path_of(kind, namespace) + query)['items']

    def one(self, kind, name, namespace=None):
        """The object, or None where there is none."""
        try:
            return self.get(path_of(kind, namespace, name))
        except Refused as refused:
            if refused.status == 404:
                return None
            raise

    def create(self, thing):
        meta = thing['metadata']
        return self.call('POST', path_of(thing['kind'], meta.get('namespace')), thing)

    def patch(self, kind, name, namespace, change, sub=''):
        path = path_of(kind, namespace, name) + (f'/{sub}' if sub else '')
        return self.call('PATCH', path, change, 'application/merge-patch+json')

    def delete(self, kind, name, namespace=None):
        return self.call('DELETE', path_of(kind, namespace, name) + '?propagationPolicy=Background')


def path_of(kind, namespace=None, name=None):
    version, plural = PLURALS[kind]
    path = ('/api/' if version == 'v1' else '/apis/') + version
    path += f'/namespaces/{namespace}' if namespace else ''
    return f'{path}/{plural}' + (f'/{name}' if name else '')


class Watch(threading.Thread):
    """Follows one kind and keeps `shorten(object)` of each state, with the time it arrived. Lists again when it breaks."""

    def __init__(self, kube, kind, shorten):
        super().__init__(daemon=True, name=f'watch {kind}')
        self.kube, self.kind, self.shorten = kube, kind, shorten
        self.seen = []  # (time, key, state or None when it is gone)
        self.now = {}
        self.ended = threading.Event()
        self.lock = threading.Lock()

    def run(self):
        while not self.ended.is_set():
            try:
                self.follow(self.relist())
            except (OSError, Refused, http.client.HTTPException, ValueError):
                self.ended.wait(0.3)

    def relist(self):
        answer = self.kube.get(path_of(self.kind))
        present = {key_of(item): self.shorten(item) for item in answer['items']}
        with self.lock:
            gone = [key for key in self.now if key not in present]
        for key in gone:
            self.note(key, None)
        for key, state in present.items():
            self.note(key, state)
        return answer['metadata']['resourceVersion']

    def follow(self, version):
        connection = self.kube.connect(30)
        try:
            connection.request('GET', f'{path_of(self.kind)}?watch=1&resourceVersion={version}',
                               headers={'User-Agent': 'scenario'})
            answer = connection.getresponse()
            while not self.ended.is_set():
                line = answer.readline()
                if not line:
                    return
                event = json.loads(line)
                if event['type'] == 'ERROR':
                    return
                gone = event['type'] == 'DELETED'
                self.note(key_of(event['object']), None if gone else self.shorten(event['object']))
        except socket.timeout:
            return
        finally:
            connection.close()

    def note(self, key, state):
        with self.lock:
            if self.now.get(key) == state:
                return
            self.seen.append((time.time(), key, state))
            if state is None:
                self.now.pop(key, None)
            else:
                self.now[key] = state

    def snapshot(self):
        with self.lock:
            return dict(self.now)

    def history(self):
        with self.lock:
            return list(self.seen)

    def stop(self):
        self.ended.set()


def key_of(item):
    meta = item['metadata']
    return f"{meta['namespace']}/{meta['name']}" if 'namespace' in meta else meta['name']


def short_pod(pod):
    status = pod.get('status', {})
    ready = any(c['type'] == 'Ready' and c['status'] == 'True' for c in status.get('conditions', []))
    return {'uid': pod['metadata']['uid'], 'app': pod['metadata'].get('labels', {}).get('app', ''),
            'node': pod['spec'].get('nodeName', ''), 'phase': status.get('phase', ''), 'ready': ready,
            'ending': 'deletionTimestamp' in pod['metadata']}


GROUP_LABELS = ('eks.amazonaws.com/nodegroup', 'kubernetes.azure.com/agentpool', 'simulated.preheat.dev/node-group')


def short_node(node):
    meta, spec, status = node['metadata'], node.get('spec', {}), node.get('status', {})
    taints = [taint['key'] for taint in spec.get('taints', [])]
    ours = any(key.startswith('preheat.dev/') for key in meta.get('annotations', {})) or \
        any(key.startswith('preheat.dev/') for key in taints)
    labels = meta.get('labels', {})
    return {'cordoned': spec.get('unschedulable', False), 'ours': ours, 'taints': taints,
            'group': next((labels[key] for key in GROUP_LABELS if key in labels), ''),
            'gpus': int(status.get('allocatable', {}).get('nvidia.com/gpu', 0)),
            'ready': any(c['type'] == 'Ready' and c['status'] == 'True' for c in status.get('conditions', []))}


def short_deployment(deployment):
    return {'replicas': deployment['spec'].get('replicas', 1),
            'ready': deployment.get('status', {}).get('readyReplicas', 0)}


def short_event(event):
    return {'reason': event.get('reason', ''), 'note': event.get('note', ''), 'type': event.get('type', ''),
            'about': event.get('regarding', {}).get('kind', ''), 'name': event.get('regarding', {}).get('name', ''),
            'controller': event.get('reportingController', ''),
            'count': (event.get('series') or {}).get('count', 1)}
