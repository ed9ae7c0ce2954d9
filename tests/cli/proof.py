#!/usr/bin/env python3
"""proof.py FILE...: recordings of `preheat provider check --prove`, read back: their form, and whether the clouds that the
rig plays (tests/rig/machines) do what a real account was seen to do. 0: they do; 1: they do not; 2: it is no recording."""

import json
import re
import sys

# What the rig plays, where that is not each of the answers.
PLAYED = {
    "eks": {"auto-scaling-group": ["one"], "own-group": ["own"], "tagged-group": ["own"], "launch-instances": ["yes"], "protected-update": ["ended", "no-update"],
            "protect-new": ["kept", "no-update", "not-set"], "resize-words": ["schedule", "none"]},
    "aks": {"delete-stopped": ["first-only"], "delete-limit": ["none-found"], "etag-quotes": ["as-it-is"],
            "node-id": ["same"], "upgrade-state": ["UpgradingNodeImageVersion"]},
}
# What must not be passed on: account numbers, subscriptions, keys.
SECRETS = [r"(?<!\d)(?!111122223333|0{12})\d{12}(?!\d)", r"\b(?!0{8}-)[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", r"\bA[KS]IA[A-Z0-9]{16}\b",
           r"\beyJ[\w-]{20,}"]


class NoRecording(Exception):
    pass


def expect(holds, where, found, allowed):
    if not holds:
        raise NoRecording(f"{where}: found {json.dumps(found)}; allowed: {allowed}")


def questions(provider):
    """Answers by question, in the order in which they are asked, and the keys of a group that it is asked of."""
    text = open(f"providers/{provider}_question.def", encoding="utf-8").read()
    for name, value in re.findall(r'#define (\w+) ("[^"]*")', text):
        text = text.replace(f", {name})", f", {value})")
    asked = re.findall(r'QUESTION\("([\w-]+)",.*?"([^"]*)"(?:, "([^"]*)")?\)\n', text, re.S)
    return {name: words.split() for name, words, _ in asked}, {name: when.split() for name, _, when in asked}


def open_questions(told, whens):
    """Those of such a group: its first question tells what it is named by."""
    given = {key for name in told for key in whens[name] if key[0] != "-"}
    return [name for name, when in whens.items() if name not in told
            and all(key[1:] not in given if key[0] == "-" else key in given for key in when)]


def read(path):
    text = open(path, encoding="utf-8").read()
    try:
        proof = json.loads(text)
    except ValueError as e:
        raise NoRecording(f"found no JSON: {e}; allowed: a whole file, as --prove wrote it") from e
    expect(isinstance(proof, dict), "the file", proof, "an object")
    for key in ("provider", "instanceType", "version", "at"):
        expect(isinstance(proof.get(key), str), key, proof.get(key), "a text")
    expect(proof["provider"] in PLAYED, "provider", proof["provider"], ", ".join(PLAYED))
    expect(isinstance(proof.get("answers"), list) and proof["answers"], "answers", proof.get("answers"), "one or more")
    asked, whens = questions(proof["provider"])
    last = -1
    for i, a in enumerate(proof["answers"]):
        where = f"answers[{i}]"
        expect(isinstance(a, dict) and set(a) == {"id", "asks", "command", "answer", "output"} and all(isinstance(v, str) for v in a.values()),
               where, a, "texts id, asks, command, answer and output")
        expect(a["id"] in asked, where + ".id", a["id"], ", ".join(asked))
        expect(list(asked).index(a["id"]) > last, where + ".id", a["id"], "each question once, in their order")
        last = list(asked).index(a["id"])
        expect(a["answer"] in asked[a["id"]], where + ".answer", a["answer"], ", ".join(asked[a["id"]]))
    for secret in SECRETS:
        for found in re.findall(secret, text):
            raise NoRecording(f"found {found[:4]}...; allowed: no account number, subscription or key")
    return proof, asked, whens


def main():
    worst = 0
    for path in sys.argv[1:]:
        try:
            proof, asked, whens = read(path)
        except NoRecording as e:
            print(f"{path}: {e}", file=sys.stderr)
            worst = 2
            continue
        told = {a["id"]: a["answer"] for a in proof["answers"]}
        played = PLAYED[proof["provider"]]
        for name in told:
            if told[name] not in played.get(name, asked[name]):
                print(f"{path}: {name}: found {told[name]}; the rig plays: {', '.join(played[name])}", file=sys.stderr)
                worst = max(worst, 1)
        left = open_questions(told, whens)
        print(f"{path}: {len(told)} of {len(told) + len(left)} questions answered; open: {', '.join(left) or 'none'}")
    return worst


sys.exit(main())
