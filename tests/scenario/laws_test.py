#!/usr/bin/env python3
"""Proves of each law that it holds for a good run and that it can be broken."""
import copy
import sys

import laws

A, B = 'system:serviceaccount:preheat:preheat-a', 'system:serviceaccount:preheat:preheat-b'
SETS = 'system:serviceaccount:kube-system:replicaset-controller'


def write(at, user, verb='patch', resource='nodes', sub='', name='n1', code=200):
    return {'at': at, 'done': at + 0.01, 'user': user, 'agent': 'preheat/1', 'verb': verb, 'resource': resource,
            'sub': sub, 'name': name, 'code': code}


def call(at, verb, token, effect='', status=202, **more):
    return {'at': at * 1000, 'method': 'POST', 'path': f'/v1/groups/g/{verb}', 'token': token, 'status': status,
            'effect': effect, **more}


def node(cordoned=False):
    return {'cordoned': cordoned, 'ours': cordoned, 'group': 'g', 'taints': [], 'gpus': 1, 'ready': True}


def pod(ready=True, ending=False):
    return {'uid': 'u', 'app': 'chat', 'node': 'n1', 'phase': 'Running', 'ready': ready, 'ending': ending}


def good():
    """Two replicas; A leads, then B; one machine is bought, one is emptied and goes."""
    return {
        'groups': {'g': {'min': 1, 'max': 3, 'standby': 1}}, 'lease': 'preheat', 'users': {A: 'a', B: 'b'},
        'cloud': {'acts': [act('nodegroup-update', 80, 120), act('health-check', 90, 90)], 'purchases': 3, 'by_group': {'g': 3},
                  'by_token': {'initial': 1, 'preheat-1-7-g-0001': 2}, 'calls': [
            {'at': 9000, 'method': 'GET', 'path': '/v1/groups/g', 'status': 200},
            call(10, 'grow', 'preheat-1-7-g-0001', 'launched 2, woke 0, refused 0', 0, asked=3),
            call(11, 'grow', 'preheat-1-7-g-0001', 'none: token known', asked=3),
            call(30, 'remove', 'preheat-2-9-g-0001', 'terminated 1', machines=['n1']),
            eks_call(71, 'SetDesiredCapacity', 3), eks_call(81, 'SetInstanceProtection'), eks_call(99, 'DescribeAutoScalingGroups'),
            eks_call(121, 'TerminateInstanceInAutoScalingGroup')]},
        'samples': [[9, {'g': {'desired': 1, 'machines': 1}}], [12, {'g': {'desired': 3, 'machines': 3}}],
                    [31, {'g': {'desired': 2, 'machines': 2}}], [60, {'g': {'desired': 4, 'machines': 4, 'surge': 1}}],
                    [70, {'g': {'desired': 2, 'machines': 2}}]],
        'audit': [write(8, A, 'update', 'leases', name='preheat'), write(9, A), write(9.5, B, 'get', 'leases'),
                  write(18, B, 'update', 'leases', name='preheat'), write(20, B),
                  write(21, B, 'create', 'pods', 'eviction', 'p1', 201), write(22, SETS, 'delete', 'pods', '', 'p2'),
                  write(105, B, 'list', 'pods', code=403)],
        'pods': [[5, 'llm/p1', pod()], [21, 'llm/p1', pod(ending=True)], [22, 'llm/p1', None],
                 [6, 'llm/p2', pod(ready=False)], [22, 'llm/p2', pod(False, True)]],
        'nodes': [[4, 'n1', node()], [20, 'n1', node(True)], [31, 'n1', None]], 'deployments': [], 'events': {},
        'logs': {'a': ['{"level":"info","message":"leading"}\n'], 'b': ['{"level":"error","message":"api: gone"}']},
        'expected_errors': ['api: gone'], 'stale': [[12, 20, 'g']], 'away': [[100, 110]], 'quiet': [40, 50],
        'let': [[30, 40, 'deployments', 'chat']], 'speed': 10,
        'final': {'nodes': {'n2': node(), 'n3': node(True)}, 'machines': {'n2': 'running', 'n3': 'stopped'}},
    }


