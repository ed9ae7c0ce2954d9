#!/usr/bin/env python3
"""The tables with which answers in Protobuf are read: each field stands so in the published descriptors, and of objects with
everything in them the server's Protobuf says what its JSON says.
with_rig.sh python3 tests/live/protobuf.py PROTOBUF_LINES"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'scenario'))
from kube import Kube  # noqa: E402

VERSION = 'v0.36.4'
FILES = {'k8s.io/api': [f'{g}/v1/generated.proto' for g in ('core', 'batch', 'policy', 'storage', 'resource')],
         'k8s.io/apimachinery': ['pkg/apis/meta/v1/generated.proto']}
PATHS = {'Node': '/api/v1/nodes', 'Pod': '/api/v1/pods', 'Event': '/api/v1/events',
         'PersistentVolumeClaim': '/api/v1/persistentvolumeclaims', 'PersistentVolume': '/api/v1/persistentvolumes',
         'Namespace': '/api/v1/namespaces', 'ResourceQuota': '/api/v1/resourcequotas',
         'PodDisruptionBudget': '/apis/policy/v1/poddisruptionbudgets', 'Job': '/apis/batch/v1/jobs',
         'StorageClass': '/apis/storage.k8s.io/v1/storageclasses', 'ResourceClaim': '/apis/resource.k8s.io/v1/resourceclaims'}
# That they are there says something, though they are empty.
SAID = {'emptyDir', 'hostPath', 'ephemeral', 'labelSelector', 'namespaceSelector', 'selector'}
META_TIME = {'.k8s.io.apimachinery.pkg.apis.meta.v1.Time', '.k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime', 'Time', 'MicroTime'}
QUANTITY = '.k8s.io.apimachinery.pkg.api.resource.Quantity'


def fail(text):
    sys.exit(f'FAILED: {text}')


def tables(program):
    """{message: {name: (number, kind, is list, message of it)}}"""
    found = {}
    for line in subprocess.run([program, 'table'], check=True, capture_output=True, text=True).stdout.splitlines():
        message, number, name, kind, count, of = line.split()
        found.setdefault(message, {})
        if name != '-':
            found[message][name] = (int(number), kind, count == 'many', of)
    return found


def descriptors():
    """{message: {name: (number, type, is list)}} of the Go modules, None where they cannot be had."""
    found = {}
    for module, files in FILES.items():
        got = subprocess.run(['go', 'mod', 'download', '-json', f'{module}@{VERSION}'], capture_output=True, text=True, check=False)
        if got.returncode:
            return None
        for file in files:
            text = open(os.path.join(json.loads(got.stdout)['Dir'], file), encoding='utf-8').read()
            package = re.search(r'^package (\S+);', text, re.M).group(1)
            for message, body in re.findall(r'^message (\w+) \{\n(.*?)^\}', text, re.M | re.S):
                found[f'{package}.{message}'] = {
                    name: (int(number), kind, bool(many) or kind.startswith('map'), package)
                    for many, kind, name, number in re.findall(
                        r'^  (?:optional |(repeated ))?(map<string, [\w.]+>|[\w.]+) (\w+) = (\d+);', body, re.M)}
    return found


def kind_of(published, package):
    """What a published type is in our words, and the message it is of."""
    if published in META_TIME:
        return 'time', '-'
    simple = {'string': 'text', 'int32': 'int', 'int64': 'int', 'bool': 'bool', QUANTITY: 'quantity', 'map<string, string>': 'map',
              f'map<string, {QUANTITY}>': 'quantity-map'}
    if published in simple:
        return simple[published], '-'
    return 'message', published[1:] if published.startswith('.') else f'{package}.{published}'


def check_descriptors(ours, theirs):
    count = 0
    for message, fields in ours.items():
        if message not in theirs:
            fail(f'{message} is not published')
        for name, (number, kind, is_list, of) in fields.items():
            if name not in theirs[message]:
                fail(f'{message}: {name} is not published; it has {sorted(theirs[message])}')
            at, published, many, package = theirs[message][name]
            wanted, inner = kind_of(published, package)
            is_map = kind in ('map', 'quantity-map')
            if (number, kind.replace('inline', 'message'), is_list or is_map, of) != (at, wanted, many, inner):
                fail(f'{message}: {name} is {number} {kind} {of}, published as {at} {published}')
            count += 1
    print(f'ok: {count} fields of {len(ours)} messages stand as published')


def said(value, name=''):
    """Without what says nothing."""
    if isinstance(value, dict):
        kept = {k: said(v, k) for k, v in value.items()}
        return {k: v for k, v in kept.items() if v not in (None, '', 0, False, [], {}) or k in SAID or name in ('labels', 'matchLabels')}
    if isinstance(value, list):
        return [said(v) for v in value]
    return value


def pruned(value, message, ours):
    """Of the server's JSON what the tables name."""
    kept = {}
    for name, (_, kind, is_list, of) in ours[message].items():
        if kind == 'inline':
            kept.update(pruned(value, of, ours))
        elif name in value and kind == 'message':
            kept[name] = [pruned(v, of, ours) for v in value[name] or []] if is_list else pruned(value[name], of, ours)
        elif name in value and kind == 'time' and value[name]:
            kept[name] = re.sub(r'(\.\d{3})\d*Z$', r'\1Z', value[name]).replace('.000Z', 'Z')
        elif name in value:
            kept[name] = value[name]
    return kept


