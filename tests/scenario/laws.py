"""The laws of design section 11, judged from outside: each function reads the evidence of a run and returns what broke.

Evidence is plain values (it is kept as JSON when a law broke; `laws.py FILE` judges it again):
  groups   {name: {min, max, standby}} as the manifests say
  cloud    GET /v1/log of the machines: calls, purchases, by_token
  samples  [[time, {group: {desired, machines, surge}}]]
  audit    [{at, done, user, agent, verb, resource, sub, name, code}] of all who are judged, and who deleted pods
  users    {user: replica of the controller}
  lease    name of the Lease; "" without election
  pods, nodes, deployments   [[time, key, state or null]] as watched
  events   {key: event} at the end
  logs     {replica: [line]}
  stale    [[from, to, group]]: nothing was known of the pool of that group
  quiet    [from, to]: the world stood still
  taken    times at which a spot machine got its notice
  away     [[from, to]]: the API server was not there, or had not read its own roles yet
  let      [[from, to, resource, name]]: objects that an owner who is no cloud was known to write; "": each of that resource
  speed    simulated seconds in one of ours
  final    {nodes, machines, replicas}: after all is over
"""
import json
import re
import sys

WRITES = ('create', 'update', 'patch', 'delete', 'deletecollection')
# What the controller may write, and nothing else: resource or resource/sub.
ALLOWED = {('patch', 'nodes'), ('create', 'pods/eviction'),
           ('patch', 'deployments/scale'), ('update', 'deployments/scale'),
           ('create', 'events'), ('patch', 'events'), ('create', 'leases'), ('update', 'leases'), ('patch', 'leases'),
           ('patch', 'warmpools/status'), ('update', 'warmpools/status'), ('create', 'deployments'),
           ('patch', 'deployments'), ('update', 'deployments'), ('delete', 'deployments')}
PROBLEM = re.compile(r'AddressSanitizer|LeakSanitizer|runtime error:|UndefinedBehavior|Assertion|==\d+==ERROR')


def changes(evidence):
    return [call for call in evidence['cloud']['calls'] if call['method'] == 'POST' and call['path'].startswith('/v1/groups/')]


def verb_of(call):
    return call['path'].rsplit('/', 1)[1]


def group_of(call):
    return call['path'].split('/')[3]


def is_done(call):
    return call['status'] < 300 and not call.get('effect', '').startswith('none:')


REFILL_LASTS = 2  # seconds of ours, a minute of the rig's


def never_above_max(evidence):
    for call in changes(evidence):
        limit = evidence['groups'].get(group_of(call), {}).get('max')
        asked = call.get('asked')
        if verb_of(call) == 'grow' and limit is not None and asked is not None and asked > limit:
            yield call['at'] / 1000, f"{group_of(call)}: asked for {asked} machines, max is {limit}"
    # Where EKS owns a warm pool its new size is told by an update that takes a while: Auto Scaling may begin to refill it
    # by the old one, and ends what is too much as soon as it knows. So more than allowed must not last.
    since = {}
    for at, groups in evidence['samples']:
        for name, group in groups.items():
            limit, stopped = (evidence['groups'].get(name, {}).get(key) for key in ('max', 'standby'))
            begun = since.setdefault(name, at) if group.get('standby', 0) > (stopped or 0) else since.pop(name, at)
            if stopped is not None and at - begun > REFILL_LASTS and group.get('standby', 0) > stopped:
                yield at, f"{name}: {group['standby']} machines on standby, standby.max is {stopped}"
            # An update of its owner adds machines beyond the limit, and takes them away again; and the cloud may add some itself.
            beyond = group.get('surge', 0) + evidence.get('added', {}).get(name, 0)
            if limit is not None and max(group['desired'], group['machines']) > limit + beyond:
                yield at, f"{name}: {group['desired']} desired, {group['machines']} machines, max is {limit}"


def never_below_min(evidence):
    before = {}
    for at, groups in evidence['samples']:
        for name, group in groups.items():
            least = evidence['groups'].get(name, {}).get('min', 0)
            previous_at, previous = before.get(name, (0, 0))
            ours = any(group_of(c) == name and verb_of(c) in ('remove', 'stop', 'cancel') and is_done(c) and
                       previous_at <= c['at'] / 1000 <= at for c in changes(evidence))
            if ours and previous >= least > group['desired']:
                yield at, f"{name}: {group['desired']} desired, min is {least}"
            before[name] = (at, group['desired'])


