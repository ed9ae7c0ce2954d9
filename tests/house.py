"""What tests/house.sh prints of the sources: sizes, and where the rules of CONTRIBUTING.md on modules are not kept."""

import collections
import json
import os
import re
import subprocess
import sys

ROOMS = ("base", "controller", "providers", "signals", "state")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def code_of(text):
    """The text without comments and strings, line by line."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)

    def blank(match):
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
    for path in sources:
        for name, first, last, is_static in functions[path]:
            lengths.append(last - first + 1)
            if last - first + 1 > 60:
                long.append(f"{path}:{first} {name} ({last - first + 1})")
            if is_static or name == "main":
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
    print(f"files outside providers/ that name a provider  {len(naming)}")
    if os.environ.get("HOUSE_LIST"):
        for title, rows in (("over 60 lines", long), ("one user", single), ("nobody calls", untold), ("names a provider", naming)):
            print(f"\n{title}:")
            print("\n".join("  " + row for row in rows))


main()
