#!/usr/bin/env bash
# Documents name what there is: verbs of preheat with options that their help lists, verbs of ./dev, metrics, scenarios.
# Usage: tests/check_commands.sh PREHEAT
set -euo pipefail
preheat=$(realpath "$1")
cd "$(dirname "$0")/.."
exec python3 -B - "$preheat" <<'END_OF_PROGRAM'
import functools
import glob
import re
import subprocess
import sys

PROGRAM = sys.argv[1]


@functools.cache
def options_of(verb):
    """What the help of a verb lists, or None if there is no such verb."""
    run = subprocess.run([PROGRAM, "help", *verb.split()], capture_output=True, text=True)
    return None if run.returncode else set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", run.stdout)) | {"--help", "-h"}


def wrong_in(command):
    """What is wrong with "preheat VERB ..." up to the end of that command."""
    words = re.split(r"\s+", re.split(r"\s#|[|;&)<>]", command, maxsplit=1)[0].strip().replace("`", ""))
    if len(words) < 2 or not re.fullmatch(r"[a-z-]+", words[1]):
        return None
    verb = " ".join(words[1:3]) if words[1] in ("provider", "history") and words[2:] and re.fullmatch(r"[a-z]+", words[2]) else words[1]
    if verb == "help":
        verb, words = words[2], words[:2]
    if verb == "VERB":
        return None
    if options_of(verb) is None:
        return f"no verb {verb}"
    for word in words[2:]:
        option = word.split("=")[0].strip("'\",.:")
        if re.fullmatch(r"--?[a-z][a-z-]*", option) and option not in options_of(verb):
            return f"{verb} has no option {option}"
    return None


def commands_of(text):
    """(line, command) of every "preheat VERB" in code, with lines that go on joined."""
    text = re.sub(r"\\\n", lambda _: "  ", text)
    text = re.sub(r"-n preheat|for\.sh preheat preheat", "", text)  # a namespace and an account
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
            continue
        code = [line] if fenced or line.startswith("    ") else re.findall(r"`([^`]+)`", line)
        for piece in code:
            for found in re.finditer(r"(?:(?<=^)|(?<=[\s$|(/]))preheat [a-z].*", piece):
                yield number, found[0]


METRICS = open("docs/metrics.md", encoding="utf-8").read()
DEV = set(re.findall(r"^([a-z]+)\)", open("dev", encoding="utf-8").read(), re.M))
found = []
for page in sorted(glob.glob("*.md") + glob.glob("docs/*.md")):
    with open(page, encoding="utf-8") as file:
        text = file.read()
    if page == "CHANGELOG.md":
        continue
    for number, command in commands_of(text):
        why = wrong_in(command)
        if why:
            found.append(f"{page}: {command[:70]} <- {why}")
    for verb in set(re.findall(r"\./dev ([a-z]+)", text)) - DEV - {"help"}:
        found.append(f"{page}: ./dev {verb} <- no such verb")
    for metric in set(re.findall(r"\bpreheat_[a-z_]+(?![\w*(])", text)):
        if f"`{metric}`" not in METRICS:
            found.append(f"{page}: {metric} <- no such metric in docs/metrics.md")
# The table of what owners do: each act with its proof.
TESTS = {name for path in glob.glob("tests/**/*_test.c", recursive=True)
         for name in re.findall(r"^static void (\w+)\(void \*\*state\)", open(path, encoding="utf-8").read(), re.M)}
acts = open("docs/providers.md", encoding="utf-8").read().split("## What owners do\n")[1].split("\n## ")[0]
for row in [line for line in acts.split("\n") if line.startswith("|")][2:]:
    proofs = row.split("|")[-2]
    named = set(re.findall(r"`(\w+)`", proofs)) | {p for p in re.findall(r"`scenario/(\w+)`", proofs) if not glob.glob(f"tests/scenario/{p}.py")}
    for name in named - TESTS:
        found.append(f"docs/providers.md: {name} <- no such scenario")
    if "`" not in proofs:
        found.append(f"docs/providers.md: {row[:60]} <- no scenario")
print("\n".join(found))
sys.exit(1 if found else 0)
END_OF_PROGRAM
