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
