"""Types lines and TAB into shells on a terminal of its own, and reads what the line became. No shell is imitated."""
import os, pty, re, select, subprocess, sys, time

DEADLINE = 120  # for one answer of a shell, on a busy machine
failures = 0

# What is typed, and what the line is after TAB.
LINES = [
    ("preheat hist", "preheat history "),
    ("preheat provider ch", "preheat provider check "),
    ("preheat history --laun", "preheat history --launches "),
    ("preheat history -o js", "preheat history -o json "),
    ("preheat history --output=ya", "preheat history --output=yaml "),
    ("preheat history --db out --pool ch", "preheat history --db out --pool chat "),
    ("preheat history --db=out/history.db --pool ch", "preheat history --db=out/history.db --pool chat "),
    ("preheat history --limit stock", "preheat history --limit stock-out "),
    ("preheat check poo", "preheat check pool.yaml "),
    ("preheat simulate --trace da", "preheat simulate --trace day.csv "),
    ("preheat simulate --out resu", "preheat simulate --out results/"),
    ("preheat completion fi", "preheat completion fish "),
    ("preheat help expl", "preheat help explain "),
]


def check(shell, typed, wanted, got):
    global failures
    if got.rstrip(" ") != wanted.rstrip(" "):
        failures += 1
        print(f"FAILED: {shell}: {typed!r} became {got!r}, expected {wanted!r}")


class Shell:
    """A shell on a terminal; its prompt is READY."""

    def __init__(self, argv, setup):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvp(argv[0], argv)
        for line in setup:
            self.write(line + "\n")
        self.write("echo set-$((40 + 2))\n")
        self.until(r"set-42\r?\n")

    def write(self, text):
        os.write(self.fd, text.encode())

    def until(self, pattern):
        text, end = "", time.monotonic() + DEADLINE
        while not re.search(pattern, text):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise SystemExit(f"FAILED: never came: {pattern!r}; there was {text[-2000:]!r}")
            text += os.read(self.fd, 65536).decode(errors="replace")
        return text

    def complete(self, typed):
        """The line as the shell has it after TAB: told by a key that prints the line buffer."""
        self.write(typed + "\t\x18\x18")
        found = re.search(r"<<<(.*?)>>>", self.until(r"<<<.*?>>>"), re.S)
        self.write("\x15")  # wipe the line
        return found.group(1)

    def end(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def on_terminal(name, argv, setup):
    shell = Shell(argv, setup)
    for typed, wanted in LINES:
        check(name, typed, wanted, shell.complete(typed))
    shell.end()


def fish():
    """fish tells what it would offer for a line."""
    for typed, wanted in LINES:
        script = "preheat completion fish | source; complete -C " + "'" + typed + "'"
        out = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, timeout=DEADLINE)
        offered = [line.split("\t")[0] for line in out.stdout.splitlines()]
        word = wanted.rstrip(" ").split(" ")[-1]
        check("fish", typed, word, offered[0] if len(offered) == 1 else repr(offered) + out.stderr)


def kubectl():
    """What kubectl prints for its own completion scripts, of this plugin."""
    for typed, wanted in LINES[:6]:
        words = typed.split(" ")[1:]
        out = subprocess.run(["kubectl", "__complete", "preheat", *words], capture_output=True, text=True, timeout=DEADLINE)
        lines = out.stdout.splitlines()
        check("kubectl", typed, wanted.rstrip(" ").split(" ")[-1], lines[0].split("\t")[0] if len(lines) == 2 else repr(lines))
    out = subprocess.run(["kubectl", "preheat", "explain", "--db", "out"], capture_output=True, text=True, timeout=DEADLINE)
    check("kubectl", "kubectl preheat explain", "Decided", "Decided" if "\nDecided " in out.stdout else out.stdout + out.stderr)


on_terminal("bash", ["bash", "--norc", "--noprofile", "-i"], [
    "source <(preheat completion bash)",
    "told() { printf '<<<%s>>>' \"$READLINE_LINE\"; }",
    "bind -x '\"\\C-x\\C-x\": told'",
])
zsh_told = "told() { print -n \"<<<$BUFFER>>>\" >/dev/tty }; zle -N told; bindkey -e; bindkey '^X^X' told"
on_terminal("zsh", ["zsh", "-f", "-i"], [
    "autoload -Uz compinit; compinit -u -D",
    "source <(preheat completion zsh)",
    zsh_told,
])
on_terminal("zsh, installed", ["zsh", "-f", "-i"], [
    "mkdir ~/site; preheat completion zsh >~/site/_preheat; fpath=(~/site $fpath)",
    "autoload -Uz compinit; compinit -u -D",
    zsh_told,
])
fish()
kubectl()
checks = 4 * len(LINES) + 7
print(f"[==========] {checks} test(s) run.\n[  PASSED  ] {checks - failures} test(s).")
sys.exit(failures > 0)
