"""Programs of a scenario: started with their output in files, and ended whatever happens."""
import ctypes
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def fetch(url, body=None, method=None, timeout=10):
    text = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, text, {'Content-Type': 'application/json'}, method=method)
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return answer.read().decode()


def end_with_parent(number=signal.SIGKILL):
    """The kernel sends the calling process that signal when its parent dies, which may not have been able to end it."""
    ctypes.CDLL(None).prctl(1, number)  # PR_SET_PDEATHSIG


class Program:
    """One process. Its standard output and error are appended to NAME.out and NAME.log in the folder."""

    def __init__(self, folder, name, command, environment=None):
        self.name, self.command = name, command
        self.out = os.path.join(folder, name + '.out')
        self.log = os.path.join(folder, name + '.log')
        self.environment = dict(os.environ, **(environment or {}))
        self.process = None

    def start(self):
        with open(self.out, 'ab') as out, open(self.log, 'ab') as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=log,
                                            env=self.environment, preexec_fn=end_with_parent)
        return self

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        if self.is_running():
            self.process.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        if self.process:
            self.process.wait()

    def stop(self, patience=30):
        """Asks it to end; its exit code, or None when it had to be killed."""
        self.signal(signal.SIGTERM)
        return self.ended(patience)

    def ended(self, patience=30):
        """Its exit code once it has ended by itself, or None when it had to be killed."""
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()
            return None


class Machines(Program):
    """The rig's machines: simulated cloud, kubelets, model servers, traffic."""

    def __init__(self, folder, program, config, kubeconfig, speed, *options):
        self.url = f'http://127.0.0.1:{free_port()}'
        path = os.path.join(folder, 'machines.json')
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(config, file, indent=1)
        super().__init__(folder, 'machines', [
            program, '--kubeconfig', kubeconfig, '--config', path, '--listen', self.url.removeprefix('http://'),
            '--speed', str(speed), '--state', os.path.join(folder, 'machines.state'), *options])

    def ask(self, path, body=None, method=None):
        return json.loads(fetch(self.url + path, body, method))

    def groups(self):
        return {g['name']: g for g in self.ask('/v1/groups')['groups']}

    def calls(self):
        return self.ask('/v1/log')

    def score(self):
        return self.ask('/v1/score')

    def fault(self, what, group='*', **more):
        return self.ask('/v1/faults', {'fault': what, 'for_s': 0, 'count': 0,
                                       **({} if what.startswith('metrics-') else {'group': group}), **more})

    def faults(self):
        return self.ask('/v1/faults')['faults']

    def end_faults(self, number=None):
        return self.ask('/v1/faults' + (f'/{number}' if number else ''), method='DELETE')

    def traffic(self, pool, rate, for_s, prompt=1000, output=200):
        return self.ask(f'/v1/traffic/{pool}', {'rate': rate, 'for_s': for_s, 'prompt_tokens': prompt,
                                                'output_tokens': output})

    def end_traffic(self, pool):
        """Of that which was asked for."""
        return self.ask(f'/v1/traffic/{pool}', method='DELETE')


class Controller(Program):
    """One replica of `preheat run`, or another verb that watches as it does, with its own history."""

    def __init__(self, folder, name, preheat, arguments, kubeconfig, verb='run'):
        self.port = free_port()
        self.db = os.path.join(folder, name + '.db')
        super().__init__(folder, name, [preheat, verb, '--kubeconfig', kubeconfig, '--db', self.db, '--listen',
                                        f'127.0.0.1:{self.port}', '--log-format', 'json', *arguments],
                         {'ASAN_OPTIONS': 'detect_leaks=1:abort_on_error=0:exitcode=99',
                          'UBSAN_OPTIONS': 'print_stacktrace=1:halt_on_error=1:exitcode=99'})

    def page(self, path):
        """Status and text of a page; (0, '') when nobody answers."""
        try:
            return 200, fetch(f'http://127.0.0.1:{self.port}{path}', timeout=5)
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ''

    def metric(self, name, **labels):
        """The value of a series of /metrics, or None."""
        for line in self.page('/metrics')[1].splitlines():
            if line.startswith(name) and line[len(name):len(name) + 1] in ('{', ' ') and \
                    all(f'{key}="{value}"' in line for key, value in labels.items()):
                return float(line.rsplit(' ', 1)[1])
        return None

    def lines(self):
        """Its log as (object or None, text), in order."""
        found = []
        with open(self.log, encoding='utf-8', errors='replace') as file:
            for text in file:
                try:
                    found.append((json.loads(text), text))
                except ValueError:
                    found.append((None, text))
        return found


def run(command, environment=None, patience=300):
    """Exit code and what was said on both outputs."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, **(environment or {})), timeout=patience, check=False)
    return done.returncode, done.stdout


def until(condition, patience, pause=0.1):
    """The first true value of condition(), or None after so many seconds."""
    deadline = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            return None
        time.sleep(pause)
