#!/usr/bin/env python3
"""A MachineDeployment of a real Cluster API, whose infrastructure is played by the rig's machines: it grows by its scale and shrinks
by the machine that was marked. A rollout and a MachineHealthCheck are its own acts, and let."""
import base64
import os
import threading
import time

import karpenter
import kube
import laws
import owners
import process
import stage
import world

SPACE, API = 'capi', '/apis/cluster.x-k8s.io/v1beta2/namespaces/capi'
INFRA = 'infrastructure.cluster.x-k8s.io'
DEPLOYMENT, MACHINES, HOSTS = f'{API}/machinedeployments/gpu', f'{API}/machines', f'/apis/{INFRA}/v1/namespaces/capi/rigmachines'
PLANES = HOSTS.replace('rigmachines', 'rigcontrolplanes')
FINALIZER, IN_CLUSTER = 'rig.preheat.dev/machine', {'cluster.x-k8s.io/cluster-name': 'rig'}
OF_POOL = {**IN_CLUSTER, 'cluster.x-k8s.io/deployment-name': 'gpu'}
MANIFEST = karpenter.MANIFEST.split('---')[0].replace('karpenter: { nodePool: gpu }', 'clusterApi: { machineDeployment: gpu, '
                                                      'namespace: capi, label: rig.preheat.dev/pool, value: chat }')


def definition(kind):
    free = {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True}
    return {'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition',
            # By the label Cluster API knows that it keeps its contract.
            'metadata': {'name': f'{kind.lower()}s.{INFRA}', 'labels': {'cluster.x-k8s.io/v1beta2': 'v1'},
                         'annotations': {'api-approved.kubernetes.io': 'unapproved, a test'}},
            'spec': {'group': INFRA, 'scope': 'Namespaced', 'names': {'kind': kind, 'plural': f'{kind.lower()}s'}, 'versions': [{
                'name': 'v1', 'served': True, 'storage': True, 'subresources': {'status': {}}, 'schema': {'openAPIV3Schema': {
                    'type': 'object', 'properties': {'spec': free, 'status': free}}}}]}}


def thing(kind, name, spec, version='cluster.x-k8s.io/v1beta2'):
    return {'apiVersion': version, 'kind': kind, 'metadata': {'name': name, 'namespace': SPACE, 'labels': IN_CLUSTER}, 'spec': spec}


def template(name):
    return {'infrastructureRef': {'apiGroup': INFRA, 'kind': 'RigMachineTemplate', 'name': name}}


def objects():
    """A cluster that is the rig itself, and a deployment of one machine."""
    with open(os.environ['KUBECONFIG'], encoding='utf-8') as file:
        kubeconfig = base64.b64encode(file.read().encode()).decode()
    secret = {'apiVersion': 'v1', 'kind': 'Secret', 'type': 'cluster.x-k8s.io/secret', 'data': {'value': kubeconfig},
              'metadata': {'name': 'rig-kubeconfig', 'namespace': SPACE, 'labels': IN_CLUSTER}}
    machine = {'clusterName': 'rig', 'version': 'v1.36.2', 'bootstrap': {'dataSecretName': 'none'}, **template('gpu-1')}
    deployment = {'clusterName': 'rig', 'replicas': 1, 'selector': {'matchLabels': OF_POOL},
                  'rollout': {'strategy': {'type': 'RollingUpdate', 'rollingUpdate': {'maxSurge': 1, 'maxUnavailable': 0}}},
                  'template': {'metadata': {'labels': OF_POOL}, 'spec': machine}}
    health = {'clusterName': 'rig', 'selector': {'matchLabels': OF_POOL}, 'checks': {'unhealthyNodeConditions': [
        {'type': 'Ready', 'status': 'Unknown', 'timeoutSeconds': 300}]}}
    hosts = [thing('RigMachineTemplate', name, {'template': {'spec': {}}}, f'{INFRA}/v1') for name in ('gpu-1', 'gpu-2')]
    # Without a control plane of its own it would drain no node.
    plane = {'apiGroup': INFRA, 'kind': 'RigControlPlane', 'name': 'rig'}
    cluster = {'controlPlaneEndpoint': {'host': '127.0.0.1', 'port': 6443}, 'controlPlaneRef': plane}
    return [secret, *hosts, thing('RigControlPlane', 'rig', {}, f'{INFRA}/v1'), thing('Cluster', 'rig', cluster),
            thing('MachineDeployment', 'gpu', deployment), thing('MachineHealthCheck', 'gpu', health)]


