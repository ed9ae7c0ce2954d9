#!/usr/bin/env python3
"""The charts' library in the sources is the published one: its files have the digests of published.json, and with TARBALL
(npm pack uplot@VERSION) that archive has the published digest and holds the same files.

Usage: tests/report/charts.py [TARBALL]. Exit 1 when anything differs."""
import base64
import hashlib
import json
import sys
import tarfile
from pathlib import Path

FOLDER = Path("controller/report/assets/uplot")


def differences(published, tarball):
    for name, digest in published["sha256"].items():
        if hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() != digest:
            yield f"{FOLDER / name}: not the file that was published as {published['name']} {published['version']}"
    for name in sorted({p.name for p in FOLDER.iterdir()} - {*published["sha256"], "published.json"}):
        yield f"{FOLDER / name}: published.json has no digest of it"
    if not tarball:
        return
    kind, digest = published["integrity"].split("-", 1)
    if hashlib.new(kind, Path(tarball).read_bytes()).digest() != base64.b64decode(digest):
        yield f"{tarball}: not the archive of published.json"
    with tarfile.open(tarball) as archive:
        held = {Path(m.name).name: archive.extractfile(m).read() for m in archive if m.isfile()}
    for name in published["sha256"]:
        if held.get(name) != (FOLDER / name).read_bytes():
            yield f"{FOLDER / name}: differs from the one in {tarball}"


found = list(differences(json.loads((FOLDER / "published.json").read_text()), sys.argv[1] if len(sys.argv) > 1 else None))
print(*found, sep="\n", end="\n" if found else "")
sys.exit(1 if found else 0)
