"""Usage: sbom_test.py OUT, which holds what deb.sh and image.sh built."""
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

out = Path(sys.argv[1])
bills = {kind: out / kind / "preheat.spdx.json" for kind in ("deb", "image")}


def complaints(path):
    return [message.validation_message for message in validate_full_spdx_document(parse_file(str(path)))]


def packages(bill):
    return {package["name"]: package for package in bill["packages"]}


def related(bill, how):
    names = {package["SPDXID"]: package["name"] for package in bill["packages"]}
    return {names[r["relatedSpdxElement"]] for r in bill["relationships"] if r["relationshipType"] == how}


def image_files(archive):
    """Names of all files of the image."""
    with tarfile.open(archive) as tar:
        read = lambda digest: tar.extractfile("blobs/" + digest.replace(":", "/")).read()
        index = json.load(tar.extractfile("index.json"))
        for layer in json.loads(read(index["manifests"][0]["digest"]))["layers"]:
            yield from tarfile.open(fileobj=io.BytesIO(read(layer["digest"]))).getnames()


for kind, path in bills.items():
    assert not complaints(path), (kind, complaints(path))
read = {kind: json.loads(path.read_text()) for kind, path in bills.items()}

# The validator is awake.
with tempfile.NamedTemporaryFile("w", suffix=".json") as broken:
    json.dump({**read["deb"], "hasExtractedLicensingInfos": []}, broken)
    broken.flush()
    assert complaints(broken.name), "licences without a text are let pass"

# The same program, the same libraries, wherever it lies.
assert packages(read["deb"])["preheat"] == packages(read["image"])["preheat"]
commit = packages(read["deb"])["preheat"]["sourceInfo"]
assert re.fullmatch("built from commit ([0-9a-f]{12}|unknown)(, modified)?", commit), commit
linked = related(read["deb"], "DYNAMIC_LINK")
assert linked == related(read["image"], "DYNAMIC_LINK")
held = related(read["deb"], "STATIC_LINK")
assert held == related(read["image"], "STATIC_LINK") == {"libnanopb-dev"}, held
assert "uplot" in packages(read["deb"]) and packages(read["deb"])["uplot"]["checksums"]
assert len({bill["documentNamespace"] for bill in read.values()}) == 2

# All that the package depends on, and more: libraries of libraries.
depends = subprocess.run(["dpkg-deb", "-f", *map(str, (out / "deb").glob("preheat_*.deb")), "Depends"],
                         check=True, capture_output=True, text=True).stdout
direct = set(re.findall(r"(?:^|, )([a-z0-9.+-]+)", depends)) - {"tzdata"}
assert direct and direct < linked, direct - linked

# All that the image holds.
files = list(image_files(out / "image" / "preheat-image.tar"))
listed = {name.rsplit("/", 1)[1] for name in files if re.fullmatch(r"\.?/?var/lib/dpkg/status\.d/[^/]+", name)}
debian = {name for name, p in packages(read["image"]).items() if p["SPDXID"].startswith("SPDXRef-deb-")}
assert debian == listed == linked | held | {"tzdata", "ca-certificates"}, debian ^ listed
assert debian | {"preheat", "uplot", "preheat-image"} == packages(read["image"]).keys()
assert debian | {"preheat", "uplot"} == related(read["image"], "CONTAINS")
texts = {name.split("/")[-2] for name in files if re.search(r"usr/share/doc/[^/]+/copyright$", name)}
assert texts >= debian | {"preheat"}, debian - texts
print(f"{len(linked)} packages are linked, {len(debian)} lie in the image; {commit}")
