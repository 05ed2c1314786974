"""Images made on this machine, since none can be pulled: OCI archives of one layer."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import shutil
import tarfile
from pathlib import Path

from layout import ClusterError
from place import Node

PAUSE = "warmpool.local/pause:1"
# Two versions of what a pool's users would run; /etc/version tells them apart.
SANDBOXES = ("warmpool.local/sandbox:1", "warmpool.local/sandbox:2")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def make_all(node: Node) -> list[Path]:
    """Writes the images every node has and returns their archives."""
    found = shutil.which("busybox")
    if not found:
        raise ClusterError("`busybox` is not on PATH; the node's images hold nothing else")
    busybox = Path(found).read_bytes()
    folder = node.dir / "images"
    folder.mkdir(exist_ok=True)
    # The first process of a pod holds its namespaces and sleeps; containerd ends it by KILL.
    archives = [write(folder / "pause.tar", PAUSE, {"bin/busybox": busybox},
                      entrypoint=["/bin/busybox", "sleep", "infinity"])]
    for name in SANDBOXES:
        version = name.rpartition(":")[2]
        archives.append(write(
            folder / f"sandbox-{version}.tar", name,
            {"bin/busybox": busybox, "etc/version": f"{version}\n".encode(),
             "etc/passwd": b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"},
            links={f"bin/{tool}": "busybox" for tool in
                   ("sh", "cat", "echo", "hostname", "id", "kill", "ls", "mkdir", "ps", "rm",
                    "sleep", "test", "touch", "tee", "true", "false", "wget")},
            folders=("tmp", "work"), entrypoint=["/bin/sh"]))
    return archives


def write(archive: Path, name: str, files: dict[str, bytes], *, links: dict[str, str] | None = None,
          folders: tuple[str, ...] = (), entrypoint: list[str]) -> Path:
    """Writes an image as an archive that `ctr images import` reads. Times and owners are
    fixed: the same content is the same image."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        parents = {str(Path(path).parent) for path in (*files, *(links or {}))}
        for folder in sorted(parents | set(folders)):
            add(tar, folder, kind=tarfile.DIRTYPE, mode=0o1777 if folder in folders else 0o755)
        for path, content in files.items():
            add(tar, path, content)
        for path, target in (links or {}).items():
            add(tar, path, kind=tarfile.SYMTYPE, target=target)
    packed = gzip.compress(layer.getvalue(), compresslevel=1, mtime=0)
    config = as_json({
        "os": "linux",
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
        "config": {"Entrypoint": entrypoint, "Env": ["PATH=/bin"], "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [digest(layer.getvalue())]},
    })
    manifest = as_json({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described("application/vnd.oci.image.config.v1+json", config),
        "layers": [described("application/vnd.oci.image.layer.v1.tar+gzip", packed)],
    })
    index = as_json({
        "schemaVersion": 2,
        "manifests": [described("application/vnd.oci.image.manifest.v1+json", manifest) | {
            "annotations": {"io.containerd.image.name": name}}],
    })
    with tarfile.open(archive, "w") as tar:
        add(tar, "oci-layout", as_json({"imageLayoutVersion": "1.0.0"}))
        add(tar, "index.json", index)
        for blob in (manifest, config, packed):
            add(tar, f"blobs/sha256/{digest(blob).partition(':')[2]}", blob)
    return archive


def add(tar: tarfile.TarFile, path: str, content: bytes = b"", *, kind: bytes = tarfile.REGTYPE,
        mode: int = 0o755, target: str = "") -> None:
    member = tarfile.TarInfo(path)
    member.type, member.mode, member.size, member.linkname = kind, mode, len(content), target
    tar.addfile(member, io.BytesIO(content))


def as_json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def described(media_type: str, blob: bytes) -> dict:
    return {"mediaType": media_type, "digest": digest(blob), "size": len(blob)}