def scaled_down(e, replicas):
    """Of two pods that served for long one is ended, with so many wanted."""
    e['nodes'].insert(0, [4, 'n2', node()])
    e['pods'].extend([[23, 'llm/p3', dict(pod(), node='n2')], [23, 'llm/p4', dict(pod(), node='n2')],
                      [34, 'llm/p5', dict(pod(), node='n2')], [36, 'llm/p3', dict(pod(ending=True), node='n2')]])
    e['deployments'].extend([[20, 'llm/chat', {'replicas': 3}], [32, 'llm/chat', {'replicas': replicas}]])
    e['audit'].append(write(36, SETS, 'delete', 'pods', '', 'p3'))


def eks_call(at, action, asked=None, group='e'):
    return {'at': at * 1000, 'method': 'POST', 'path': f'/ autoscaling:{action}', 'group': group, 'status': 200, 'asked': asked}


def act(kind, begun, until, size=0, group='e'):
    return {'group': group, 'kind': kind, 'from': begun * 1000, 'until': until * 1000, 'size': size}


def owned(e, *calls, size=0):
    """A schedule sets a size in the group of a cloud, and these calls follow."""
    e['cloud']['acts'].append(act('scheduled-action', 200, 200, size))
    e['cloud']['calls'].extend(calls)


def by_hand(at, asked):
    return dict(call(at, 'grow', 'by-hand-1', asked=asked), path='/v1/groups/e/grow')


def broken(change):
    evidence = copy.deepcopy(good())
    change(evidence)
    return evidence


CASES = [
    (laws.never_above_max, lambda e: e['cloud']['calls'][1].update(asked=4)),
    (laws.never_above_max, lambda e: e['samples'][1][1]['g'].update(machines=4)),
    (laws.never_above_max, lambda e: e['samples'][1][1]['g'].update(machines=5, surge=1)),
    (laws.never_above_max, lambda e: [e['samples'][i][1]['g'].update(standby=2) for i in (1, 2)]),
    (laws.never_below_min, lambda e: e['samples'][2][1]['g'].update(desired=0)),
    (laws.never_bought_twice, lambda e: e['cloud']['calls'][2].update(effect='launched 2, woke 0, refused 0')),
    (laws.never_bought_twice, lambda e: e['cloud']['by_token'].update({'preheat-1-7-g-0001': 3})),
    (laws.never_bought_twice, lambda e: e['cloud'].update(purchases=4)),
    (laws.never_flaps, lambda e: e['cloud']['calls'].append(call(31, 'cancel', 'preheat-2-8-g-1', 'cancelled 21'))),
    (laws.never_removes_busy, lambda e: e['cloud']['calls'][3].update(occupied={'n1': ['llm/p1: 2 requests']})),
    (laws.one_leader, lambda e: e['audit'].append(write(19, A))),
    (laws.one_leader, lambda e: e['audit'].append(write(12, B, 'create', 'events', name='x'))),
    (laws.one_leader, lambda e: e['audit'].append(write(7, A))),
    (laws.terms_in_order, lambda e: e['cloud']['calls'].append(call(31, 'grow', 'preheat-1-8-g-0001'))),
    (laws.terms_in_order, lambda e: e['cloud']['calls'].append(call(31, 'grow', 'x'))),
    (laws.only_allowed_writes, lambda e: e['audit'].append(write(9, A, 'delete', 'pods'))),
    (laws.only_allowed_writes, lambda e: e['audit'].append(write(9, A, 'delete', 'nodes'))),
    (laws.never_forbidden, lambda e: e['audit'].append(write(9, A, 'list', 'secrets', code=403))),
    (laws.never_writes, lambda e: None),
    (laws.never_fewer_than_run, lambda e: e['pods'].extend([[23, 'llm/p3', dict(pod(), node='n2')],
                                                            [24, 'llm/p3', dict(pod(ending=True), node='n2')]]) or
     e['nodes'].insert(0, [4, 'n2', node()]) or e['audit'].append(write(24, SETS, 'delete', 'pods', '', 'p3'))),
    (laws.never_fewer_than_run, lambda e: scaled_down(e, 1)),
    (laws.held_on_missing, lambda e: e['stale'].append([15, 31, 'g'])),
    (laws.owner_is_let, lambda e: e['cloud']['calls'].append(eks_call(93, 'TerminateInstanceInAutoScalingGroup'))),
    (laws.owner_is_let, lambda e: e['cloud']['calls'].append(eks_call(119, 'SetInstanceProtection'))),
    (laws.owner_is_let, lambda e: e['cloud']['acts'][0].pop('until')),
    (laws.owner_is_let, lambda e: e['cloud']['acts'].append(act('version-upgrade', 10, 40, group='g'))),
    (laws.owner_is_let, lambda e: e['audit'].append(write(140, B)) or e['cloud']['acts'].append(
        act('nodegroup-update', 80, 150, group='g'))),
    (laws.owner_is_let, lambda e: owned(e, eks_call(203, 'SetDesiredCapacity', 1))),
    (laws.owner_is_let, lambda e: owned(e, eks_call(900, 'LaunchInstances'))),
    (laws.owner_is_let, lambda e: owned(e, eks_call(250, 'SetDesiredCapacity', 3), size=2)),
    (laws.owner_is_let, lambda e: e['audit'].append(write(35, B, 'patch', 'deployments', 'scale', 'chat'))),
    (laws.settled, lambda e: e['cloud']['calls'].append(call(45, 'grow', 'preheat-2-8-g-0001', 'launched 0'))),
    (laws.settled, lambda e: e['audit'].append(write(45, B))),
    (laws.nothing_left_over, lambda e: e['final']['nodes'].update(n2=node(True))),
    (laws.nothing_left_over, lambda e: e['final']['nodes'].update(n9=node())),
    (laws.nothing_left_over, lambda e: e['final']['machines'].update(n9='running')),
    (laws.clean_logs, lambda e: e['logs']['a'].append('==12==ERROR: LeakSanitizer: detected memory leaks')),
    (laws.clean_logs, lambda e: e['logs']['a'].append('Segmentation fault')),
    (laws.clean_logs, lambda e: e['logs']['a'].append('{"level":"error","message":"history: full"}')),
]