TERM = {'topologyKey': 'zone', 'labelSelector': {'matchLabels': {'app': 'x', 'none': ''},
                                                 'matchExpressions': [{'key': 'a', 'operator': 'In', 'values': ['b', '']}]}}
REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution'
RICH_POD = {
    'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {
        'name': 'rich', 'namespace': 'default', 'labels': {'app': 'x', 'none': ''}, 'finalizers': ['preheat.dev/test'],
        'annotations': {'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false', 'text': 'a "quoted" \\ line\nand ü\t'}},
    'spec': {
        'terminationGracePeriodSeconds': 7, 'schedulerName': 'nobody', 'nodeSelector': {'disk': 'fast'},
        'affinity': {
            'nodeAffinity': {REQUIRED: {'nodeSelectorTerms': [
                {'matchExpressions': [{'key': 'gpu', 'operator': 'Gt', 'values': ['1']}, {'key': 'b', 'operator': 'Exists'}]},
                {'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': ['n']}]}]}},
            'podAffinity': {REQUIRED: [{**TERM, 'namespaceSelector': {}}, {**TERM, 'namespaces': ['a', 'b']}]},
            'podAntiAffinity': {REQUIRED: [TERM]}},
        'tolerations': [{'operator': 'Exists'}, {'key': 'k', 'value': 'v', 'effect': 'NoExecute', 'tolerationSeconds': 5}],
        'topologySpreadConstraints': [{'maxSkew': 2, 'topologyKey': 'zone', 'whenUnsatisfiable': 'DoNotSchedule', 'minDomains': 3,
                                       'labelSelector': TERM['labelSelector'], 'matchLabelKeys': ['pod-template-hash'],
                                       'nodeAffinityPolicy': 'Ignore', 'nodeTaintsPolicy': 'Honor'}],
        'schedulingGates': [{'name': 'preheat.dev/wait'}],
        'resourceClaims': [{'name': 'a', 'resourceClaimName': 'claim'}],
        'initContainers': [{'name': 'i', 'image': 'init', 'restartPolicy': 'Always'}],
        'containers': [{'name': 'c', 'image': 'vllm', 'ports': [{'containerPort': 80, 'hostPort': 8080, 'hostIP': '127.0.0.1', 'protocol': 'UDP'}],
                        'resources': {'limits': {'nvidia.com/gpu': 2, 'cpu': '1500m'}, 'requests': {'cpu': '250m', 'memory': '1Gi'}}},
                       {'name': 'd', 'image': 'side'}],
        'volumes': [{'name': 'e', 'emptyDir': {}}, {'name': 'm', 'emptyDir': {'medium': 'Memory'}}, {'name': 'h', 'hostPath': {'path': '/'}},
                    {'name': 'p', 'persistentVolumeClaim': {'claimName': 'data'}},
                    {'name': 'q', 'ephemeral': {'volumeClaimTemplate': {'spec': {
                        'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': '1Gi'}}}}}},
                    {'name': 'n', 'configMap': {'name': 'x'}}]}}
