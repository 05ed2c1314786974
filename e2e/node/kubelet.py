"""The kubelet: how it is set up, started and ended, and when its node is Ready."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

import build
import processes
from access import REAL_NODE
from layout import ClusterError, write_private
from machine import remove_empty
from parts import PartFailed, api
from place import ADDRESS, CGROUP, KUBELET_PORT, SOCKET, Node
from workload import has_condition

READY_SECONDS = 60
TERM_SECONDS = 10
POLL_SECONDS = 0.1
NODE_PATH = f"/api/v1/nodes/{REAL_NODE}"
# Two places that no setting of the kubelet moves: links to the logs of containers, and where
# device plugins find it.
LOG_LINKS = Path("/var/log/containers")
DEVICE_SOCKET = Path("/var/lib/kubelet/device-plugins/kubelet.sock")


def settings(node: Node) -> dict:
    """What differs from the defaults, for roots without CAP_SYS_RESOURCE, for cgroups of
    either version without systemd, and for images that cannot be pulled again."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "address": ADDRESS,
        "port": KUBELET_PORT,
        "healthzPort": 0,
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False},
                           "x509": {"clientCAFile": str(node.dir / "apiserver.crt")}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{CGROUP}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "protectKernelDefaults": False,
        "makeIPTablesUtilChains": False,
        "podLogsDir": str(node.dir / "pods"),
        # Nothing answers there; without it, each pod gets a warning event.
        "clusterDNS": ["10.96.0.10"],
        "clusterDomain": "cluster.local",
        "maxPods": 200,
        "serializeImagePulls": False,
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        # A machine that is short of disk is not this node's business.
        "evictionHard": {"memory.available": "100Mi"},
        "nodeStatusUpdateFrequency": "5s",
        "shutdownGracePeriod": "0s",
    }


def start(node: Node) -> None:
    """Starts the kubelet and waits until its node is Ready."""
    # The certificate alone, without its key.
    pem = node.cluster.kubelet_client.read_text()
    (node.dir / "apiserver.crt").write_text(pem[pem.index("-----BEGIN CERTIFICATE-----"):])
    config = node.dir / "kubelet.json"
    write_private(config, json.dumps(settings(node), indent=1) + "\n")
    root = node.dir / "kubelet"
    root.mkdir(exist_ok=True)
    before = heartbeat(node)
    processes.spawn([
        str(build.binary("kubelet")), f"--config={config}", f"--root-dir={root}",
        f"--cert-dir={root / 'pki'}", f"--kubeconfig={node.cluster.dir / 'kubelet.kubeconfig'}",
        f"--hostname-override={REAL_NODE}", f"--node-ip={ADDRESS}",
    ], node.dir, node.log("kubelet"), node.record("kubelet"))
    deadline = time.monotonic() + READY_SECONDS
    while not (is_ready(node) and heartbeat(node) != before):
        if not processes.running(node.record("kubelet")):
            raise PartFailed(node, "kubelet", "its process ended")
        if time.monotonic() > deadline:
            raise PartFailed(node, "kubelet", f"its node is not Ready after {READY_SECONDS} s")
        time.sleep(POLL_SECONDS)


def refuse_second() -> None:
    """Two kubelets on one machine would take that socket from each other."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(DEVICE_SOCKET))
        except OSError:
            return
    raise ClusterError("a kubelet runs on this machine already, and there can be one")


def end(node: Node) -> None:
    """Ends the kubelet; its containers go on."""
    processes.end([node.record("kubelet")], TERM_SECONDS)


def is_ready(node: Node) -> bool:
    return has_condition(api(node.cluster, NODE_PATH), "Ready")


def heartbeat(node: Node) -> str | None:
    """When the kubelet last spoke: a node may still be called Ready by the word of the
    kubelet that ran before."""
    conditions = api(node.cluster, NODE_PATH).get("status", {}).get("conditions", [])
    return next((condition["lastHeartbeatTime"] for condition in conditions
                 if condition["type"] == "Ready"), None)


def forget(node: Node) -> None:
    """Removes the Node object and what the kubelet left outside its directory."""
    if node.cluster.certificate.exists():
        api(node.cluster, NODE_PATH, "DELETE")
    if LOG_LINKS.is_dir():
        for link in LOG_LINKS.iterdir():
            if link.is_symlink() and Path(os.readlink(link)).is_relative_to(node.dir):
                link.unlink()
    DEVICE_SOCKET.unlink(missing_ok=True)
    remove_empty(LOG_LINKS, DEVICE_SOCKET.parent, DEVICE_SOCKET.parents[1])
