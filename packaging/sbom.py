#!/usr/bin/env python3
"""Prints what a program consists of as SPDX 2.3 (JSON): itself with its commit, what is embedded in it, and the Debian
packages of all libraries that it loads, with versions and licences as Debian states them.

Usage: packaging/sbom.py [--image] PROGRAM [PACKAGE...]
--image: what is linked, and each PACKAGE, lies in the image beside the program; else it is only depended on.
The same sources and packages give the same bytes; SOURCE_DATE_EPOCH is the time that it tells."""
import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
SITE = "https://preheat.dev/spdx"

# Names of licences in Debian's copyright files, and in SPDX.
LICENCES = {
    "Apache-2.0": "Apache-2.0", "Artistic": "Artistic-1.0-Perl", "BSD-2-clause": "BSD-2-Clause",
    "BSD-3-clause": "BSD-3-Clause", "BSD-3-Clause": "BSD-3-Clause", "Expat": "MIT", "MIT": "MIT", "ISC": "ISC",
    "curl": "curl", "Zlib": "Zlib", "zlib": "Zlib", "GPL-2": "GPL-2.0-only", "GPL-2+": "GPL-2.0-or-later",
    "GPL-2.0+": "GPL-2.0-or-later", "GPL-3": "GPL-3.0-only", "GPL-3+": "GPL-3.0-or-later",
    "LGPL-2": "LGPL-2.0-only", "LGPL-2+": "LGPL-2.0-or-later", "LGPL-2.1": "LGPL-2.1-only",
    "LGPL-2.1+": "LGPL-2.1-or-later", "LGPL-3": "LGPL-3.0-only", "LGPL-3+": "LGPL-3.0-or-later",
    "MPL-2.0": "MPL-2.0", "OpenLDAP-2.8": "OLDAP-2.8",
}


# Debian's packages whose code the program holds, since they have no shared library.
STATIC = ("libnanopb-dev",)


class Refused(Exception):
    pass


def output(*command):
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout
    except (OSError, subprocess.CalledProcessError) as e:
        raise Refused(f"{' '.join(command)}: {getattr(e, 'stderr', '') or e}") from e


def libraries(program):
    """The files that the loader takes for PROGRAM."""
    listed = output("ldd", program)
    missing = re.findall(r"(\S+) => not found", listed)
    if missing:
        raise Refused(f"{program}: libraries are missing here: {' '.join(missing)}")
    return sorted({os.path.realpath(path) for path in re.findall(r"(?:=> |^\t)(/\S+) \(", listed, re.M)})


def owner(path):
    """The Debian package of a file; dpkg may know it by its name of before /lib became /usr/lib."""
    for name in (path, path.removeprefix("/usr")):
        found = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    raise Refused(f"{path}: no Debian package has it; the bill can only name what Debian's packages brought")


def spdx_id(text):
    return re.sub(r"[^A-Za-z0-9.-]", "-", text.replace("+", "-plus"))


class Licences:
    """Expressions for Debian's copyright files. Where one names several licences, or one that SPDX has no name for, the file
    itself is the licence: which of them holds for the library alone it does not say."""

    def __init__(self):
        self.texts = {}

    def reference(self, name, text):
        ref = "LicenseRef-" + spdx_id(name)
        self.texts[ref] = {"licenseId": ref, "name": name, "extractedText": text.strip() + "\n"}
        return ref

    def of(self, package, source):
        path = Path("/usr/share/doc", package, "copyright")
        if not path.exists():
            return "NOASSERTION"
        text = path.read_text(errors="replace")
        named = set()
        for paragraph in re.split(r"\n\s*\n", text):
            files = re.search(r"^Files: *(.*)$", paragraph, re.M)
            if files and not files[1].startswith("debian/"):
                named |= set(re.findall(r"^License: *(.*)$", paragraph, re.M)) or {""}
        parts = re.split(r" (or|and) ", named.pop().strip()) if len(named) == 1 else []
        if not parts or not set(parts) <= LICENCES.keys() | {"or", "and"} or {"or", "and"} <= set(parts):
            return self.reference(f"{source}-copyright", text)
        return " ".join(LICENCES.get(p, p.upper()) for p in parts)


