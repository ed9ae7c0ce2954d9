#!/usr/bin/env python3
"""Somebody else sets the replicas: the real HorizontalPodAutoscaler of kube-controller-manager, then a real KEDA beside it. Preheat
finds out, says who it is and leaves the number alone; it sets it again when they are gone."""
import json
import os
import subprocess
import time

import laws
import process
import stage
import world

LAWS = (laws.never_above_max, laws.never_bought_twice, laws.never_removes_busy, laws.only_allowed_writes, laws.never_forbidden,
        laws.owner_is_let, laws.clean_logs)
# Seconds of ours: an HPA looks every 15. PREHEAT_OWNERS_SECONDS=600 is the long way.
FEW_SYNCS, LONG = 75, int(os.environ.get('PREHEAT_OWNERS_SECONDS', '90'))
HPA = {'apiVersion': 'autoscaling/v2', 'kind': 'HorizontalPodAutoscaler', 'metadata': {'name': 'chat', 'namespace': world.SPACE},
       'spec': {'scaleTargetRef': {'apiVersion': 'apps/v1', 'kind': 'Deployment', 'name': 'chat'},
                'minReplicas': 1, 'maxReplicas': 1,
                'metrics': [{'type': 'Resource', 'resource': {'name': 'cpu', 'target': {
                    'type': 'Utilization', 'averageUtilization': 80}}}]}}
# Four by day and night.
SCALED_OBJECT = {'apiVersion': 'keda.sh/v1alpha1', 'kind': 'ScaledObject', 'metadata': {'name': 'chat-hours', 'namespace': world.SPACE},
                 'spec': {'scaleTargetRef': {'name': 'chat'}, 'minReplicaCount': 1, 'maxReplicaCount': 6, 'pollingInterval': 5,
                          'triggers': [{'type': 'cron', 'metadata': {
                              'timezone': 'UTC', 'start': '0 0 * * *', 'end': '59 23 * * *', 'desiredReplicas': '4'}}]}}


def apply(s, *things):
    path = os.path.join(s.folder, 'applied.json')
    with open(path, 'w', encoding='utf-8') as file:
        json.dump({'apiVersion': 'v1', 'kind': 'List', 'items': things}, file)
    s.must('kubectl', 'apply', '--server-side', '-f', path)


def replicas(s):
    return s.kube.one('Deployment', 'chat', world.SPACE)['spec']['replicas']


def flips(s, since):
    """Changes of the number, by whoever."""
    states = [(at, state['replicas']) for at, key, state in s.watches['Deployment'].history() if key == 'llm/chat' and state]
    return sum(now != before for (_, before), (at, now) in zip(states, states[1:]) if at > since)


def is_contested(controller):
    return controller.metric('preheat_pool_problem', pool='chat', problem='replicas-contested') == 1


def is_left(s, controller, who, seconds):
    s.expect(f'it says that {who} sets the replicas', lambda: is_contested(controller) and s.told('ReplicasContested', who))
    began, stands = time.time(), replicas(s)
    time.sleep(seconds)
    s.is_let(began, 'deployments', 'chat')
    s.check(f'{flips(s, began)} flips in {seconds} s', flips(s, began) == 0)
    s.check(f'{replicas(s)} replicas, as {who} set them', replicas(s) == stands)
    s.check('the number that it would set is published', controller.metric('preheat_desired_replicas', pool='chat') >= 2)


def autoscaler(s, controller):
    s.expect('its number stands for four minutes', lambda: flips(s, time.time() - s.real(240)) == 0, 3600)
    began = time.time()
    apply(s, HPA)
    is_left(s, controller, 'HorizontalPodAutoscaler chat', FEW_SYNCS)
    s.check(f'{flips(s, began)} flips until it was let', flips(s, began) <= 4)
    s.must('kubectl', 'delete', 'hpa', 'chat', '-n', world.SPACE)
    s.expect('it sets them again', lambda: not is_contested(controller) and replicas(s) >= 2)


def built(s, owner):
    """The folder of a controller's programs; None, and that part is skipped, where it cannot be built."""
    code, said = process.run([os.path.join(stage.RIG, 'build_owner.sh'), owner], patience=3000)
    if code:
        s.skip(said.strip())
        return None
    return said.strip().splitlines()[-1]


def certificate(s, name):
    """A folder with a certificate of localhost, as webhooks and servers of metrics ask for."""
    folder = os.path.join(s.folder, name)
    os.mkdir(folder)
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost', '-addext',
                    'subjectAltName=DNS:localhost', '-keyout', 'tls.key', '-out', 'tls.crt'], cwd=folder, check=True,
                   capture_output=True)
    return folder


