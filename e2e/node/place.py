"""What the node is called, on this machine and on disk. One machine has one real node."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

# The node joins a cluster of e2e/cluster and uses its modules.
sys.path.append(str(Path(__file__).resolve().parents[1] / "cluster"))

from layout import Cluster, ClusterError, remove, say  # noqa: E402

# Everything the node changes on the machine has one of these names, and nothing else has.
RUN = Path("/run/warmpool-node")     # sockets, mounts of running containers, and the owner
BRIDGE = "warmpool0"
NETWORK = "warmpool-node"
TABLE = "warmpool_node"              # of nftables
CGROUP = "warmpool-node"
SUBNET = "172.30.77.0/24"
ADDRESS = "172.30.77.1"              # of the bridge, and so of the node
KUBELET_PORT = 10250                 # on that address alone

SOCKET = RUN / "containerd.sock"
LOCK = Path("/run/lock/warmpool-node")  # one call at a time changes the node
OWNER = RUN / "owner"                # the directory of the cluster whose node this is
CNI_PLUGINS = Path("/usr/lib/cni")


@dataclass(frozen=True)
class Node:
    """The real node of one cluster; all that outlives a reboot is in the cluster's `node`."""

    cluster: Cluster

    @property
    def dir(self) -> Path:
        return self.cluster.dir / "node"

    def log(self, part: str) -> Path:
        return self.dir / "log" / f"{part}.log"

    def record(self, part: str) -> Path:
        """The file that says which process is the part."""
        return self.dir / "run" / f"{part}.json"

    def is_up(self) -> bool:
        """Whether this machine's node is the one of this cluster."""
        return owner() == self.cluster.dir

    def refuse_other(self) -> None:
        """Fails when this machine's node is another cluster's."""
        taken = owner()
        if taken and taken != self.cluster.dir:
            raise ClusterError(f"this machine already has a real node, of the cluster in {taken}; "
                               "there can be one at a time: end that one first")

    def take(self) -> None:
        """Makes this cluster the owner of the machine's node."""
        RUN.mkdir(mode=0o711, exist_ok=True)
        OWNER.write_text(f"{self.cluster.dir}\n")
        self.dir.mkdir(mode=0o700, exist_ok=True)

    def forget(self) -> None:
        """Removes the node's files, but for its logs; the last thing that is undone."""
        for path in self.dir.iterdir():
            if path.name != "log":
                remove(path)
        shutil.rmtree(RUN, ignore_errors=True)
        say(f"the node's logs stay in {self.dir / 'log'}")


def owner() -> Path | None:
    """The directory of the cluster that has the machine's node."""
    try:
        return Path(OWNER.read_text().strip())
    except FileNotFoundError:
        return None