def debian_package(name, licences):
    fields = "${Version}\t${Architecture}\t${source:Package}\t${source:Version}\t${Homepage}\t${Maintainer}"
    version, arch, source, source_version, home, maintainer = output("dpkg-query", "-W", "-f", fields, name).split("\t")
    person = re.sub(r" *<", " (", maintainer).replace(">", ")")
    purl = f"pkg:deb/debian/{name}@{quote(version, safe='')}?arch={arch}&distro=debian-{debian_release()}"
    return {
        "SPDXID": f"SPDXRef-deb-{spdx_id(name)}", "name": name, "versionInfo": version,
        "supplier": f"Organization: {person}", "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        **({"homepage": home} if home else {}),
        "sourceInfo": f"built by Debian from {source} {source_version}",
        "licenseConcluded": "NOASSERTION", "licenseDeclared": licences.of(name, source),
        "copyrightText": "NOASSERTION",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}],
    }


def debian_release():
    found = re.search(r'^VERSION_ID="?([^"\n]+)', Path("/etc/os-release").read_text(), re.M)
    return found[1] if found else "unknown"


def vendored_packages():
    """What lies in the sources as others published it."""
    for path in sorted(ROOT.glob("controller/*/assets/*/published.json")):
        package = json.loads(path.read_text())
        kind, digest = package["integrity"].split("-", 1)
        yield {
            "SPDXID": f"SPDXRef-npm-{spdx_id(package['name'])}", "name": package["name"], "versionInfo": package["version"],
            "supplier": "NOASSERTION", "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "checksums": [{"algorithm": kind.upper(), "checksumValue": base64.b64decode(digest).hex()}],
            "licenseConcluded": package["license"], "licenseDeclared": package["license"],
            "copyrightText": "NOASSERTION",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": f"pkg:npm/{package['name']}@{package['version']}"}],
        }


def preheat(program):
    said = output(os.path.abspath(program), "version").splitlines()[0]
    match = re.fullmatch(r"preheat (\S+) \(commit (\w+)(, modified)?\)", said)
    if not match:
        raise Refused(f"{program}: says '{said}' of its version")
    return {
        "SPDXID": "SPDXRef-preheat", "name": "preheat", "versionInfo": match[1],
        "supplier": "Organization: The Preheat authors", "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        "sourceInfo": f"built from commit {match[2]}{match[3] or ''}", "primaryPackagePurpose": "APPLICATION",
        "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": f"pkg:generic/preheat@{match[1]}?vcs_commit={match[2]}"}],
    }


def bill(program, image, more):
    licences = Licences()
    own = preheat(program)
    embedded = list(vendored_packages())
    names = {owner(path) for path in libraries(program)}
    linked = [debian_package(name, licences) for name in sorted(names)]
    held = [debian_package(name, licences) for name in STATIC]
    beside = [debian_package(name, licences) for name in sorted(set(more) - names)]
    relate = lambda a, how, b: {"spdxElementId": a, "relationshipType": how, "relatedSpdxElement": b["SPDXID"]}
    relations = [relate("SPDXRef-DOCUMENT", "DESCRIBES", own)]
    relations += [relate(own["SPDXID"], "CONTAINS", p) for p in embedded]
    relations += [relate(own["SPDXID"], "STATIC_LINK", p) for p in held]
    relations += [relate(own["SPDXID"], "DYNAMIC_LINK", p) for p in linked]
    if image:
        root = {**own, "SPDXID": "SPDXRef-image", "name": "preheat-image", "primaryPackagePurpose": "CONTAINER"}
        relations[0] = relate("SPDXRef-DOCUMENT", "DESCRIBES", root)
        relations += [relate(root["SPDXID"], "CONTAINS", p) for p in [own, *held, *linked, *beside]]
    packages = [*([root] if image else []), own, *embedded, *held, *linked, *beside]
    body = {"packages": packages, "relationships": relations,
            "hasExtractedLicensingInfos": [licences.texts[ref] for ref in sorted(licences.texts)]}
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    name = f"preheat-{'image-' if image else ''}{own['versionInfo']}"
    made = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
            "documentNamespace": f"{SITE}/{name}-{digest[:32]}",
            "creationInfo": {"created": made, "creators": ["Tool: preheat-packaging-sbom.py"]}, **body}


def main(arguments):
    image = arguments[:1] == ["--image"]
    rest = arguments[image:]
    if not rest or rest[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    if not os.environ.get("SOURCE_DATE_EPOCH", "").isdigit():
        print("sbom.py: SOURCE_DATE_EPOCH is not set to seconds since 1970 (packaging/date.sh prints the commit's)", file=sys.stderr)
        return 2
    try:
        print(json.dumps(bill(rest[0], image, rest[1:]), indent=2, ensure_ascii=False))
    except Refused as e:
        print(f"sbom.py: {e}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