def keda(s, controller):
    folder = built(s, 'keda')
    if not folder:
        return
    start_keda(s, folder)
    began = time.time()
    apply(s, SCALED_OBJECT)
    s.expect('KEDA makes its HPA', lambda: s.kube.get('/apis/autoscaling/v2/namespaces/llm/horizontalpodautoscalers')['items'])
    s.expect('four replicas, as its trigger wants', lambda: replicas(s) == 4)
    is_left(s, controller, 'ScaledObject chat-hours', LONG)
    s.check(f'{flips(s, began)} flips until it was let', flips(s, began) <= 4)
    s.expect('what it asks for serves', lambda: len(s.pods('chat')) == 4)
    s.must('kubectl', 'delete', 'scaledobject', 'chat-hours', '-n', world.SPACE)
    s.expect('it sets them again', lambda: not is_contested(controller))


def start_keda(s, folder):
    """Its operator and its metrics server as processes, under the API server by a Service that names this host."""
    certs, secure, grpc = certificate(s, 'keda'), process.free_port(), process.free_port()
    os.symlink('tls.crt', os.path.join(certs, 'ca.crt'))
    s.must('kubectl', 'apply', '--server-side', '-f', os.path.join(folder, 'crds'))
    s.must('kubectl', 'create', 'namespace', 'keda')
    space = {'WATCH_NAMESPACE': '', 'POD_NAMESPACE': 'keda', 'KEDA_CLUSTER_OBJECT_NAMESPACE': 'keda'}
    start(s, 'keda-operator', [os.path.join(folder, 'keda-operator'), '--metrics-bind-address', '127.0.0.1:0',
                               '--health-probe-bind-address', '127.0.0.1:0', '--metrics-service-bind-address', f'127.0.0.1:{grpc}',
                               '--cert-dir', certs, '--enable-webhook-patching=false', '--enable-apiservice-patching=false'], space)
    kubeconfig = os.environ['KUBECONFIG']
    start(s, 'keda-adapter', [os.path.join(folder, 'keda-adapter'), '--secure-port', str(secure), '--bind-address', '127.0.0.1',
                              '--cert-dir', certs, '--port', str(process.free_port()),
                              '--metrics-service-address', f'localhost:{grpc}', '--authentication-kubeconfig', kubeconfig,
                              '--authorization-kubeconfig', kubeconfig, '--lister-kubeconfig', kubeconfig], space)
    apply(s, {'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': 'keda-metrics-apiserver', 'namespace': 'keda'},
              'spec': {'type': 'ExternalName', 'externalName': 'localhost', 'ports': [{'port': secure}]}},
          {'apiVersion': 'apiregistration.k8s.io/v1', 'kind': 'APIService', 'metadata': {'name': 'v1beta1.external.metrics.k8s.io'},
           'spec': {'service': {'name': 'keda-metrics-apiserver', 'namespace': 'keda', 'port': secure}, 'insecureSkipTLSVerify': True,
                    'group': 'external.metrics.k8s.io', 'version': 'v1beta1', 'groupPriorityMinimum': 100, 'versionPriority': 100}},
          # The rig's API server has no certificate of its own to show: whoever asks is anonymous.
          {'apiVersion': 'rbac.authorization.k8s.io/v1', 'kind': 'ClusterRole', 'metadata': {'name': 'external-metrics'},
           'rules': [{'apiGroups': ['external.metrics.k8s.io'], 'resources': ['*'], 'verbs': ['*']},
                     {'nonResourceURLs': ['/apis/external.metrics.k8s.io', '/apis/external.metrics.k8s.io/*'], 'verbs': ['get']}]},
          {'apiVersion': 'rbac.authorization.k8s.io/v1', 'kind': 'ClusterRoleBinding', 'metadata': {'name': 'external-metrics'},
           'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'ClusterRole', 'name': 'external-metrics'},
           'subjects': [{'kind': 'Group', 'name': group, 'apiGroup': 'rbac.authorization.k8s.io'}
                        for group in ('system:unauthenticated', 'system:authenticated')]})
    s.expect('the API server passes metrics on', lambda: s.must(
        'kubectl', 'get', 'apiservice', 'v1beta1.external.metrics.k8s.io', '-o', 'jsonpath={.status.conditions[0].status}') == 'True')


def start(s, name, command, environment):
    s.programs.append(process.Program(s.folder, name, command, environment).start())


def owners(s):
    manifest = s.open_world(world.World())
    s.accounts('preheat-a')
    controller = s.controller('preheat-a', '-f', manifest, '--namespace', stage.SPACE).start()
    s.expect('it is ready', lambda: controller.page('/readyz')[0] == 200)
    s.expect('the headroom of chat serves', lambda: len(s.pods('chat')) >= 2)
    s.check('its own name stands in managedFields', 'preheat' in [
        m['manager'] for m in s.kube.one('Deployment', 'chat', world.SPACE)['metadata']['managedFields']
        if 'f:replicas' in m['fieldsV1'].get('f:spec', {})])
    autoscaler(s, controller)
    keda(s, controller)
    s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    s.replay(controller)
    s.judge(LAWS)


if __name__ == '__main__':
    stage.main(owners, 'owners')
