"""The operator's image: built when its sources changed, and where the plugin comes from."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path

import runtime
from layout import REPO, STATE, ClusterError
from machine import command
from world import World, check, note

# The same image under two names, for an upgrade from one to the other.
NAMES = ("warmpool.local/warmpool:1", "warmpool.local/warmpool:2")
FOLDER = STATE / "image"
SOURCES = ("Cargo.toml", "Cargo.lock", "Dockerfile", "src", "e2e/image")


def prepare() -> Path:
    """Builds the image from the Dockerfile, unless that was done for these very sources;
    the archive."""
    archive, stamp = FOLDER / "warmpool.tar", FOLDER / "sources"
    wanted = sources()
    if not (archive.exists() and stamp.exists() and stamp.read_text() == wanted):
        FOLDER.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([str(REPO / "e2e" / "image" / "build.sh"), str(archive), NAMES[0]])
        if done.returncode != 0:
            raise ClusterError("the image could not be built")
        stamp.write_text(wanted)
    return archive


def sources() -> str:
    """A digest of all that the image is built from."""
    files = command("git", "-C", str(REPO), "ls-files", "--cached", "--others",
                    "--exclude-standard", "--", *SOURCES).splitlines()
    digest = hashlib.sha256()
    for name in sorted(files):
        path = REPO / name
        digest.update(f"{name}\n".encode() + (path.read_bytes() if path.exists() else b""))
    return digest.hexdigest()


def take_out_plugin(archive: Path, plugin: Path) -> None:
    """Writes the image's only file to `plugin`: under that name it is kubectl's plugin."""
    with tarfile.open(archive) as image:
        index = json.loads(member(image, "index.json"))
        manifest = json.loads(member(image, blob(index["manifests"][0])))
        with tarfile.open(fileobj=io.BytesIO(member(image, blob(manifest["layers"][-1])))) as layer:
            binary = member(layer, "warmpool")
    plugin.parent.mkdir(parents=True, exist_ok=True)
    plugin.write_bytes(binary)
    plugin.chmod(0o755)


def blob(described: dict) -> str:
    """Where an archive keeps what one of its documents describes."""
    return f"blobs/{described['digest'].replace(':', '/')}"


def member(tar: tarfile.TarFile, name: str) -> bytes:
    found = tar.extractfile(name)
    if found is None:
        raise ClusterError(f"{name} in the image's archive is not a file")
    return found.read()


def the_image_built_from_the_dockerfile_is_one_program(world: World) -> None:
    archive = FOLDER / "warmpool.tar"
    runtime.add_image(archive)
    command(*runtime.ctr(), "images", "tag", "--force", *NAMES)
    said = subprocess.run([str(world.plugin), "--help"], capture_output=True, text=True)
    check(said.returncode == 0, f"the program in the image does not run: {said.stderr}")
    note(command(*runtime.ctr(), "images", "list", "name~=warmpool.local/warmpool"))
