#!/usr/bin/env python3
"""A real Cluster Autoscaler sizes the MachineDeployment that Preheat sizes: first it only buys for pods that wait, as Preheat does;
then it keeps more machines than Preheat wants. Its module cannot be had by every Go proxy: PREHEAT_CLUSTER_AUTOSCALER names the
program (built with -tags clusterapi); without it nothing is run."""
import os
import sys

import cluster_api as capi
import karpenter
import laws
import owners
import process
import stage
import world

PROGRAM = os.environ.get('PREHEAT_CLUSTER_AUTOSCALER', '')
LIMIT = 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-'
# Fights are over after three reversals; each is of at most the machines that the other keeps.
KEPT, REVERSALS = 4, 3


def bounds(s, least):
    capi.patch(s, capi.DEPLOYMENT, {'metadata': {'annotations': {f'{LIMIT}min-size': str(least), f'{LIMIT}max-size': '6'}}})


def start_autoscaler(s):
    owners.start(s, 'cluster-autoscaler', [
        PROGRAM, '--cloud-provider=clusterapi', f'--kubeconfig={os.environ["KUBECONFIG"]}', '--clusterapi-cloud-config-authoritative',
        f'--cloud-config={os.environ["KUBECONFIG"]}', '--node-group-auto-discovery=clusterapi:namespace=capi', '--leader-elect=false',
        f'--address=127.0.0.1:{process.free_port()}', '--scan-interval=2s', '--scale-down-unneeded-time=20s',
        '--scale-down-delay-after-add=20s', '--enforce-node-group-min-size=true', '--namespace=capi', '--v=2'], {})


def cluster_autoscaler(s):
    folder = owners.built(s, 'cluster-api')
    if not folder:
        return
    config = karpenter.config()
    config['groups'][0].pop('foreign')
    s.start_machines(config, {'gpu': {'min': 0, 'max': 8, 'standby': 0}})
    s.must('kubectl', 'apply', '-f', world.WORKLOADS)
    capi.start_cluster_api(s, folder)
    bounds(s, 1)
    s.open_eyes()
    s.accounts('preheat-a', beside=['components/node-objects/rbac'])
    infrastructure = capi.Infrastructure(s)
    infrastructure.start()
    path = os.path.join(s.folder, 'pools.yaml')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(capi.MANIFEST)
    controller = s.controller('preheat-a', '-f', path, '--no-election', '--namespace', stage.SPACE).start()
    s.expect('one replica of chat serves', lambda: len(s.pods('chat')) >= 1)
    start_autoscaler(s)
    shares(s, infrastructure)
    fights(s, infrastructure, controller)
    s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    infrastructure.ended.set()
    s.replay(controller)
    s.judge((laws.never_above_max, laws.never_forbidden))


def shares(s, infrastructure):
    before = len(infrastructure.machine)
    s.machines.traffic('chat', 3.5, 500)
    s.expect('machines come, and serve', lambda: len(s.pods('chat')) >= 3)
    s.expect('the traffic is over', lambda: s.machines.score()['pools']['chat']['running'] == 0, 3600)
    s.expect('it shrinks to one', lambda: capi.size(s) == 1 and len(s.running('gpu')) == 1, 7200)
    bought = len(infrastructure.machine) - before
    s.check(f'both together bought {bought} machines', bought <= 8)
    s.check('no request was cut off', s.machines.score()['pools']['chat']['interrupted'] == 0)


def fights(s, infrastructure, controller):
    before = len(infrastructure.machine)
    bounds(s, KEPT)
    s.expect('the other keeps four', lambda: len(s.running('gpu')) >= KEPT, 3600)
    s.expect('the fight is told', lambda: s.told('NodeGroupContended', ''), 14400)
    bought = len(infrastructure.machine) - before
    s.check(f'{bought} machines were launched until then', bought <= (REVERSALS + 1) * KEPT)
    s.expect('the other has its four', lambda: len(s.running('gpu')) >= KEPT, 3600)
    bought = len(infrastructure.machine)
    s.pass_time(540)
    s.check('while it is held nothing is bought or ended', len(infrastructure.machine) == bought and len(s.running('gpu')) >= KEPT)
    s.check('its metric says so', controller.metric('preheat_pool_problem', pool='chat', problem='contention') == 1)


if __name__ == '__main__':
    if not PROGRAM:
        print('PREHEAT_CLUSTER_AUTOSCALER names no program', file=sys.stderr)
        sys.exit(77)
    stage.main(cluster_autoscaler, 'cluster_autoscaler')
