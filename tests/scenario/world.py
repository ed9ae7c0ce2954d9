"""The world of the scenarios: examples/rig with its three pools on 60 machines, smaller where a test wants that."""
import json
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RIG = os.path.join(ROOT, 'examples', 'rig')
WORKLOADS = os.path.join(RIG, 'workloads.yaml')
SPACE = 'llm'


def text_of(name):
    with open(os.path.join(RIG, name), encoding='utf-8') as file:
        return file.read()


class World:
    """`sizes` are other maxima of groups than those of the example."""

    def __init__(self, **sizes):
        self.sizes = {name.replace('_', '-'): size for name, size in sizes.items()}
        self.trace = None  # of chat

    def cloud(self):
        config = json.loads(text_of('machines.json'))
        for group in config['groups']:
            group['max'] = self.sizes.get(group['name'], group['max'])
        if self.trace:
            config['pools'][0]['trace'] = self.trace
        return config

    def manifests(self, endpoint):
        text = text_of('pools.yaml').replace('http://127.0.0.1:8700', endpoint)
        for name, size in self.sizes.items():
            text = re.sub(rf'(\{{ name: {name},(?:[^}}]|\}}[^,]*,)*? max: )\d+', rf'\g<1>{size}', text)
        return text

    def limits(self):
        """{group: {min, max, standby}} as the manifests say."""
        found = re.findall(r'\{ name: ([a-z-]+), provider(?:.|\n)*? min: (\d+), max: (\d+)(?:,\s+standby: \{ max: (\d+))?',
                           self.manifests(''))
        return {name: {'min': int(least), 'max': int(most), 'standby': int(stopped or 0)}
                for name, least, most, stopped in found}


class Morning(World):
    """Chat follows its traffic. Embed is scaled by its team, so what it needs is exactly the pods that wait: there things
    can be struck for certain. It prefers spot machines, with a single on-demand one to fall back on."""

    EMBED = ("{ name: embed, provider: simulated, simulated: { endpoint: \"%s\" }, zone: z1,\n"
             "        instanceType: g5.12xlarge, capacityType: spot, gpusPerNode: 4, pricePerHour: 1.9, min: 1, max: 9 }\n"
             "    - { name: embed-od, provider: simulated, simulated: { endpoint: \"%s\" }, zone: z3,\n"
             "        instanceType: g5.12xlarge, capacityType: on-demand, gpusPerNode: 4, pricePerHour: 4.8, min: 0, max: 1 }")

    def __init__(self):
        super().__init__(train=10)

    def cloud(self):
        config = super().cloud()
        embed = next(group for group in config['groups'] if group['name'] == 'embed')
        embed['max'] = 9
        config['groups'].append(dict(embed, name='embed-od', max=1, zones=['z3'], labels=dict(
            embed['labels'], **{'simulated.preheat.dev/node-group': 'embed-od'})))
        next(pool for pool in config['pools'] if pool['name'] == 'embed')['groups'].append('embed-od')
        return config

    def manifests(self, endpoint):
        text = super().manifests(endpoint)
        text, ours = re.subn(r'\{ name: embed, provider(?:[^}]|\}[^,\n]*,)*? max: \d+ \}', self.EMBED % (endpoint, endpoint), text)
        text, team = re.subn(r' *scaleTargetRef: \{[^}]*name: embed \}\n', '', text)
        if (ours, team) != (1, 1):
            raise SystemExit('examples/rig/pools.yaml tells embed otherwise than the morning needs')
        return text


def job(name, pods, run_for):
    """A gang of training pods, a node each, that ends by itself after so much simulated time."""
    limits = {'nvidia.com/gpu': '8'}
    return {'apiVersion': 'batch/v1', 'kind': 'Job', 'metadata': {'name': name, 'namespace': SPACE},
            'spec': {'parallelism': pods, 'completions': pods, 'completionMode': 'Indexed', 'backoffLimit': 6,
                     'template': {'metadata': {'labels': {'app': 'train'},
                                               'annotations': {'rig.preheat.dev/run-for': run_for}},
                                  'spec': {'restartPolicy': 'Never', 'nodeSelector': {'rig.preheat.dev/pool': 'train'},
                                           'tolerations': [{'key': 'nvidia.com/gpu', 'operator': 'Exists',
                                                            'effect': 'NoSchedule'}],
                                           'containers': [{'name': 'work', 'image': 'registry.invalid/train:1', 'resources': {
                                               'requests': {'cpu': '8', **limits}, 'limits': limits}}]}}}}
