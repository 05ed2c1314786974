"""Where things lie: the repository, one cluster's directory, its ports and its lock."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import re
import shutil
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]
# Resolved, because a kubelet and the table of mounts know only the place behind a link.
STATE = (REPO / ".cluster").resolve()
LOOPBACK = "127.0.0.1"

# With `--port BASE` these take BASE, BASE+1, ... in this order.
PORT_NAMES = ("apiserver", "etcd", "etcd-peer", "kcm", "scheduler", "kwok")

# What one life of a cluster leaves behind; a new life starts without it.
LEFTOVERS = (
    "etcd", "cert", "run", "log", "audit.log", "sa.key", "kubelet-client.pem", "tokens.csv",
    "kubectl-cache", "apiserver-flags.json",
)


class ClusterError(Exception):
    """A failure to show to the user as it is, without a traceback."""


def say(message: str) -> None:
    """Progress goes to stderr, so that stdout holds only what a shell may read."""
    print(message, file=sys.stderr, flush=True)


def asked_version() -> str:
    """The version of Kubernetes that the environment asks for; empty for the usual one."""
    version = os.environ.get("WARMPOOL_KUBERNETES", "")
    if not re.fullmatch(r"(1\.\d+\.\d+)?", version):
        raise ClusterError(f"WARMPOOL_KUBERNETES={version} is not a version such as 1.30.14")
    return version


def bin_dir() -> Path:
    """The folder of the binaries, one for each version of Kubernetes. A second checkout can
    share one: a build takes minutes."""
    usual = STATE / asked_version() / "bin"
    return Path(os.environ.get("WARMPOOL_CLUSTER_BIN") or usual).absolute()


@dataclass(frozen=True)
class Cluster:
    """One cluster is one directory: all its state is in there and nowhere else."""

    dir: Path

    @property
    def kubeconfig(self) -> Path:
        return self.dir / "kubeconfig"

    @property
    def certificate(self) -> Path:
        """The API server's certificate followed by the authority that signed it."""
        return self.dir / "cert" / "apiserver.crt"

    @property
    def kubelet_client(self) -> Path:
        """Key and certificate with which the API server talks to a real node's kubelet."""
        return self.dir / "kubelet-client.pem"

    @property
    def ports_file(self) -> Path:
        return self.dir / "ports.json"

    def log(self, part: str) -> Path:
        return self.dir / "log" / f"{part}.log"

    def record(self, part: str) -> Path:
        """The file that says which process is the part."""
        return self.dir / "run" / f"{part}.json"

    def ports(self) -> dict[str, int]:
        """The ports of this cluster; the file is also the mark of a cluster's directory."""
        ports = json.loads(self.ports_file.read_text()) if self.ports_file.exists() else {}
        if set(ports) != set(PORT_NAMES):
            raise ClusterError(f"no cluster in {self.dir}: `up` makes one")
        return ports

    @property
    def flags_file(self) -> Path:
        return self.dir / "apiserver-flags.json"

    def more_apiserver_flags(self) -> list[str]:
        """What `up` was told to give the API server beside its usual flags, for each of its starts."""
        return json.loads(self.flags_file.read_text()) if self.flags_file.exists() else []

    def server(self) -> str:
        return f"https://{LOOPBACK}:{self.ports()['apiserver']}"

    def prepare(self) -> None:
        """Makes the directory. Files in it are deleted later, so it must be ours."""
        self.dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.ports_file.exists():
            return
        if any(not path.name.startswith(".") for path in self.dir.iterdir()):
            raise ClusterError(f"{self.dir} holds something that is not a cluster; "
                               "choose an empty or new directory")
        write_private(self.ports_file, "{}\n")

    def wipe(self) -> None:
        """Removes what an earlier life of the cluster left."""
        for name in LEFTOVERS:
            remove(self.dir / name)
        for kubeconfig in self.dir.glob("*kubeconfig"):
            remove(kubeconfig)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_private(path: Path, text: str) -> None:
    """Writes a file only its owner can read, whole or not at all: most of ours hold a
    token, and some are read by other calls at the same time."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(text)
    draft.replace(path)


@contextlib.contextmanager
def lock(path: Path, what: str) -> Iterator[None]:
    """Holds a file lock; says so when it has to wait for another caller."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another call that {what}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def is_free(port: int) -> bool:
    """Whether a server could listen there now; a port in TIME_WAIT counts as free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def ephemeral_start() -> int:
    """The first port the kernel hands out to outgoing connections.

    A server must not live above it: while it is down, a client that retries can be
    given that very port, and the server cannot come back.
    """
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except FileNotFoundError:
        return 32768


def taken_by_neighbours(cluster: Cluster) -> set[int]:
    """Ports of the clusters beside this one, whose parts may be down just now."""
    taken: set[int] = set()
    for path in cluster.dir.parent.glob("*/ports.json"):
        if path != cluster.ports_file:
            taken.update(json.loads(path.read_text()).values())
    return taken


def choose_ports(cluster: Cluster, base: int | None) -> dict[str, int]:
    """Settles the ports and remembers them, for parts that are started again."""
    with lock(STATE / "ports.lock", "chooses ports"):
        ports = asked_ports(base) if base else remembered_ports(cluster) or free_ports(cluster)
        write_private(cluster.ports_file, json.dumps(ports, indent=1) + "\n")
    return ports


def asked_ports(base: int) -> dict[str, int]:
    ports = {name: base + offset for offset, name in enumerate(PORT_NAMES)}
    if not 0 < base <= 65535 - len(PORT_NAMES):
        raise ClusterError(f"port {base} is out of range")
    for name, port in ports.items():
        if not is_free(port):
            raise ClusterError(f"{name}: port {port} on {LOOPBACK} is taken; "
                               f"--port needs {len(PORT_NAMES)} free ports in a row")
    return ports


def remembered_ports(cluster: Cluster) -> dict[str, int] | None:
    """The ports of the cluster's last life, so that a pasted KUBECONFIG stays right."""
    try:
        ports = cluster.ports()
    except ClusterError:
        return None
    return ports if all(map(is_free, ports.values())) else None


def free_ports(cluster: Cluster) -> dict[str, int]:
    """Six free ports in a row, below those of outgoing connections."""
    taken = taken_by_neighbours(cluster)
    last = max(ephemeral_start(), 12000) - len(PORT_NAMES)
    for _ in range(1000):
        base = random.randrange(10000, last)
        ports = {name: base + offset for offset, name in enumerate(PORT_NAMES)}
        if all(port not in taken and is_free(port) for port in ports.values()):
            return ports
    raise ClusterError(f"no {len(PORT_NAMES)} free ports in a row below {last}")
