"""The world of the scenarios: three pools on five node groups of 60 machines, their workloads and their traffic."""
import json

SPACE = 'llm'
STAGES = {'provision': ('45s', '70s'), 'register': ('20s', '30s'), 'device': ('15s', '30s'), 'image': ('60s', '90s'),
          'load': ('60s', '90s')}


def stages():
    made = {name: {'p50': p50, 'p95': p95} for name, (p50, p95) in STAGES.items()}
    made.update({'wake': {'p50': '30s', 'p95': '45s'}, 'wake_register': '10s', 'wake_device': '5s', 'stop': '30s',
                 'terminate': '20s', 'refuse': '10s'})
    return made


def cloud_group(name, pool, maximum, gpus=1, **more):
    return {'name': name, 'min': 0, 'max': maximum, 'instance_type': f'g5.{gpus}x', 'count': gpus,
            'cpu': '64', 'memory': '512Gi',
            'labels': {'simulated.preheat.dev/node-group': name, 'rig.preheat.dev/pool': pool},
            'taints': [{'key': 'nvidia.com/gpu', 'value': 'present', 'effect': 'NoSchedule'}],
            'stages': stages(), **more}


class World:
    """Sizes are arguments, so that the crash test can have a smaller one."""

    def __init__(self, speed, chat_spot=24, chat_od=16, embed=8, train=12):
        self.speed = speed
        self.sizes = {'chat-spot': chat_spot, 'chat-od': chat_od, 'embed': embed, 'train': train}
        self.trace = None

    def cloud(self):
        groups = [cloud_group('chat-spot', 'chat', self.sizes['chat-spot'], zones=['z1', 'z2']),
                  cloud_group('chat-od', 'chat', self.sizes['chat-od'], zones=['z3'], initial=1,
                              stopped_node='keep'),
                  cloud_group('embed', 'embed', self.sizes['embed'], gpus=4, zones=['z1', 'z2'])]
        if self.sizes['train']:
            groups.append(cloud_group('train', 'train', self.sizes['train'], gpus=8, zones=['z1']))
        pools = [self.served('chat', ['chat-spot', 'chat-od'], 8, '30ms'), self.served('embed', ['embed'], 16, '10ms')]
        if self.trace:
            pools[0]['trace'] = self.trace
        return {'groups': groups, 'pools': pools}

    @staticmethod
    def served(name, groups, sequences, latency):
        return {'name': name, 'namespace': SPACE, 'selector': {'app': name}, 'model': f'{name}-model', 'groups': groups,
                'max_sequences': sequences, 'prefill_tokens_per_second': 25000, 'inter_token_latency': latency,
                'objective': '2s' if name == 'chat' else '10s'}

    def manifests(self, endpoint, chat_headroom=2):
        """The text of --pool FILE: JSON is YAML too."""
        pools = [self.chat(endpoint, chat_headroom), self.embed(endpoint)]
        if self.sizes['train']:
            pools.append(self.train(endpoint))
        return ''.join(f'---\n{json.dumps(pool, indent=1)}\n' for pool in pools)

    def chat(self, endpoint, headroom):
        spot = self.group(endpoint, 'chat-spot', capacityType='spot', pricePerHour=0.48, zone='z1')
        od = self.group(endpoint, 'chat-od', capacityType='on-demand', pricePerHour=1.21, min=1, zone='z3',
                        standby={'max': 6, 'priceShare': '2%', 'leadTime': {'p50': '120s', 'p95': '200s'}})
        return pool('chat', {
            'class': 'interactive', 'objective': {'queueWait': '2s', 'attainment': '99%'},
            'workload': workload('chat', 8, '30ms'), 'signals': signals(), 'nodeGroups': [spot, od],
            'leadTime': lead_time(), 'headroom': {'min': headroom}, 'scaleDown': {'after': '8m'}})

    def embed(self, endpoint):
        return pool('embed', {
            'class': 'embedding', 'objective': {'queueWait': '10s', 'attainment': '99%'},
            'workload': workload('embed', 16, '10ms'), 'signals': signals(),
            'nodeGroups': [self.group(endpoint, 'embed', gpusPerNode=4, pricePerHour=4.8, min=1)],
            'leadTime': lead_time(), 'scaleDown': {'after': '8m'}})

    def train(self, endpoint):
        return pool('train', {
            'class': 'training', 'objective': {'queueWait': '15m', 'attainment': '95%'},
            'workload': {'selector': {'matchLabels': {'app': 'train'}}, 'gpusPerReplica': 8}, 'signals': {'engine': 'pods'},
            'nodeGroups': [self.group(endpoint, 'train', gpusPerNode=8, pricePerHour=16)],
            'leadTime': {'total': {'p50': '150s', 'p95': '260s'}}, 'scaleDown': {'after': '4m'}})

    def group(self, endpoint, name, **more):
        return {'name': name, 'provider': 'simulated', 'simulated': {'endpoint': endpoint}, 'gpusPerNode': 1, 'min': 0,
                'max': self.sizes[name], 'instanceType': f'g5.{name}', **more}

    @staticmethod
    def objects():
        """What a team has in its namespace before Preheat comes."""
        return [{'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': SPACE}},
                deployment('chat', 1), deployment('embed', 2), budget('chat', 1)]