class Infrastructure(threading.Thread):
    """Makes a machine for each RigMachine, and tells of it as Cluster API's contract has it."""

    def __init__(self, s):
        super().__init__(daemon=True, name='infrastructure')
        self.s, self.machine, self.ended = s, {}, threading.Event()

    def run(self):
        while not self.ended.wait(0.2):
            try:
                self.follow()
            except (OSError, ValueError, KeyError, kube.Refused):
                continue  # asked again with the next round

    def follow(self):
        machines = {m['id']: m for m in self.s.group('gpu')['machines']}
        for host in self.s.kube.get(HOSTS)['items']:
            name = host['metadata']['name']
            machine = machines.get(self.machine.get(name))
            if 'deletionTimestamp' in host['metadata']:
                self.end(name, machine)
            elif name not in self.machine:
                self.launch(name)
            elif machine and machine['state'] == 'running' and 'status' not in host:
                patch(self.s, f'{HOSTS}/{name}', {'spec': {'providerID': machine['provider_id']}})
                patch(self.s, f'{HOSTS}/{name}/status', {'status': {'initialization': {'provisioned': True}}})

    def launch(self, name):
        patch(self.s, f'{HOSTS}/{name}', {'metadata': {'finalizers': [FINALIZER]}})
        group = self.s.group('gpu')
        grown = self.s.machines.ask('/v1/groups/gpu/grow', {'token': name, 'desired': group['desired'] + 1})
        self.machine[name] = ({m['id'] for m in grown['machines']} - {m['id'] for m in group['machines']}).pop()

    def end(self, name, machine):
        if machine:
            self.s.machines.ask('/v1/groups/gpu/remove', {'token': f'end-{name}', 'machines': [machine['id']]})
        else:
            patch(self.s, f'{HOSTS}/{name}', {'metadata': {'finalizers': None}})


def patch(s, path, change):
    s.kube.call('PATCH', path, change, 'application/merge-patch+json')


def start_cluster_api(s, folder):
    s.must('kubectl', 'apply', '--server-side', '-f', os.path.join(folder, 'crds'))
    owners.apply(s, *(definition(kind) for kind in ('RigMachine', 'RigMachineTemplate', 'RigControlPlane')))
    for path in (MACHINES, DEPLOYMENT.rsplit('/', 1)[0], HOSTS, PLANES):
        s.expect(f'{path} is served', lambda path=path: karpenter.answers(s, path))
    s.must('kubectl', 'create', 'namespace', SPACE)
    owners.start(s, 'cluster-api', [
        os.path.join(folder, 'cluster-api'), '--diagnostics-address', f'127.0.0.1:{process.free_port()}', '--insecure-diagnostics',
        '--health-addr', f'127.0.0.1:{process.free_port()}', '--webhook-port', str(process.free_port()),
        '--webhook-cert-dir', owners.certificate(s, 'capi')], {})
    owners.apply(s, *objects())
    done = {'status': {'initialization': {'infrastructureProvisioned': True, 'controlPlaneInitialized': True}}}
    for path in (f'{PLANES}/rig', f'{API}/clusters/rig'):
        patch(s, f'{path}/status', done)