def never_bought_twice(evidence):
    bought = {}
    for call in changes(evidence):
        launched = int((re.search(r'launched (\d+)', call.get('effect', '')) or [0, 0])[1])
        token = call.get('token', '')
        if launched and bought.get(token):
            yield call['at'] / 1000, f"token {token} bought {launched} machines once more"
        bought[token] = bought.get(token, 0) + launched
    for token, count in evidence['cloud']['by_token'].items():
        if token != 'initial' and count != bought.get(token, 0):
            yield 0, f"token {token}: the cloud counts {count} machines, its calls {bought.get(token, 0)}"
    total = sum(evidence['cloud']['by_token'].values())
    if total != evidence['cloud']['purchases']:
        yield 0, f"{evidence['cloud']['purchases']} machines were bought, tokens account for {total}"


def never_flaps(evidence):
    """What was asked for is not given up at once and asked for again. Some are: a fifth more than is missing is asked for."""
    given_up, last = {}, {}
    for call in changes(evidence):
        found = re.search(r'cancelled (\d+)', call.get('effect', ''))
        if found and is_done(call):
            group = group_of(call)
            given_up[group], last[group] = given_up.get(group, 0) + int(found[1]), call['at'] / 1000
    for group, count in given_up.items():
        bought = evidence['cloud']['by_group'].get(group, 0)
        if count > max(20, 0.5 * bought):
            yield last[group], f'{group}: {count} of {bought} machines were cancelled before they ran'


def never_removes_busy(evidence):
    """Whoever lifts a protection ends nothing by that: what goes in the same moment an owner waited for, or a size that fell."""
    for call in evidence['cloud']['calls']:
        if call['status'] not in (0, 200, 202) or call.get('effect', '').startswith('none:'):
            continue
        if call['path'].endswith('SetInstanceProtection'):
            continue
        for machine, occupants in (call.get('occupied') or {}).items():
            yield call['at'] / 1000, f"{call['path'].rsplit('/', 1)[1]} of {machine}, where {', '.join(occupants)} lived"


def one_leader(evidence):
    """Who wrote the lease last leads; the others write nothing until they write it themselves."""
    if not evidence['lease']:
        return
    is_lease = {id(e): e['resource'] == 'leases' and e['name'] == evidence['lease'] for e in evidence['audit']}
    terms = sorted((e['done'], evidence['users'][e['user']]) for e in evidence['audit']
                   if e['user'] in evidence['users'] and is_lease[id(e)] and e['verb'] in WRITES and e['code'] < 300)
    for entry in evidence['audit']:
        replica = evidence['users'].get(entry['user'])
        if replica is None or is_lease[id(entry)] or entry['verb'] not in WRITES:
            continue
        leader = next((who for done, who in reversed(terms) if done <= entry['at']), 'nobody')
        if leader != replica:
            yield entry['at'], f"{replica} wrote ({entry['verb']} {entry['resource']} {entry['name']}) while {leader} led"


def terms_in_order(evidence):
    """A token begins with the term of its leader: no call of a term once a later one called."""
    newest = 0
    for call in changes(evidence):
        found = re.match(r'preheat-(\d+)-', call.get('token', ''))
        if not found:
            yield call['at'] / 1000, f"a call with the token {call.get('token', '')!r}, which says no term"
            continue
        if int(found[1]) < newest:
            yield call['at'] / 1000, f"term {found[1]} called the cloud after term {newest}"
        newest = max(newest, int(found[1]))


def only_allowed_writes(evidence):
    for entry in evidence['audit']:
        if entry['user'] not in evidence['users'] or entry['verb'] not in WRITES:
            continue
        what = entry['resource'] + (f"/{entry['sub']}" if entry['sub'] else '')
        if (entry['verb'], what) not in ALLOWED:
            yield entry['at'], f"{entry['verb']} {what} {entry['name']} by {entry['user']}"


def never_forbidden(evidence):
    for entry in evidence['audit']:
        is_away = any(begin <= entry['at'] <= end for begin, end in evidence.get('away', []))
        if entry['user'] in evidence['users'] and entry['code'] in (401, 403) and not is_away:
            yield entry['at'], (f"{entry['user']} may not {entry['verb']} {entry['resource']}/{entry['sub']} "
                                f"{entry['name']}: {entry['code']}")


def never_writes(evidence):
    """Of a dry run: not one writing call, to the API server or to the cloud."""
    for entry in evidence['audit']:
        if entry['user'] in evidence['users'] and entry['verb'] in WRITES:
            yield entry['at'], f"{entry['verb']} {entry['resource']} {entry['name']} in a dry run"
    for call in changes(evidence):
        yield call['at'] / 1000, f"{call['path']} in a dry run"


def at_time(history, at):
    """What a watch had seen of each key at a time."""
    now = {}
    for when, key, state in history:
        if when > at:
            break
        now[key] = state
    return now