def pool(name, spec):
    return {'apiVersion': 'preheat.dev/v1alpha1', 'kind': 'WarmPool', 'metadata': {'name': name, 'namespace': SPACE},
            'spec': spec}


def workload(name, sequences, latency):
    return {'selector': {'matchLabels': {'app': name}},
            'scaleTargetRef': {'apiVersion': 'apps/v1', 'kind': 'Deployment', 'name': name}, 'gpusPerReplica': 1,
            'maxSequences': sequences, 'prefillTokensPerSecond': '25k', 'interTokenLatency': latency}


def signals():
    return {'engine': 'vllm', 'scrape': {'port': 8000, 'path': '/metrics', 'interval': '15s'}}


def lead_time():
    return {name: {'p50': p50, 'p95': p95} for name, (p50, p95) in STAGES.items()}


def pod_spec(name, gpus, **more):
    limits = {'nvidia.com/gpu': str(gpus)}
    return {'nodeSelector': {'rig.preheat.dev/pool': name},
            'tolerations': [{'key': 'nvidia.com/gpu', 'operator': 'Exists', 'effect': 'NoSchedule'}],
            'containers': [{'name': 'server', 'image': f'registry.invalid/{name}:1',
                            'ports': [{'containerPort': 8000}],
                            'resources': {'requests': {'cpu': '2', 'memory': '8Gi', **limits}, 'limits': limits}}],
            **more}


def deployment(name, replicas):
    labels = {'app': name}
    return {'apiVersion': 'apps/v1', 'kind': 'Deployment', 'metadata': {'name': name, 'namespace': SPACE},
            'spec': {'replicas': replicas, 'selector': {'matchLabels': labels},
                     'template': {'metadata': {'labels': labels, 'annotations': {'rig.preheat.dev/serve': 'vllm'}},
                                  'spec': pod_spec(name, 1, terminationGracePeriodSeconds=600)}}}


def budget(name, lost):
    return {'apiVersion': 'policy/v1', 'kind': 'PodDisruptionBudget', 'metadata': {'name': name, 'namespace': SPACE},
            'spec': {'maxUnavailable': lost, 'selector': {'matchLabels': {'app': name}}}}


def job(name, pods, run_for):
    return {'apiVersion': 'batch/v1', 'kind': 'Job', 'metadata': {'name': name, 'namespace': SPACE},
            'spec': {'parallelism': pods, 'completions': pods, 'completionMode': 'Indexed', 'backoffLimit': 6,
                     'template': {'metadata': {'labels': {'app': 'train'},
                                               'annotations': {'rig.preheat.dev/run-for': run_for}},
                                  'spec': pod_spec('train', 8, restartPolicy='Never')}}}
