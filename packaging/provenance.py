#!/usr/bin/env python3
"""Where a release comes from, as an in-toto statement with SLSA's provenance (https://slsa.dev/spec/v1.1/provenance): each file by its
digest, the commit, the base of the image. It is not signed: whoever publishes it does that.

    provenance.py SHA256SUMS DIGEST [BASE]     DIGEST: the image's, as a registry will name it
"""

import json
import os
import re
import subprocess
import sys


def git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout.strip()


def commit():
    told = os.environ.get("PREHEAT_COMMIT")
    return told or git("rev-parse", "HEAD") + ("-modified" if git("status", "--porcelain") else "")


def subjects(path, image):
    with open(path, encoding="utf-8") as sums:
        files = [line.split() for line in sums]
    return [{"name": name, "digest": {"sha256": digest}} for digest, name in files] + [
        {"name": "preheat", "digest": {"sha256": image.removeprefix("sha256:")}}]


def main(sums, image, base=None):
    revision = commit()
    sources = {"uri": "git+preheat", "digest": {"gitCommit": revision.removesuffix("-modified")}}
    parameters = {"verb": "release"}
    dependencies = [sources]
    if base:
        parameters["base"] = base
    if base and (digest := re.search("@sha256:([0-9a-f]{64})$", base)):
        dependencies.append({"uri": base, "digest": {"sha256": digest[1]}})
    statement = {"_type": "https://in-toto.io/Statement/v1", "subject": subjects(sums, image),
                 "predicateType": "https://slsa.dev/provenance/v1",
                 "predicate": {
                     "buildDefinition": {"buildType": "https://preheat.dev/release/v1", "externalParameters": parameters,
                                         "internalParameters": {"modified": revision.endswith("-modified")},
                                         "resolvedDependencies": dependencies},
                     "runDetails": {"builder": {"id": "https://preheat.dev/dev-release"}}}}
    print(json.dumps(statement, indent=1))


main(*sys.argv[1:])
