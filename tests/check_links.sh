#!/usr/bin/env bash
# Links in documents lead somewhere: files that git knows, and headings in them. Usage: tests/check_links.sh [ROOT]
set -euo pipefail
cd "${1:-.}"
git rev-parse --git-dir >/dev/null 2>&1 || { echo "skipped: not a git checkout, or no git"; exit 77; }
exec python3 -B - <<'END_OF_PROGRAM'
import os
import re
import subprocess
import sys

known = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True).stdout.split("\n")
known = {path for path in known if path and os.path.exists(path)}
folders = {os.path.dirname(path) for path in known} | {os.path.dirname(os.path.dirname(path)) for path in known}


def anchors(path, cache={}):
    """The anchors that headings of a Markdown file have, as GitHub makes them."""
    if path not in cache:
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"^```.*?^```", "", file.read(), flags=re.S | re.M)
        cache[path] = {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in re.findall(r"^#+ (.*)", text, re.M)}
    return cache[path]


def wrong(page, target, base):
    """Why a link leads nowhere, or None."""
    path, _, anchor = target.partition("#")
    path = os.path.normpath(os.path.join(base, path)) if path else page
    if path not in known and path not in folders:
        return "no such file"
    if anchor and path.endswith(".md") and anchor not in anchors(path):
        return "no such heading"
    return None


found = []
for page in sorted(known):
    if page.startswith("tests/fuzz/") or not re.search(r"\.(md|c|h|def|sh|py|yaml|yml|txt|json)$|^dev$", page):
        continue
    with open(page, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            links = [(target, os.path.dirname(page)) for target in re.findall(r"\]\(([^)\s]+)\)", line)] if page.endswith(".md") else []
            links += [(target, "") for target in re.findall(r"(?<![\w/.-])docs/[a-z-]+\.md(?:#[a-z0-9_-]+)?", line)]
            for target, base in links:
                why = None if re.match(r"[a-z]+:", target) else wrong(page, target, base)
                if why:
                    found.append(f"{page}:{number}: {target} <- {why}")
print("\n".join(found))
sys.exit(1 if found else 0)
END_OF_PROGRAM
