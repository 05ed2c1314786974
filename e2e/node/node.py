#!/usr/bin/env python3
"""Runs one real node on this machine, kubelet and containerd, in a cluster of e2e/cluster."""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from pathlib import Path
from typing import Callable

from place import LOCK, Node, owner
# Modules of e2e/cluster: `place` comes first, since it says where they are.
import build
import images
import kubelet
import machine
import processes
import runtime
from cluster import call, name_of_cluster
from layout import HERE, STATE, Cluster, ClusterError, lock, say

EXAMPLES = """\
examples:
  node.py up                     the cluster `dev` with a real node and no simulated ones
  node.py import image.tar       an OCI archive, for the node's pods
  node.py stop-kubelet           the containers go on; `start-kubelet` brings it back
  node.py down                   ends the node, not its cluster, and undoes all it changed
"""


def up(node: Node) -> None:
    """Starts the cluster if it does not run, and the node in it."""
    need_root()
    node.refuse_other()
    if owner() is None:
        kubelet.refuse_second()
    build.ensure((*build.DEFAULT, "kubelet"))
    subprocess.run([str(HERE / "cluster.py"), "up", "--dir", str(node.cluster.dir),
                    "--nodes", "0"], check=True, stdout=subprocess.DEVNULL)
    node.take()
    if processes.running(node.record("kubelet")) and kubelet.is_ready(node):
        say("the real node already runs")
        return
    try:
        # What an earlier node left, after a crash or a reboot.
        undo(node)
        began = time.monotonic()
        machine.prepare(node)
        runtime.start(node)
        for archive in images.make_all(node):
            runtime.add_image(archive)
        kubelet.start(node)
        say(f"the real node is Ready after {time.monotonic() - began:.1f} s")
    except BaseException:
        undo(node)
        node.forget()
        raise


def undo(node: Node) -> None:
    """Ends the node's processes and undoes what they changed, but keeps its files."""
    kubelet.end(node)
    runtime.end(node)
    machine.restore(node)
    kubelet.forget(node)


def down(node: Node) -> None:
    """Ends the node and undoes what it changed on the machine."""
    need_root()
    if not node.is_up():
        say(f"no real node of {node.cluster.dir}")
        return
    undo(node)
    node.forget()
    say("the real node is down")


def add_image(node: Node, archive: Path) -> None:
    """Imports an image."""
    need_up(node)
    runtime.add_image(archive)


def stop_kubelet(node: Node) -> None:
    """Ends the kubelet; the containers go on."""
    need_up(node)
    kubelet.end(node)


def start_kubelet(node: Node) -> None:
    """Starts the kubelet again."""
    need_up(node)
    if not processes.running(node.record("kubelet")):
        kubelet.start(node)


def need_root() -> None:
    if os.geteuid() != 0:
        raise ClusterError("a real node needs root: mounts, network namespaces and cgroups")


def need_up(node: Node) -> None:
    if not node.is_up():
        raise ClusterError(f"no real node of {node.cluster.dir}: `up` starts one")


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    which = argparse.ArgumentParser(add_help=False)
    which.add_argument("--name", type=name_of_cluster, default="dev",
                       help="the cluster in .cluster/NAME (default: dev)")

    def verb(name: str, action: Callable[..., None], short: str) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=short, description=short, parents=[which])
        added.set_defaults(action=action)
        return added

    verb("up", up, "start the cluster and a real node in it")
    verb("down", down, "end the node and undo what it changed")
    verb("import", add_image, "add the image of an OCI archive").add_argument(
        "archive", type=Path)
    verb("stop-kubelet", stop_kubelet, "end the kubelet; its containers go on")
    verb("start-kubelet", start_kubelet, "start the kubelet again")
    return parser


def main() -> None:
    args = vars(make_parser().parse_args())
    action = args.pop("action")
    node = Node(Cluster(STATE / args.pop("name")))

    def alone() -> None:
        with lock(LOCK, "changes the node"):
            action(node, **args)

    call(alone)


if __name__ == "__main__":
    main()