def lowered(evidence, app, begin, end):
    """When the number of replicas of a workload fell, and to what."""
    before = None
    for at, key, state in evidence['deployments']:
        if key.split('/')[-1] != app or not state:
            continue
        if before is not None and state['replicas'] < before and begin <= at <= end:
            yield at, state['replicas']
        before = state['replicas']


def served(evidence, app, at):
    """Replicas that were ready, and had been for a second, on nodes that stay."""
    nodes, ready = at_time(evidence['nodes'], at), at_time(evidence['pods'], at)
    settled_pods = at_time(evidence['pods'], at - 1)
    return sum(bool(p and p['app'] == app and p['ready'] and not p['ending'] and (settled_pods.get(key) or {}).get('ready')
                    and not (nodes.get(p['node']) or {'cordoned': True})['cordoned']) for key, p in ready.items())


def never_fewer_than_run(evidence):
    """A replica that serves ends by eviction from a marked node, not by a Deployment made smaller than what served then.
    (One that gets ready between that and its controller's turn, which may be away, can be taken for one that is not.)"""
    deletions = {}
    for entry in evidence['audit']:
        if entry['verb'] == 'delete' and entry['resource'] == 'pods' and not entry['sub'] and \
                'replicaset-controller' in entry['user']:
            deletions.setdefault(entry['name'], []).append(entry['at'])
    before = {}
    for at, key, state in evidence['pods']:
        was, before[key] = before.get(key), state
        if not (was and state and was['ready'] and state['ending'] and not was['ending'] and was['app']):
            continue  # without an app it is a placeholder, and serves nobody
        node = at_time(evidence['nodes'], at).get(was['node'])
        if not node or node['cordoned'] or not any(abs(when - at) < 5 for when in deletions.get(key.split('/')[-1], [])):
            continue
        writes = list(lowered(evidence, was['app'], at - 60, at))
        if not writes or any(replicas < served(evidence, was['app'], when) for when, replicas in writes):
            yield at, f"{key} served on {was['node']}, and its Deployment was made smaller than what ran"


def held_on_missing(evidence):
    """Nothing is released on what is not known; a node that was marked before may go to its end."""
    for call in changes(evidence):
        if verb_of(call) not in ('remove', 'stop') or not is_done(call):
            continue
        for begin, end, group in evidence['stale']:
            if group_of(call) != group or not begin <= call['at'] / 1000 <= end:
                continue
            before = at_time(evidence['nodes'], begin)
            fresh = [m for m in call.get('machines') or [] if not (before.get(m) or {}).get('cordoned')]
            if fresh:
                yield call['at'] / 1000, f"{verb_of(call)} of {', '.join(fresh)}, and nothing was known of the pool of {group}"


# Acts of owners that a group is busy with as long as they go on, and when they are known at the latest: after so many simulated
# seconds, and of ours. EKS is asked again before a call unless it was within ten seconds, by a clock that is not hurried.
BUSY = {'nodegroup-update': (0, 10), 'image-upgrade': (75, 0), 'version-upgrade': (75, 0)}
KNOWN, LET = 300, 600  # simulated seconds: a size that a schedule set is known by then; one that is not 0 is let for so long
UNDER_WAY = 1.5  # seconds of ours that a call may take to arrive
CHANGE = re.compile(r':(SetDesiredCapacity|TerminateInstanceInAutoScalingGroup|LaunchInstances|PutWarmPool|SetInstanceProtection|'
                    r'UpdateAutoScalingGroup)$')


def is_ours(call):
    """Whoever does it by hand grows a group at the rig's own door, where the controller has tokens of its own."""
    if call['path'].startswith('/v1/groups/'):
        return call['method'] == 'POST' and call.get('token', '').startswith('preheat-')
    return bool(CHANGE.search(call['path'])) or call['method'] != 'GET' and '/agentPools/' in call['path']


def calls_of(evidence, group):
    """In this group, and when they came."""
    return [(call['at'] / 1000, call) for call in evidence['cloud']['calls'] if group == (
        group_of(call) if call['path'].startswith('/v1/groups/') else call.get('group'))]


def changed_while_busy(evidence, act):
    speed, name = evidence.get('speed', 1), act['group']
    simulated, ours = BUSY[act['kind']]
    known = act['from'] / 1000 + simulated / speed + ours + UNDER_WAY
    over = act['until'] / 1000 if act.get('until') else float('inf')
    for at, call in calls_of(evidence, name):
        if is_ours(call) and known < at < over:
            yield at, f"{call['path']} ({call.get('effect')}) in {name}, which is busy with {act['kind']}"
    nodes = {key for _, key, node in evidence['nodes'] if node and node.get('group') == name}
    for entry in evidence['audit']:
        if entry['user'] in evidence['users'] and entry['verb'] in WRITES and entry['resource'] == 'nodes' and \
                entry['name'] in nodes and known < entry['at'] < over:
            yield entry['at'], f"{entry['verb']} of node {entry['name']}, while {name} is busy with {act['kind']}"


