"""A cloud account for a scenario: node groups that EKS or AKS sizes over HTTPS, the example's WarmPool on them, and who the
controller is there."""
import base64
import json
import os
import ssl
import subprocess
import time
import urllib.parse
import urllib.request

import laws
from world import ROOT, SPACE, WORKLOADS

APP = 'llama-vllm'
# Tokens, with the terms in them, are not told to these clouds: their sizes are absolute.
LAWS = tuple(law for law in laws.LAWS if law not in (laws.never_bought_twice, laws.terms_in_order))
# What a workload has to bear on any of the groups; AKS taints its spot machines.
TOLERATES = (
    'tolerations: [ { key: nvidia.com/gpu, operator: Exists, effect: NoSchedule } ]',
    'tolerations: [ { key: nvidia.com/gpu, operator: Exists }, { key: kubernetes.azure.com/scalesetpriority, operator: Exists } ]')
GPU_TAINT = {'key': 'nvidia.com/gpu', 'value': 'present', 'effect': 'NoSchedule'}
A_REPLICA = 1.3  # requests a second of 1000 and 200 tokens that one replica of eight sequences does
STAGES = {'provision': '40s', 'register': '15s', 'device': '10s', 'image': '20s', 'load': '20s', 'wake': '5s',
          'wake_register': '2s', 'wake_device': '3s', 'stop': '20s', 'terminate': '20s', 'refuse': '10s'}
# What the rig's models are, and how fast its machines: the rest of the manifest is the example's.
PACE = (('    gpusPerReplica: 1\n', '    gpusPerReplica: 1\n    maxSequences: 8\n    prefillTokensPerSecond: 25k\n'
         '    interTokenLatency: 30ms\n'),
        ('  signals: { engine: vllm }\n', '  signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 15s } }\n'
         '  headroom: { min: 1 }\n  scaleDown: { after: 3m }\n  leadTime: { total: { p50: 110s, p95: 150s } }\n'))


class Account:
    """`cloud` is aws or azure; `door` is what the machines program calls its listener."""

    cloud = example = ''
    spot = on_demand = ''  # groups, by the cloud's names
    spot_group = ''  # by the manifest's
    tries_again = False  # by itself, what it could not have
    standby_lead = ''  # as the example has it, at which standby is no faster than a new machine is here, and is left out
    pace, edits = PACE, ()

    def __init__(self, stage):
        self.stage, self.folder = stage, stage.folder
        self.ca, self.wire = os.path.join(self.folder, 'ca.pem'), os.path.join(self.folder, 'wire')
        self.url = ''
        self.streams = []  # (requests a second, end in simulated seconds)

    def group(self, name, **more):
        return {'name': name, 'min': 0, 'instance_type': 'g5.xlarge', 'count': 1, 'cpu': '64', 'memory': '512Gi',
                'labels': {'rig.preheat.dev/pool': 'chat'}, 'taints': [GPU_TAINT], 'stages': STAGES, **more}

    def config(self):
        """Groups and who is whom; a pool of traffic beside them."""
        return {**self.tenancy(), 'pools': [{
            'name': 'chat', 'namespace': SPACE, 'selector': {'app': APP}, 'model': 'chat-model',
            'groups': [g['name'] for g in self.tenancy()['groups']], 'max_sequences': 8,
            'prefill_tokens_per_second': 25000, 'inter_token_latency': '30ms', 'objective': '2s'}]}

    def open_door(self):
        """Machines behind the account's door."""
        s = self.stage
        s.start_machines(self.config(), self.limits(), f'--{self.cloud}', '127.0.0.1:0', '--ca', self.ca, '--wire', self.wire)
        with open(s.machines.out, encoding='utf-8') as file:
            said = file.read()
        self.url = next(line.split()[-1] for line in said.splitlines() if line.startswith(f'{self.cloud} on '))

    def open(self):
        """Beside it the team's workload, and eyes on all of it."""
        s = self.stage
        self.open_door()
        path = os.path.join(self.folder, 'workload.yaml')
        with open(WORKLOADS, encoding='utf-8') as file:
            parts = [part for part in file.read().split('---\n') if 'embed' not in part]
        with open(path, 'w', encoding='utf-8') as file:
            file.write('---\n'.join(parts).replace('name: chat', f'name: {APP}').replace('app: chat', f'app: {APP}')
                       .replace(*TOLERATES))
        s.must('kubectl', 'apply', '-f', path)
        s.open_eyes()

    def manifest(self, name='pool.yaml', edits=()):
        """The example, at the rig's pace; edits are (old, new), and each must be there once."""
        with open(os.path.join(ROOT, self.example), encoding='utf-8') as file:
            text = file.read()
        for old, new in (*self.pace, *self.edits, *edits):
            if text.count(old) != 1:
                raise SystemExit(f'{self.example} does not say {old!r} once')
            text = text.replace(old, new)
        path = os.path.join(self.folder, name)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return path

    def traffic(self, rate, for_s):
        """Requests a second, beside what there is."""
        self.streams.append((rate, self.stage.machines.score()['simulated_s'] + for_s))
        self.stage.machines.traffic('chat', round(rate, 2), for_s)

    def more(self, replicas, for_s=400):
        """Traffic for all machines that were asked for and so many more: these must be asked for, too."""
        now = self.stage.machines.score()['simulated_s']
        there = sum(g['desired'] for g in self.stage.machines.groups().values())
        present = sum(rate for rate, end in self.streams if end > now)
        self.traffic(max((there + replicas) * A_REPLICA - present, A_REPLICA), for_s)

    def quiet(self):
        """No more requests come: what they needed may go."""
        self.streams = []
        self.stage.machines.end_traffic('chat')

    def exchanges(self, since=0.0):
        with open(self.wire, encoding='utf-8') as file:
            return [x for x in map(json.loads, file) if x['at'] / 1000 >= since]

    def refuses(self, cases):
        """Controllers that start with something wrong: each goes on, and says clearly what. A case is what is wrong, what
        has to be said, edits of the manifest, and another environment or None."""
        s, begun = self.stage, []
        for number, (wrong, texts, edits, environment) in enumerate(cases):
            name = f'wrong-{number}'
            made = s.controller(name, '-f', self.manifest(name + '.yaml', edits), '--no-election', '--dry-run', account='preheat-a')
            made.environment.update(self.environment() if environment is None else environment)
            begun.append((made.start(), wrong, texts))
        for made, wrong, texts in begun:
            found = s.expect(f'told: {wrong}', lambda made=made, texts=texts: next(
                (o for o, t in made.lines() if o and o.get('level') == 'warn' and all(text in t for text in texts)), None))
            if found:
                s.mark('it says: ' + str(found.get('error') or found.get('why')))
            s.check('and goes on', made.is_running())
            s.check('and ends on SIGTERM with 0', made.stop(30) == 0)


