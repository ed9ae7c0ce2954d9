"""Three model servers that share a namespace, and who scales them: objects for preheat init, on standard output."""
import json

SERVERS = (('chat', ['--model', 'meta/llama', '--served-model-name=chat'], 'vllm:num_requests_running'),
           ('code', ['serve', 'qwen/coder', '--max-num-seqs', '32'], None),
           ('draft', ['vllm serve meta/draft --port 8000'], None))


def objects():
    for name, args, metric in SERVERS:
        container = {'name': 'server', 'image': 'vllm/vllm-openai:v0.11.0', 'args': args, 'resources': {'limits': {'nvidia.com/gpu': 1}}}
        yield {'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': f'n-{name}', 'labels': {'eks.amazonaws.com/nodegroup': f'g-{name}'}},
               'status': {'allocatable': {'nvidia.com/gpu': '1'}}}
        yield {'apiVersion': 'apps/v1', 'kind': 'Deployment', 'metadata': {'name': name, 'namespace': 'llm'},
               'spec': {'selector': {'matchLabels': {'app': name}}}}
        yield {'apiVersion': 'v1', 'kind': 'Pod',
               'metadata': {'name': f'{name}-1-a', 'namespace': 'llm', 'labels': {'app': name},
                            'ownerReferences': [{'kind': 'ReplicaSet', 'name': f'{name}-1'}]},
               'spec': {'nodeName': f'n-{name}', 'containers': [container]}}
        scale = {'type': 'Resource', 'resource': {'name': 'cpu', 'target': {'type': 'Utilization', 'averageUtilization': 80}}}
        if metric:
            scale = {'type': 'Pods', 'pods': {'metric': {'name': metric}, 'target': {'type': 'AverageValue', 'averageValue': '20'}}}
        yield {'apiVersion': 'autoscaling/v2', 'kind': 'HorizontalPodAutoscaler', 'metadata': {'name': name, 'namespace': 'llm'},
               'spec': {'scaleTargetRef': {'kind': 'Deployment', 'name': name}, 'maxReplicas': 12, 'metrics': [scale]}}
    yield {'apiVersion': 'autoscaling/v2', 'kind': 'HorizontalPodAutoscaler', 'metadata': {'name': 'shop', 'namespace': 'web'},
           'spec': {'scaleTargetRef': {'kind': 'Deployment', 'name': 'shop'}, 'maxReplicas': 90, 'metrics': []}}


print(json.dumps({'apiVersion': 'v1', 'kind': 'List', 'items': list(objects())}))