# What owners allow.
HELD = [
    # It was on its way, so that it was undone; and then there is nothing that is let.
    lambda e: owned(e, eks_call(201, 'SetDesiredCapacity', 1), eks_call(300, 'SetDesiredCapacity', 2)),
    lambda e: owned(e, by_hand(300, 1), eks_call(310, 'SetDesiredCapacity', 2)),
    lambda e: owned(e, eks_call(301, 'SetDesiredCapacity', 2)) or e['cloud']['acts'].append(act('scheduled-action', 300, 300, 1)),
    lambda e: owned(e, eks_call(310, 'SetDesiredCapacity', 3)) or e['cloud']['acts'].append(act('scheduled-action', 300, 300, 2)),
    lambda e: owned(e, eks_call(270, 'SetDesiredCapacity', 3), size=2),
    lambda e: owned(e, eks_call(250, 'SetDesiredCapacity', 2), size=2),
    lambda e: owned(e, eks_call(250, 'SetDesiredCapacity', 3, 'other')),
    lambda e: e['audit'].append(write(35, B, 'patch', 'deployments', 'scale', 'embed')),
]


def main():
    failed = [f'a good run breaks {law}: {text}' for law, _, text in laws.judge(good())]
    for number, (law, change) in enumerate(CASES):
        if not list(law(broken(change))):
            failed.append(f'case {number}: {law.__name__} notices nothing')
    # A third got ready between the write and the end of one of them: nobody could know.
    failed += [f'lowered to what ran breaks {law}: {text}' for law, _, text in
               laws.judge(broken(lambda e: scaled_down(e, 2)), (laws.never_fewer_than_run,))]
    failed += [f'what owners allow, {number}, breaks {law}: {text}' for number, change in enumerate(HELD)
               for law, _, text in laws.judge(broken(change), (laws.owner_is_let,))]
    untried = {law for law in laws.LAWS + laws.DRY_LAWS} - {law for law, _ in CASES}
    failed += [f'{law.__name__} has no case that breaks it' for law in untried]
    print('\n'.join(failed) or f'{len(CASES)} ways to break {len(set(laws.LAWS + laws.DRY_LAWS))} laws, each noticed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
