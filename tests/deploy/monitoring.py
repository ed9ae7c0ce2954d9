"""What alerts and dashboard ask for exists, is documented, and is answered by a real Prometheus.

    monitoring.py URL    of a Prometheus that reads a page of ours and one of DCGM's exporter
"""
import glob
import json
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

PATIENCE = 120
# What the pages have nothing of: a cloud that fails, rates of counters that stand still.
MAY_BE_EMPTY = re.compile(r'^(sum by \(namespace, pool, stage\)|count\(preheat_pool_wished|preheat_node_group_error|preheat_pool_problem)'
                          r'|preheat_pool_budget_dollars_per_hour|bound="upper"|limit!="none"|preheat_history_lag_ticks|DCGM_FI_DEV_GPU_TEMP'
                          r'|preheat_pool_rule_standby_ratio|preheat_api_calls_total|preheat_node_actions_total|preheat_evictions_total')
failures = []


def check(what, is_well):
    if not is_well:
        failures.append(what)
        print(f'FAILED: {what}')


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)


def query(server, text):
    return get(f'{server}/api/v1/query?' + urllib.parse.urlencode({'query': text}))


def wait(server):
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            if len(query(server, 'count_over_time(up[1m]) > 5 and up == 1')['data']['result']) == 2:
                return True
        except (OSError, KeyError, ValueError):
            pass
        time.sleep(0.2)
    return False


def known_metrics():
    with open('docs/metrics.md', encoding='utf-8') as file:
        return set(re.findall(r'^\| `([a-z_]+)` \|', file.read(), re.M))


def asked(text):
    text = re.sub(r'_(bucket|sum|count)\b', '', re.sub(r'namespace_pool:\S+', '', text))
    return set(re.findall(r'\bpreheat_[a-z_]+', text))


def alerts():
    rules = ''
    for path in sorted(glob.glob('deploy/alerts/*.rules.yaml')):
        with open(path, encoding='utf-8') as file:
            rules += file.read()
    expressions = '\n'.join(line for line in rules.splitlines() if not re.match(r'\s*(summary|description|runbook|#)', line))
    for name in sorted(asked(expressions) - known_metrics()):
        check(f'alerts: no metric {name} in docs/metrics.md', False)
    names = re.findall(r'- alert: (\w+)', rules)
    with open('docs/runbooks.md', encoding='utf-8') as file:
        sections = re.findall(r'^## (\w+)$', file.read(), re.M)
    check(f'docs/runbooks.md and deploy/alerts name the same alerts: {sorted(set(names) ^ set(sections))}', sorted(names) == sorted(sections))
    for name in names:
        check(f'{name}: its annotation names its runbook', f'runbook: docs/runbooks.md#{name.lower()}\n' in rules)
    tests = ''.join(open(path, encoding='utf-8').read() for path in glob.glob('tests/deploy/alerts/*.test.yaml'))
    for name in names:
        check(f'{name}: has a test in which it fires', re.search(rf'(alertname="{name}"|alertname: {name}\b)', tests))
    return names


def loaded(server, names):
    groups = get(f'{server}/api/v1/rules')['data']['groups']
    rules = [rule for group in groups for rule in group['rules']]
    check('Prometheus has every alert', sorted(r['name'] for r in rules if r['type'] == 'alerting') == sorted(names))
    for rule in rules:
        check(f"{rule['name']}: {rule.get('lastError')}", rule['health'] in ('ok', 'unknown'))


def panels():
    with open('deploy/dashboards/preheat.json', encoding='utf-8') as file:
        dashboard = json.load(file)
    check('panels have ids of their own', len({p['id'] for p in dashboard['panels']}) == len(dashboard['panels']))
    spots = [(p['gridPos']['y'], x) for p in dashboard['panels'] for x in range(p['gridPos']['x'], p['gridPos']['x'] + p['gridPos']['w'])]
    check('panels do not lie on each other', len(spots) == len(set(spots)))
    return [(p['title'], t['expr']) for p in dashboard['panels'] for t in p.get('targets', [])]


def dashboard(server):
    asked_for = panels()
    for title, expression in asked_for:
        for name in sorted(asked(expression) - known_metrics()):
            check(f'dashboard, {title}: no metric {name} in docs/metrics.md', False)
        text = re.sub(r'\$(namespace|pool|group)', '.*', expression)
        answer = query(server, text)
        check(f"dashboard, {title}: {answer.get('error')}", answer['status'] == 'success')
        if answer['status'] == 'success' and not MAY_BE_EMPTY.search(text):
            check(f'dashboard, {title}: nothing is there for {text}', answer['data']['result'])
    return len(asked_for)


def main():
    server = sys.argv[1]
    names = alerts()
    check('Prometheus reads both pages', wait(server))
    count = dashboard(server)
    loaded(server, names)
    if failures:
        sys.exit(1)
    print(f'{len(names)} alerts with runbooks and tests, {count} queries of the dashboard answered by Prometheus')


main()