class Eks(Account):
    cloud, example = 'aws', os.path.join('examples', 'eks', 'pool.yaml')
    spot, spot_group, on_demand = 'g5-spot', 'g5-spot', 'g5-od'
    tries_again, standby_lead = True, 'p50: 90s, p95: 150s'
    edits = (('      max: 20\n', '      max: 12\n'), ('      max: 10\n', '      max: 5\n'))
    TOKEN = 'projected.web-identity.token'

    def tenancy(self):
        zones = ['eu-west-1a', 'eu-west-1b']
        return {'aws': {'credentials_last': '370s'}, 'groups': [
            self.group('g5-spot', max=14, zones=zones, eks={'capacity_type': 'SPOT', 'retry': '30s'}),
            self.group('g5-od', max=5, zones=zones, initial=1, eks={'retry': '30s', 'instance_store': True})]}

    def limits(self):
        return {'g5-spot': {'min': 0, 'max': 12, 'standby': 0}, 'g5-od': {'min': 1, 'max': 5, 'standby': 4}}

    def token(self, text=TOKEN):
        path = os.path.join(self.folder, 'web-identity')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return path

    def add_by_hand(self, group, more):
        """As somebody does in the console."""
        s = self.stage
        s.machines.ask(f'/v1/groups/{group}/grow', {'token': f'by-hand-{time.time()}', 'desired': s.group(group)['desired'] + more})

    def environment(self):
        return {'AWS_ENDPOINT_URL': self.url, 'AWS_REGION': 'eu-west-1', 'AWS_CA_BUNDLE': self.ca, 'AWS_CONFIG_FILE': '/dev/null',
                'AWS_SHARED_CREDENTIALS_FILE': '/dev/null', 'AWS_EC2_METADATA_DISABLED': 'true',
                'AWS_ROLE_ARN': 'arn:aws:iam::111122223333:role/preheat', 'AWS_WEB_IDENTITY_TOKEN_FILE': self.token()}