def cluster_api(s):
    folder = owners.built(s, 'cluster-api')
    if not folder:
        return
    config = karpenter.config()
    config['groups'][0].pop('foreign')
    s.start_machines(config, {'gpu': {'min': 0, 'max': 8, 'standby': 0}})
    s.must('kubectl', 'apply', '-f', world.WORKLOADS)
    start_cluster_api(s, folder)
    s.open_eyes()
    s.accounts('preheat-a', beside=['components/node-objects/rbac'])
    infrastructure = Infrastructure(s)
    infrastructure.start()
    path = os.path.join(s.folder, 'pools.yaml')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(MANIFEST)
    controller = s.controller('preheat-a', '-f', path, '--no-election', '--namespace', stage.SPACE).start()
    s.expect('one replica of chat serves', lambda: len(s.pods('chat')) >= 1)
    grows(s)
    shrinks(s)
    judge_removals(s, infrastructure)  # later it is Cluster API that removes
    replaces(s, infrastructure)
    s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    infrastructure.ended.set()
    s.replay(controller)
    s.judge((laws.never_above_max, laws.never_forbidden, laws.never_fewer_than_run, laws.owner_is_let,
             laws.clean_logs))


def size(s):
    return s.kube.get(DEPLOYMENT)['spec']['replicas']


def machines_of(s):
    return {m['metadata']['name'] for m in s.kube.get(MACHINES)['items'] if 'deletionTimestamp' not in m['metadata']}


def marked(s):
    return {e['name'] for e in karpenter.wrote(s, 'patch', 'machines')}


def grows(s):
    s.machines.traffic('chat', 3.5, 500)
    s.expect('the MachineDeployment grows', lambda: size(s) >= 3)
    s.check('through its scale subresource', karpenter.wrote(s, 'patch', 'machinedeployments', 'scale'))
    s.expect('machines follow, and serve', lambda: len(s.pods('chat')) >= 3 and len(machines_of(s)) == size(s))


def shrinks(s):
    s.expect('the traffic is over', lambda: s.machines.score()['pools']['chat']['running'] == 0, 3600)
    stood = machines_of(s)
    s.expect('the MachineDeployment shrinks to one', lambda: size(s) == 1 and len(s.running('gpu')) == 1, 7200)
    gone = stood - machines_of(s)
    s.check(f'{len(gone)} machines went, each marked by us', gone and gone <= marked(s))
    s.check('no request was cut off', s.machines.score()['pools']['chat']['interrupted'] == 0)


def judge_removals(s, infrastructure):
    """A start that was called off before it had a node may get one, and a pod, until Cluster API has ended it."""
    joined = {}
    for at, key, node in s.watches['Node'].history():
        if node:
            joined.setdefault(key, at)
    called_off = {host for host, at in ((infrastructure.machine.get(e['name']), e['at'])
                                        for e in karpenter.wrote(s, 'patch', 'machines')) if at < joined.get(host, at)}

    def never_removes_busy(evidence):
        return [(at, text) for at, text in laws.never_removes_busy(evidence)
                if not any(f'remove of {host},' in text for host in called_off)]
    s.judge((never_removes_busy,))


def replaces(s, infrastructure):
    """A changed template is a rollout with a machine more than asked for; a machine that is unhealthy gets another in its place."""
    stood, began = machines_of(s), time.time()
    patch(s, DEPLOYMENT, {'spec': {'template': {'spec': template('gpu-2')}}})
    is_replaced(s, infrastructure, stood, 'is of an old template')
    for resource in ('machinedeployments', 'machines'):
        s.is_let(began, resource)
    stood = machines_of(s)
    for name in stood:
        patch(s, f'{MACHINES}/{name}', {'metadata': {'annotations': {'cluster.x-k8s.io/remediate-machine': ''}}})
    is_replaced(s, infrastructure, stood, 'is to be remediated')


def is_replaced(s, infrastructure, stood, what):
    s.expect(f'a machine that {what} is replaced by another, which serves', lambda: size(s) == len(s.pods('chat')) == 1 and
             [m['id'] for m in s.running('gpu')] == [infrastructure.machine.get(name) for name in machines_of(s) - stood])


if __name__ == '__main__':
    stage.main(cluster_api, 'cluster_api')
