#!/usr/bin/env bash
# How the house stands: sizes, form, functions too long, exported functions with one user, repeated lines, providers named elsewhere.
# HOUSE_LIST=1 lists the places. Usage: tests/house.sh [FOLDER...]
# How long the tests take is measured apart, on an idle machine:
#   cold: rm -rf build; CCACHE_DIR=$(mktemp -d) bash -c 'time ./dev test'    warm, right behind it: time ./dev test
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 -B - "$@" <<'END'
import collections
import json
import os
import re
import subprocess
import sys

ROOMS = ("base", "controller", "providers", "signals", "state")
SAME = 6  # lines in a row that stand elsewhere, too
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def code_of(text, with_strings=False):
    """The text without comments, and without strings or with them, line by line."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)

    def blank(match):
        if with_strings and match[0][0] != "/":
            return match[0]
        return ("" if match[0][0] == "/" else '""') + "\n" * match[0].count("\n")

    return pattern.sub(blank, text)


def is_form(line):
    """Lines that carry no thought of their own: blank, a brace, an include, a comment's frame."""
    return re.fullmatch(r"\s*([{}();,]*|#\s*(include|pragma|endif|else).*|/?\*+/?|\} else \{)\s*", line) is not None


def functions_of(paths):
    """path -> [(name, first line, last line, is static)] of the functions defined there."""
    found = subprocess.run(["ctags", "--c-kinds=f", "--fields=+nef", "--output-format=json", "-L", "-"],
                           input="\n".join(paths), capture_output=True, text=True, check=True).stdout
    functions = collections.defaultdict(list)
    for tag in map(json.loads, found.splitlines()):
        functions[tag["path"]].append((tag["name"], tag["line"], tag.get("end", tag["line"]), tag.get("file", False)))
    return functions


def repeated_in(paths, text):
    """[(path, line, where it stood before)] of lines within six or more that stand alike elsewhere; the first place is none."""
    seen, repeated = {}, []
    for path in paths:
        lines = [(n, " ".join(line.split())) for n, line in enumerate(code_of(text[path], True).split("\n"), 1) if not is_form(line)]
        until = 0
        for i in range(len(lines) - SAME + 1):
            first = seen.setdefault(tuple(line for _, line in lines[i:i + SAME]), f"{path}:{lines[i][0]}")
            if first != f"{path}:{lines[i][0]}":
                repeated += [(path, n, first) for n, _ in lines[max(until, i):i + SAME]]
                until = i + SAME
    return repeated


def main():
    under = sys.argv[1:] or list(ROOMS)
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True,
                            text=True, check=True).stdout.split("\n")
    listed = [path for path in listed if re.search(r"\.(c|h|def)$", path) and os.path.isfile(path)]
    text = {path: open(path, encoding="utf-8").read() for path in listed}
    words = {path: collections.Counter(WORD.findall(code_of(body))) for path, body in text.items()}
    product = [path for path in listed if path.startswith(ROOMS)]
    own = [path for path in product if any(path.startswith(u.rstrip("/") + "/") or path == u for u in under)]
    lines = sum(text[path].count("\n") for path in own)
    form = sum(is_form(line) for path in own for line in text[path].splitlines())
    sources = [path for path in own if path.endswith(".c")]

    exported, single, untold, long, lengths = 0, [], [], [], []
    functions = functions_of(sources)
    # What a macro of a header calls is called wherever the macro stands.
    in_macros = {word for path in product if path.endswith(".h")
                 for macro in re.findall(r"^#\s*define.*(?:\\\n.*)*", code_of(text[path]), re.M) for word in WORD.findall(macro)}
    for path in sources:
        for name, first, last, is_static in functions[path]:
            lengths.append(last - first + 1)
            if last - first + 1 > 60:
                long.append(f"{path}:{first} {name} ({last - first + 1})")
            if is_static or name == "main" or name in in_macros:
                continue
            exported += 1
            users = [p for p in product if not p.endswith(".h") and p != path and words[p][name]]
            tested = any(words[p][name] for p in listed if p not in product and p.endswith(".c"))
            if len(users) + tested == 1:
                single.append(f"{path} {name} <- {users[0] if users else 'tests'}")
            elif not users and not tested:
                untold.append(f"{path} {name}")
    # A recorded traffic of Azure's is no cloud.
    vendors = re.compile(r"(?<![a-z])(eks|aks|aws|azure|karpenter)(?![a-z])", re.I)
    naming = [path for path in own if not path.startswith(("providers/", "controller/traces/")) and vendors.search(text[path])]
    repeated = repeated_in(sources, text)
    lengths.sort()
    print(f"lines of C, headers and tables       {lines}")
    print(f"  of them form                       {100 * form / max(lines, 1):.1f} %")
    print(f".c files                             {len(sources)}")
    print(f"headers                              {sum(p.endswith('.h') for p in own)}")
    print(f"private headers (parts, inside)      {sum(bool(re.search(r'(parts|inside|internal).h$', p)) for p in own)}")
    print(f"functions, median lines              {len(lengths)}, {lengths[len(lengths) // 2] if lengths else 0}")
    print(f"functions over 60 lines              {len(long)}")
    print(f"exported functions                   {exported}")
    print(f"  with one user, tests being one     {len(single)}")
    print(f"  that nobody calls                  {len(untold)}")
    share = 100 * len(repeated) / max(sum(text[path].count("\n") for path in sources), 1)
    print(f"lines repeated, {SAME} or more in a row     {len(repeated)}, {share:.2f} % of the .c files")
    print(f"files outside providers/ that name a provider  {len(naming)}")
    if os.environ.get("HOUSE_LIST"):
        copies = [f"{path}:{n} <- {first}" for path, n, first in repeated]
        for title, rows in (("repeated", copies), ("over 60 lines", long), ("one user", single), ("nobody calls", untold), ("names a provider", naming)):
            print(f"\n{title}:")
            print("\n".join("  " + row for row in rows))


main()
END
