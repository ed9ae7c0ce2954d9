"""Unpacks an OCI archive of one image, and holds what it says of itself against what a cluster asks.
Usage: unpack_image.py ARCHIVE FOLDER LIMIT; LIMIT is in bytes, of all layers unpacked."""
import gzip
import io
import json
import re
import sys
import tarfile
from pathlib import Path

archive, folder, limit = tarfile.open(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])


def blob(descriptor):
    return archive.extractfile("blobs/" + descriptor["digest"].replace(":", "/")).read()


index = json.load(archive.extractfile("index.json"))
assert len(index["manifests"]) == 1, index
manifest = json.loads(blob(index["manifests"][0]))
config = json.loads(blob(manifest["config"]))
asked = config["config"]
version = re.search(r"^project\(preheat VERSION ([0-9.]+)", Path("CMakeLists.txt").read_text(), re.M)[1]
labels = asked["Labels"]

assert asked["User"] == "65532:65532", asked
assert asked["Entrypoint"] == ["/usr/bin/preheat"], asked
assert asked["WorkingDir"] == "/var/lib/preheat", asked
assert labels["org.opencontainers.image.version"] == version, labels
assert re.fullmatch("[0-9a-f]{12}(-modified)?|unknown", labels["org.opencontainers.image.revision"]), labels
assert not asked.get("ExposedPorts") and "Volumes" not in asked, asked

folder.mkdir()
size = 0
for layer in manifest["layers"]:
    tar = tarfile.open(fileobj=io.BytesIO(gzip.decompress(blob(layer)) if layer["mediaType"].endswith("gzip") else blob(layer)))
    for member in tar:
        assert not Path(member.name).name.startswith(".wh."), member.name
        assert not member.mode & 0o6000, f"{member.name}: runs as its owner"
        assert member.isdir() or member.issym() or not member.mode & 0o002, f"{member.name}: anybody may write it"
        size += member.size
    tar.extractall(folder, numeric_owner=True)
owner = (folder / "var/lib/preheat").stat()
assert (owner.st_uid, owner.st_gid) == (65532, 65532), owner
shells = [path for path in ("bin/sh", "bin/bash", "usr/bin/apt-get") if (folder / path).exists()]
assert not shells, shells
largest = sorted(((p.stat().st_size, str(p.relative_to(folder))) for p in folder.rglob("*") if p.is_file() and not p.is_symlink()))
print(f"-- {size:,} bytes in {len(manifest['layers'])} layers; the largest: " +
      ", ".join(f"{name} {of / 1e6:.1f} MB" for of, name in largest[:-7:-1]))
assert size < limit, f"{size:,} bytes, and {limit:,} are allowed"