RICH_STATUS = {'status': {
    'phase': 'Pending', 'podIP': '10.0.0.7', 'podIPs': [{'ip': '10.0.0.7'}],
    'conditions': [{'type': 'Ready', 'status': 'False', 'reason': 'No', 'message': 'not yet', 'lastTransitionTime': '2026-01-02T03:04:05Z'}],
    'containerStatuses': [{'name': 'c', 'image': 'i', 'imageID': '', 'ready': False, 'restartCount': 0,
                           'state': {'running': {'startedAt': '2026-01-02T03:04:05Z'}}}],
    'initContainerStatuses': [{'name': 'i', 'image': 'i', 'imageID': '', 'ready': False, 'restartCount': 1,
                               'state': {'waiting': {'reason': 'ImagePullBackOff', 'message': 'no such image'}}}],
    'resourceClaimStatuses': [{'name': 'a', 'resourceClaimName': 'claim'}]}}
OBJECTS = [
    RICH_POD,
    {'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'rich', 'labels': {'zone': 'a', 'none': ''}},
     'spec': {'providerID': 'aws:///a/i-1', 'unschedulable': True, 'taints': [{'key': 'k', 'value': 'v', 'effect': 'NoSchedule'},
                                                                               {'key': 'only', 'effect': 'NoExecute'}]}},
    {'apiVersion': 'policy/v1', 'kind': 'PodDisruptionBudget', 'metadata': {'name': 'b', 'namespace': 'default'},
     'spec': {'minAvailable': 1, 'selector': TERM['labelSelector']}},
    {'apiVersion': 'v1', 'kind': 'ResourceQuota', 'metadata': {'name': 'q', 'namespace': 'default'},
     'spec': {'hard': {'requests.nvidia.com/gpu': '4', 'pods': '1k'}}},
    {'apiVersion': 'storage.k8s.io/v1', 'kind': 'StorageClass', 'metadata': {'name': 's'}, 'provisioner': 'x.example.com',
     'volumeBindingMode': 'WaitForFirstConsumer',
     'allowedTopologies': [{'matchLabelExpressions': [{'key': 'zone', 'values': ['a', 'b']}]}]},
    {'apiVersion': 'v1', 'kind': 'PersistentVolume', 'metadata': {'name': 'v', 'labels': {'zone': 'a'}},
     'spec': {'capacity': {'storage': '10Gi'}, 'accessModes': ['ReadWriteOnce'], 'storageClassName': 's',
              'claimRef': {'namespace': 'default', 'name': 'data'}, 'csi': {'driver': 'x', 'volumeHandle': 'y'},
              'nodeAffinity': {'required': {'nodeSelectorTerms': [{'matchExpressions': [{'key': 'zone', 'operator': 'In', 'values': ['a']}]}]}}}},
    {'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': {'name': 'data', 'namespace': 'default'},
     'spec': {'accessModes': ['ReadWriteOnce'], 'storageClassName': 's', 'volumeName': 'v', 'resources': {'requests': {'storage': '5Gi'}}}},
    {'apiVersion': 'batch/v1', 'kind': 'Job', 'metadata': {'name': 'j', 'namespace': 'default'},
     'spec': {'parallelism': 3, 'completions': 5, 'completionMode': 'Indexed', 'suspend': True,
              'template': {'spec': {'restartPolicy': 'Never', 'containers': [{'name': 'c', 'image': 'i'}]}}}},
    {'apiVersion': 'v1', 'kind': 'Event', 'metadata': {'name': 'e', 'namespace': 'default'}, 'reason': 'Rebooted', 'message': 'm', 'type': 'Normal',
     'involvedObject': {'kind': 'Node', 'name': 'rich', 'namespace': 'default'}, 'firstTimestamp': '2026-01-02T03:04:05Z',
     'lastTimestamp': '2026-01-02T03:05:05Z', 'eventTime': '2026-01-02T03:04:05.123456Z', 'reportingComponent': 'x', 'reportingInstance': 'y',
     'action': 'z'},
    {'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaim', 'metadata': {'name': 'claim', 'namespace': 'default'},
     'spec': {'devices': {'requests': [{'name': 'gpu', 'exactly': {'deviceClassName': 'gpu'}}]}}},
]
CLAIM_STATUS = {'status': {'allocation': {
    'devices': {'results': [{'request': 'gpu', 'driver': 'gpu.example.com', 'pool': 'n', 'device': 'gpu-0'}]},
    'nodeSelector': {'nodeSelectorTerms': [{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': ['rich']}]}]}}}}


def plural_path(o, name=''):
    base, _, plural = PATHS[o['kind']].rpartition('/')
    space = f"/namespaces/{o['metadata']['namespace']}" if 'namespace' in o['metadata'] else ''
    return f'{base}{space}/{plural}{name}'


def fill(kube):
    for o in OBJECTS:
        kube.call('POST', plural_path(o), o)
    kube.call('PATCH', plural_path(RICH_POD, '/rich/status'), RICH_STATUS, 'application/merge-patch+json')
    kube.call('PATCH', plural_path(OBJECTS[1], '/rich/status'),
              {'status': {'allocatable': {'cpu': '63500m', 'nvidia.com/gpu': '8', 'memory': '1Ti'}, 'conditions': [
                  {'type': 'Ready', 'status': 'True', 'reason': 'KubeletReady', 'message': 'm', 'lastTransitionTime': '2026-01-02T03:04:05Z',
                   'lastHeartbeatTime': '2026-01-02T03:04:05Z'}]}}, 'application/merge-patch+json')
    kube.call('PATCH', plural_path(OBJECTS[-1], '/claim/status'), CLAIM_STATUS, 'application/merge-patch+json')
    kube.call('DELETE', plural_path(RICH_POD, '/rich'), {'gracePeriodSeconds': 30})


def raw(kube, path, accept):
    connection = kube.connect(60)
    connection.request('GET', path, headers={'Accept': accept})
    answer = connection.getresponse()
    return answer.status, answer.getheader('Content-Type'), answer.read()


def check_answers(kube, program, ours):
    for kind, path in PATHS.items():
        status, content, body = raw(kube, path, 'application/vnd.kubernetes.protobuf, application/json')
        if (status, content) != (200, 'application/vnd.kubernetes.protobuf'):
            fail(f'{path}: {status} {content}')
        lines = subprocess.run([program, 'read', path], input=body, check=True, capture_output=True).stdout.splitlines()
        items = json.loads(raw(kube, path, 'application/json')[2])['items']
        message = next(m for m in ours if m.endswith(f'.{kind}'))
        if len(lines) != len(items) or not items:
            fail(f'{path}: {len(lines)} objects in Protobuf, {len(items)} in JSON')
        for line, item in zip(lines, items):
            one, other = said(json.loads(line)), said(pruned(item, message, ours))
            if one != other:
                fail(f'{path}: in Protobuf\n{json.dumps(one, sort_keys=True, indent=1)}\nin JSON\n{json.dumps(other, sort_keys=True, indent=1)}')
        used = {name for item in items for name in names(pruned(item, message, ours))}
        print(f'ok: {len(items)} of {path}, {len(used)} fields, {len(body)} bytes in Protobuf')


def names(value, path=''):
    """Every path that an object uses."""
    if isinstance(value, dict):
        for k, v in value.items():
            yield f'{path}.{k}'
            yield from names(v, f'{path}.{k}')
    for v in value if isinstance(value, list) else []:
        yield from names(v, path)


def main():
    program = sys.argv[1]
    ours = tables(program)
    theirs = descriptors()
    if theirs:
        check_descriptors(ours, theirs)
    else:
        print(f'skipped: the descriptors of k8s.io/api {VERSION} cannot be had')
    kube = Kube(os.environ['RIG_DIR'])
    fill(kube)
    check_answers(kube, program, ours)


if __name__ == '__main__':
    main()