class Aks(Account):
    cloud, example = 'azure', os.path.join('examples', 'aks', 'pool.yaml')
    spot, spot_group, on_demand = 'a100spot', 'a100-spot', 'a100'
    standby_lead = 'p50: 120s, p95: 240s'
    edits = (('      max: 20\n', '      max: 12\n'), ('      max: 10\n', '      max: 5\n'))
    TENANT = '11111111-2222-4333-8444-555555555555'

    def tenancy(self):
        self.make_keys()
        spot = {'scaleSetPriority': 'Spot', 'scaleSetEvictionPolicy': 'Delete', 'spotMaxPrice': -1}
        return {'azure': {'tenant': self.TENANT, 'principals': [
                    {'client_id': 'app-federated', 'object_id': 'object-federated', 'federated': [{
                        'issuer': 'https://issuer.example/', 'subject': 'system:serviceaccount:preheat:preheat',
                        'key': os.path.join(self.folder, 'issuer.pub')}]},
                    {'client_id': 'somebody', 'object_id': 'object-somebody', 'secret': 'else'}]},
                'groups': [
                    self.group('a100spot', max=12, aks={'resource_group': 'llm', 'properties': spot}),
                    self.group('a100', max=5, initial=1, aks={'resource_group': 'llm', 'properties': {
                        'scaleDownMode': 'Deallocate'}}),
                    self.group('a100auto', max=5, aks={'resource_group': 'llm', 'properties': {
                        'enableAutoScaling': True, 'minCount': 0, 'maxCount': 5}})]}

    def limits(self):
        return {'a100spot': {'min': 0, 'max': 12, 'standby': 0}, 'a100': {'min': 1, 'max': 5, 'standby': 4}}

    def make_keys(self):
        key = os.path.join(self.folder, 'issuer.key')
        if not os.path.exists(key):
            self.stage.must('openssl', 'genrsa', '-out', key, '2048')
            self.stage.must('openssl', 'rsa', '-in', key, '-pubout', '-out', os.path.join(self.folder, 'issuer.pub'))

    def token(self):
        """As the kubelet projects it, for an hour."""
        now = int(time.time())
        said = {'iss': 'https://issuer.example/', 'nbf': now, 'exp': now + 3600, 'aud': ['api://AzureADTokenExchange'],
                'sub': 'system:serviceaccount:preheat:preheat'}
        text = '.'.join(url_safe(json.dumps(part).encode()) for part in ({'alg': 'RS256', 'typ': 'JWT'}, said))
        signed = subprocess.run(['openssl', 'dgst', '-sha256', '-sign', os.path.join(self.folder, 'issuer.key')],
                                input=text.encode(), stdout=subprocess.PIPE, check=True).stdout
        path = os.path.join(self.folder, 'federated')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(f'{text}.{url_safe(signed)}')
        return path

    def ask(self, path, body, method='POST', **headers):
        request = urllib.request.Request(self.url.replace('127.0.0.1', 'localhost') + path, body, headers, method=method)
        with urllib.request.urlopen(request, timeout=10, context=ssl.create_default_context(cafile=self.ca)) as answer:
            return json.loads(answer.read())

    def add_by_hand(self, pool, more):
        """As somebody does in the portal: the pool as it is, with another count."""
        token = self.ask(f'/{self.TENANT}/oauth2/v2.0/token', urllib.parse.urlencode({
            'grant_type': 'client_credentials', 'client_id': 'somebody', 'client_secret': 'else',
            'scope': 'https://management.azure.com/.default'}).encode())['access_token']
        path = ('/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/llm/providers/Microsoft.ContainerService/'
                f'managedClusters/prod/agentPools/{pool}?api-version=2026-02-01')
        found = self.ask(path, None, 'GET', Authorization=f'Bearer {token}')
        found['properties']['count'] += more
        self.ask(path, json.dumps(found).encode(), 'PUT', Authorization=f'Bearer {token}', **{'Content-Type': 'application/json'})

    def environment(self):
        url = self.url.replace('127.0.0.1', 'localhost')
        return {'AZURE_TENANT_ID': self.TENANT, 'AZURE_CLIENT_ID': 'app-federated', 'AZURE_FEDERATED_TOKEN_FILE': self.token(),
                'AZURE_AUTHORITY_HOST': url, 'AZURE_RESOURCE_MANAGER_ENDPOINT': url, 'SSL_CERT_FILE': self.ca}


def url_safe(data):
    return base64.urlsafe_b64encode(data).rstrip(b'=').decode()