def raised_again(evidence, act):
    """A 0 is let until somebody else raises it; a growth that was on its way has undone it. What sets a size reads it before; a
    launch adds to what is there, and knows it by the next look only."""
    begun, speed, size = act['from'] / 1000, evidence.get('speed', 1), act['size']
    acts = [a for a in evidence['cloud']['acts'] if a['group'] == act['group'] and a['kind'] == act['kind']]
    if any(a['size'] < size for a in acts if a['from'] < act['from']):
        return  # it raised the size, for which more is no harm
    others = [a['from'] / 1000 for a in acts if a['from'] > act['from'] and a['size'] > size]
    over = min(others + ([begun + LET / speed] if size else []), default=float('inf'))
    for at, call in calls_of(evidence, act['group']):
        launches = call['path'].endswith(':LaunchInstances')
        asked = 1 << 30 if launches else call.get('asked') or 0
        if at < begun or asked <= size or not is_done(call):
            continue
        if at >= over or not is_ours(call) or at < begun + (KNOWN / speed if launches and size else 0) + UNDER_WAY:
            return
        yield at, f"{call['path']}: {call.get('asked')} asked for in {act['group']}, which a schedule set to {size}"


def owner_is_let(evidence):
    """What an owner began is never undone: nothing is changed in a group that is busy with it, a size that a schedule set is not
    raised while it is let, and what another writer was left is not written."""
    for act in evidence['cloud'].get('acts') or []:
        if act['kind'] in BUSY:
            yield from changed_while_busy(evidence, act)
        elif act['kind'] == 'scheduled-action':
            yield from raised_again(evidence, act)
    for begin, end, resource, name in evidence.get('let', []):
        for entry in evidence['audit']:
            if entry['user'] in evidence['users'] and entry['verb'] in WRITES and begin <= entry['at'] <= end and \
                    entry['resource'] == resource and entry['name'] == (name or entry['name']):
                yield entry['at'], f"{entry['verb']} {resource}/{entry['sub']} {entry['name']}, which an owner writes"


def settled(evidence):
    if not evidence.get('quiet'):
        return
    begin, end = evidence['quiet']
    for call in changes(evidence):
        if begin <= call['at'] / 1000 <= end:
            yield call['at'] / 1000, f"{call['path']} ({call.get('effect')}) while the world stood still"
    for entry in evidence['audit']:
        if entry['user'] in evidence['users'] and begin <= entry['at'] <= end and entry['verb'] in WRITES and \
                entry['resource'] in ('nodes', 'pods', 'deployments'):
            yield entry['at'], f"{entry['verb']} {entry['resource']} {entry['name']} while the world stood still"


def nothing_left_over(evidence):
    final = evidence.get('final')
    if not final:
        return
    for name, node in final['nodes'].items():
        if (node['cordoned'] or node['ours']) and final['machines'].get(name) != 'stopped':
            yield 0, f"node {name} was left cordoned or marked: {node}"
        if name not in final['machines']:
            yield 0, f"node {name} has no machine any more"
    for name, machine in final['machines'].items():
        if machine == 'running' and name not in final['nodes']:
            yield 0, f"machine {name} runs and is no node"


def clean_logs(evidence):
    for replica, lines in evidence['logs'].items():
        for line in lines:
            if PROBLEM.search(line):
                yield 0, f'{replica}: {line.strip()[:300]}'
                continue
            is_expected = any(re.search(p, line) for p in evidence.get('expected_errors', []))
            try:
                level = json.loads(line).get('level')
            except ValueError:
                if not is_expected:
                    yield 0, f'{replica}: a line that is no JSON: {line.strip()[:300]}'
                continue
            if level == 'error' and not is_expected:
                yield 0, f'{replica}: {line.strip()[:300]}'


LAWS = (never_above_max, never_below_min, never_bought_twice, never_flaps, never_removes_busy, one_leader, terms_in_order,
        only_allowed_writes, never_forbidden, never_fewer_than_run, held_on_missing, owner_is_let, settled, nothing_left_over,
        clean_logs)
DRY_LAWS = (never_writes, never_forbidden, clean_logs)


def judge(evidence, laws=LAWS):
    """All that broke, as (law, time, sentence)."""
    return [(law.__name__, at, text) for law in laws for at, text in law(evidence)]


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        broken = judge(json.load(file))
    for law, at, text in broken:
        print(f'{law}: {at:.1f}: {text}')
    return 1 if broken else 0


if __name__ == '__main__':
    sys.exit(main())
