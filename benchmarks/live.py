"""Measures `preheat run` against a rig: see live.sh. Prints a table in Markdown."""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'scenario'))
import process  # noqa: E402
import stage  # noqa: E402

SECOND = os.sysconf('SC_CLK_TCK')
ROUNDS = 3


def manifest(folder, name, spec):
    path = os.path.join(folder, name + '.yaml')
    with open(path, 'w', encoding='utf-8') as file:
        json.dump({'apiVersion': 'preheat.dev/v1alpha1', 'kind': 'WarmPool',
                   'metadata': {'name': name, 'namespace': 'load'}, 'spec': spec}, file)
    return path


def large_pool(folder, url, nodes):
    """All pods of the load in one pool, all of its nodes in the groups: nothing is left out of the model."""
    groups = [{'name': f'load-{i}', 'provider': 'simulated', 'simulated': {'endpoint': url}, 'gpusPerNode': 8,
               'max': max(1, nodes // 20 * 2)} for i in range(20)]
    return manifest(folder, 'load', {
        'class': 'training', 'mode': 'observe', 'objective': {'queueWait': '1m', 'attainment': '99%'},
        'workload': {'selector': {'matchLabels': {'app': 'vllm'}}}, 'signals': {'engine': 'pods'}, 'nodeGroups': groups})


def cloud(folder, arguments):
    """A cloud without machines, so that the groups can be described."""
    config = {'groups': [{'name': f'load-{i}', 'max': 1000} for i in range(20)] + [{'name': 'small', 'max': 4}]}
    path = os.path.join(folder, 'cloud.json')
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(config, file)
    port = process.free_port()
    program = process.Program(folder, 'cloud', [arguments.machines, '--config', path, '--listen', f'127.0.0.1:{port}'])
    program.start()
    url = f'http://127.0.0.1:{port}'
    if not process.until(lambda: is_there(url), 10):
        raise SystemExit('the cloud does not answer')
    return program, url


def is_there(url):
    try:
        return process.fetch(url + '/v1/groups')
    except (OSError, urllib.error.URLError):
        return None


def start(folder, arguments, name, pool):
    path = os.path.join(folder, name)
    os.makedirs(path, exist_ok=True)
    run = process.Controller(path, name, arguments.preheat, ['-f', pool, '--no-election', '--dry-run'],
                             os.environ['KUBECONFIG'])
    for page in (run.log, run.db, run.db + '-wal', run.db + '-shm'):
        if os.path.exists(page):
            os.unlink(page)
    run.began = time.monotonic()
    return run.start()


def wait_for(run, event, patience):
    """Seconds from the start until the log tells the event."""
    marker = f'"event":"{event}"'.encode()
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and run.is_running():
        with open(run.log, 'rb') as file:
            if marker in file.read():
                return time.monotonic() - run.began
        time.sleep(0.002)
    raise SystemExit(f'no {event}:\n' + stage.tail(run.log))


def curl_lists(rig):
    """Seconds that curl takes for the same lists to /dev/null."""
    server = stage.kube.Kube(rig)
    pki = os.path.join(rig, 'pki')
    total, size = 0.0, 0
    for path in ('/api/v1/nodes?resourceVersion=0', '/api/v1/pods?resourceVersion=0'):
        said = subprocess.run(['curl', '-s', '--http1.1', '-A', 'preheat/bench', '--cacert', f'{pki}/ca.crt', '--cert', f'{pki}/admin.crt',
                               '--key', f'{pki}/admin.key', '-o', '/dev/null', '-w', '%{time_total} %{size_download}',
                               f'https://{server.host}:{server.port}{path}'], capture_output=True, text=True, check=True)
        seconds, count = said.stdout.split()
        total, size = total + float(seconds), size + int(float(count))
    return total, size


def wait_until_cached(rig):
    """The API server's cache follows etcd with a delay: until two lists in a row have the same size."""
    before = 0
    while True:
        try:
            size = curl_lists(rig)[1]
        except subprocess.CalledProcessError:
            size = 0  # a list took the server longer than it allows
        if size and size == before:
            return
        before = size
        time.sleep(2)


def status_of(pid, key):
    with open(f'/proc/{pid}/status', encoding='utf-8') as file:
        return int(next(line.split()[1] for line in file if line.startswith(key + ':'))) / 1024


def cpu_of(pid):
    with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / SECOND


def first_list(folder, arguments, pool):
    """Curl and Preheat in turn, so that both see the same machine; the rate is the ratio of the times."""
    ratios, ours, theirs, size = [], [], [], 0
    for number in range(ROUNDS):
        seconds, size = curl_lists(os.environ['RIG_DIR'])
        run = start(folder, arguments, f'list-{number}', pool)
        synced = wait_for(run, 'cluster-synced', 300)
        run.stop(30)
        theirs.append(seconds)
        ours.append(synced)
        ratios.append(seconds / synced)
        print(f'curl {seconds:.2f} s, preheat {synced:.2f} s from its start, {size / 1e6:.0f} MB', flush=True)
    return statistics.median(theirs), statistics.median(ours), statistics.median(ratios), size


def steady(folder, arguments, pool):
    """Memory after the lists, and memory and CPU over a minute of 100 pod events a second."""
    run = start(folder, arguments, 'steady', pool)
    wait_for(run, 'cluster-synced', 300)
    time.sleep(35)  # two ticks
    pid = run.process.pid
    rest, peak = status_of(pid, 'VmRSS'), status_of(pid, 'VmHWM')
    before, began = cpu_of(pid), time.monotonic()
    time.sleep(30)
    idle = (cpu_of(pid) - before) / (time.monotonic() - began)
    load = subprocess.Popen([arguments.machines, 'populate', '--kubeconfig', os.environ['KUBECONFIG'], '--there', '--nodes',
                             str(arguments.nodes), '--pods', str(arguments.pods),
                             '--events-per-second', '100', '--for', '60s'], stdout=subprocess.PIPE, text=True)
    before, began = cpu_of(pid), time.monotonic()
    said = load.communicate()[0]
    lasted = time.monotonic() - began
    busy = (cpu_of(pid) - before) / lasted
    print(said.strip(), f'in {lasted:.1f} s', flush=True)
    after = status_of(pid, 'VmRSS')
    run.stop(30)
    return rest, after, peak, idle, busy


def first_decision(folder, arguments, url):
    pool = manifest(folder, 'small', {'objective': {'queueWait': '2s', 'attainment': '99%'}, 'nodeGroups': [
        {'name': 'small', 'provider': 'simulated', 'simulated': {'endpoint': url}, 'max': 4}],
        'workload': {'selector': {'matchLabels': {'app': 'small'}}}})
    times = []
    for number in range(5):
        run = start(folder, arguments, f'first-{number}', pool)
        ready = process.until(lambda r=run: r.page('/readyz')[0] == 200, 30, 0.005)
        if not ready:
            raise SystemExit('not ready:\n' + stage.tail(run.log))
        times.append(time.monotonic() - run.began)
        run.stop(30)
    return statistics.median(times)


def check(arguments):
    """Memory and CPU of `check --cluster` over the same objects, and the length of what it says."""
    began = time.monotonic()
    run = subprocess.Popen([arguments.preheat, 'check', '--cluster'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    said = run.stdout.read()
    _, code, used = os.wait4(run.pid, 0)
    if os.waitstatus_to_exitcode(code) not in (0, 1):
        raise SystemExit('check --cluster failed')
    return used.ru_maxrss / 1024, used.ru_utime + used.ru_stime, time.monotonic() - began, said.count(b'\n')


def main():
    options = argparse.ArgumentParser()
    options.add_argument('--preheat', required=True)
    options.add_argument('--machines', required=True)
    options.add_argument('--nodes', type=int, default=5000)
    options.add_argument('--pods', type=int, default=50000)
    arguments = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix='preheat-live.') as folder:
        program, url = cloud(folder, arguments)
        try:
            measure(folder, arguments, url)
        finally:
            program.stop()


def measure(folder, arguments, url):
    small = first_decision(folder, arguments, url)
    rig = os.environ['RIG_DIR']
    with open(os.path.join(rig, 'run', 'etcd.port'), encoding='utf-8') as file:
        etcd = f'http://127.0.0.1:{file.read().strip()}'
    subprocess.run([arguments.machines, 'populate', '--kubeconfig', os.environ['KUBECONFIG'], '--nodes',
                    str(arguments.nodes), '--pods', str(arguments.pods), '--etcd', etcd], check=True)
    wait_until_cached(rig)
    pool = large_pool(folder, url, arguments.nodes)
    theirs, ours, ratio, size = first_list(folder, arguments, pool)
    rest, after, peak, idle, busy = steady(folder, arguments, pool)
    checked, cpu, seconds, lines = check(arguments)
    print(f'\nload average {os.getloadavg()[0]:.1f}; {arguments.nodes} nodes, {arguments.pods} pods, {size / 1e6:.0f} MB\n')
    print('| what | measured | aim |\n|---|---|---|')
    print(f'| first LIST, rate against curl to /dev/null | {ratio:.2f} ({ours:.2f} s from exec; curl {theirs:.2f} s) | 1.67 |')
    print(f'| resident memory after the lists; after a minute of events; highest | {rest:.1f}; {after:.1f}; {peak:.1f} MiB '
          '| 48 MiB |')
    print(f'| CPU with 100 pod events a second; without | {busy:.2%}; {idle:.2%} of a core | 2 % |')
    print(f'| check --cluster, at most; CPU; from start to end; lines | {checked:.1f} MiB; {cpu:.1f} s; {seconds:.1f} s; {lines} '
          '| 200 MB, 30 s |')
    print(f'| start to first decision, small cluster | {small:.2f} s | 2 s |')


if __name__ == '__main__':
    main()
