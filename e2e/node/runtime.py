"""containerd: how it is set up and started, and how images get into it."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import processes
from layout import ClusterError
from machine import command
from parts import PartFailed
from images import PAUSE
from place import BRIDGE, CNI_PLUGINS, NETWORK, RUN, SOCKET, SUBNET, Node

READY_SECONDS = 20
TERM_SECONDS = 10
POLL_SECONDS = 0.1


def program(name: str) -> str:
    found = shutil.which(name)
    if not found:
        raise ClusterError(f"`{name}` is not on PATH: e2e/node/packages.sh installs it")
    return found


def settings(node: Node) -> str:
    """Format 2 is read by containerd 1.6 and by every later one. `restrict_oom_score_adj`
    serves roots without CAP_SYS_RESOURCE, where a container may not be spared."""
    return f"""\
version = 2
root = "{node.dir / 'containerd'}"
state = "{RUN / 'containerd'}"
oom_score = 0
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "{SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  disable_tcp_service = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI_PLUGINS}"
    conf_dir = "{node.dir / 'cni'}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
        Root = "{RUN / 'runc'}"
"""


def network(node: Node) -> str:
    """One bridge, and addresses from one subnet: pods reach each other and the machine."""
    return json.dumps({
        "cniVersion": "0.4.0",
        "name": NETWORK,
        "plugins": [{
            "type": "bridge", "bridge": BRIDGE, "isGateway": True, "ipMasq": False,
            "hairpinMode": True,
            "ipam": {"type": "host-local", "dataDir": str(node.dir / "addresses"),
                     "ranges": [[{"subnet": SUBNET}]], "routes": [{"dst": "0.0.0.0/0"}]},
        }],
    }, indent=1)


def start(node: Node) -> None:
    """Starts containerd and waits until it answers."""
    program("runc")
    if not (CNI_PLUGINS / "bridge").exists():
        raise ClusterError(f"no CNI plugins in {CNI_PLUGINS}: e2e/node/packages.sh installs them")
    (node.dir / "cni").mkdir(exist_ok=True)
    (node.dir / "cni" / "10-node.conflist").write_text(network(node))
    config = node.dir / "containerd.toml"
    config.write_text(settings(node))
    processes.spawn([program("containerd"), "--config", str(config)], node.dir,
                    node.log("containerd"), node.record("containerd"))
    deadline = time.monotonic() + READY_SECONDS
    while subprocess.run([*ctr(), "version"], capture_output=True).returncode != 0:
        if not processes.running(node.record("containerd")):
            raise PartFailed(node, "containerd", "its process ended")
        if time.monotonic() > deadline:
            raise PartFailed(node, "containerd", f"no answer after {READY_SECONDS} s")
        time.sleep(POLL_SECONDS)


def end(node: Node) -> None:
    """Ends containerd; the containers go on."""
    processes.end([node.record("containerd")], TERM_SECONDS)


def ctr() -> list[str]:
    return [program("ctr"), "--address", str(SOCKET), "--namespace", "k8s.io"]


def add_image(archive: Path) -> None:
    """Puts the image of an OCI archive where the kubelet finds it, under the archive's name."""
    command(*ctr(), "images", "import", str(archive))
