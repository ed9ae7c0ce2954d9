"""A LeaderWorkerSet of two groups of two, as its controller makes pods: objects for preheat init, on standard output."""
import json


def pod(group, worker):
    name = f'big-{group}' + (f'-{worker}' if worker else '')
    # The leaders' StatefulSet is the set's; a leader has that of its workers.
    owner = f'big-{group}' if worker else 'big'
    server = ['vllm', 'serve', 'meta/huge', '--max-num-seqs', '48'] if worker == 0 else ['ray', 'start']
    labels = {'name': 'big', 'group-index': f'{group}', 'worker-index': f'{worker}', 'group-key': f'{group}7d', 'template-revision-hash': '5f'}
    container = {'name': 'server', 'image': 'vllm/vllm-openai:v0.11.0', 'args': server, 'resources': {'limits': {'nvidia.com/gpu': 8}}}
    return {'apiVersion': 'v1', 'kind': 'Pod',
            'metadata': {'name': name, 'namespace': 'llm', 'ownerReferences': [{'kind': 'StatefulSet', 'name': owner}],
                         'labels': {'app': 'big', **{f'leaderworkerset.sigs.k8s.io/{k}': v for k, v in labels.items()}}},
            'spec': {'nodeName': f'n-{group}-{worker}', 'containers': [container]}}


def objects():
    yield {'apiVersion': 'leaderworkerset.x-k8s.io/v1', 'kind': 'LeaderWorkerSet', 'metadata': {'name': 'big', 'namespace': 'llm'},
           'spec': {'replicas': 2, 'leaderWorkerTemplate': {'size': 2}}}
    for group in range(2):
        for worker in range(2):
            yield {'apiVersion': 'v1', 'kind': 'Node',
                   'metadata': {'name': f'n-{group}-{worker}', 'labels': {'eks.amazonaws.com/nodegroup': 'h100'}},
                   'status': {'allocatable': {'nvidia.com/gpu': '8'}}}
            yield pod(group, worker)
    # A Job's, which copied the labels of one.
    lone = pod(5, 0)
    lone['metadata'].update(name='lone-1-a', ownerReferences=[{'kind': 'Job', 'name': 'lone-1'}])
    yield {**lone, 'spec': {**lone['spec'], 'nodeName': 'n-0-0'}}


print(json.dumps({'apiVersion': 'v1', 'kind': 'List', 'items': list(objects())}))
