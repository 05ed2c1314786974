#!/usr/bin/env python3
"""Runs real Kubernetes control planes on this machine, without containers or root."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import Callable, ContextManager

import access
import build
import parts
import processes
import workload
from layout import (STATE, Cluster, ClusterError, bin_dir, choose_ports, lock, remove, say,
                    write_private)

EXAMPLES = """\
examples:
  cluster.py up                         the cluster `dev`, built first if need be
  eval "$(cluster.py up)"               the same, and KUBECONFIG set in this shell
  cluster.py up --name load --nodes 8   a second one beside it
  cluster.py status                     parts, pids, ports, logs
  cluster.py kill apiserver             a crash; `start apiserver` brings it back
  cluster.py token my-ns my-account     a kubeconfig with that account's rights
  cluster.py down                       ends it and removes its data, keeps its logs

`cluster.py VERB --help` tells more about one verb.
Binaries are kept in .cluster/bin; WARMPOOL_CLUSTER_BIN names another folder, so
that several checkouts can share one.
"""


def build_verb(args: argparse.Namespace) -> None:
    """Builds what is named and missing."""
    build.ensure(tuple(args.tools) or build.DEFAULT)
    print(f"binaries are in {bin_dir()}")


def up(args: argparse.Namespace) -> None:
    """Builds what is missing, starts what does not run, and proves that a pod runs."""
    build.ensure()
    cluster = args.cluster
    cluster.prepare()
    with cluster_lock(cluster):
        began = time.monotonic()
        running = [name for name in parts.PARTS if processes.running(cluster.record(name))]
        if len(running) == len(parts.PARTS):
            check_port(cluster, args.port)
            say(f"{cluster.dir.name} already runs")
        else:
            start_cluster(cluster, running, args)
            say(f"{cluster.dir.name} is ready after {time.monotonic() - began:.1f} s")
    print(f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}")
    print(f"# kubectl is at {build.binary('kubectl')}")


def start_cluster(cluster: Cluster, running: list[str], args: argparse.Namespace) -> None:
    """Starts the parts that do not run. With none running it is a new life, on fresh data
    unless the old is to be kept; else the crashed parts come back as they were."""
    started: list[str] = []
    try:
        if running:
            check_port(cluster, args.port)
        else:
            if not args.keep:
                cluster.wipe()
            choose_ports(cluster, args.port)
            if args.apiserver_flag:
                write_private(cluster.flags_file, json.dumps(args.apiserver_flag) + "\n")
            access.prepare_keys(cluster)
        say(f"starting {cluster.dir.name} in {cluster.dir}")
        parts.launch_store(cluster, started)
        workload.add_nodes(cluster, args.nodes)
        if args.crds:
            workload.apply_crds(cluster, args.crds)
        parts.launch_clients(cluster, started)
        if args.nodes:
            workload.await_nodes(cluster, args.nodes)
            workload.check_pod_runs(cluster)
    except BaseException:
        parts.end_parts(cluster, started)
        raise


def check_port(cluster: Cluster, asked: int | None) -> None:
    """A cluster that runs cannot move."""
    port = cluster.ports()["apiserver"]
    if asked and asked != port:
        raise ClusterError(f"{cluster.dir.name} runs on port {port}: `down` first")


def down(args: argparse.Namespace) -> None:
    """Ends every part and removes the data."""
    cluster = args.cluster
    if not cluster.ports_file.exists():
        say(f"no cluster in {cluster.dir}")
        return
    with cluster_lock(cluster):
        parts.end_parts(cluster, list(parts.PARTS))
        if not args.keep:
            remove(cluster.dir / "etcd")
    say(f"{cluster.dir.name} is down")


def stop(args: argparse.Namespace) -> None:
    """Ends one part in good order."""
    args.cluster.ports()
    with cluster_lock(args.cluster):
        parts.end_parts(args.cluster, [args.part])
    say(f"{args.part} is stopped")


def kill(args: argparse.Namespace) -> None:
    """Ends one part at once, as a crash would."""
    args.cluster.ports()
    with cluster_lock(args.cluster):
        processes.kill(args.cluster.record(args.part))
    say(f"{args.part} is killed")


def start(args: argparse.Namespace) -> None:
    """Starts one part again, on the same ports and data."""
    cluster, name = args.cluster, args.part
    cluster.ports()
    with cluster_lock(cluster):
        if processes.running(cluster.record(name)):
            say(f"{name} already runs")
            return
        began = time.monotonic()
        try:
            parts.launch(cluster, name)
            parts.await_ready(cluster, name)
        except BaseException:
            parts.end_parts(cluster, [name])
            raise
        say(f"{name} is ready after {time.monotonic() - began:.1f} s")


def token(args: argparse.Namespace) -> None:
    """Writes a kubeconfig for a ServiceAccount and prints its path."""
    cluster = args.cluster
    cluster.ports()
    path = (args.out or cluster.dir / f"{args.namespace}-{args.account}.kubeconfig").absolute()
    access.write_account_kubeconfig(cluster, workload.kubectl(cluster), args.namespace,
                                    args.account, path)
    print(path)


def status(args: argparse.Namespace) -> None:
    """Prints one line for each part; exit code 1 unless all are ready."""
    cluster = args.cluster
    ports = cluster.ports()
    states = parts.states(cluster)
    rows = [("PART", "PID", "PORT", "STATE", "LOG")]
    for name, state in states.items():
        process = processes.running(cluster.record(name))
        rows.append((name, str(process.pid) if process else "-", str(ports.get(name, "-")),
                     state, str(cluster.log(name))))
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    if set(states.values()) != {"ready"}:
        sys.exit(1)


def cluster_lock(cluster: Cluster) -> ContextManager[None]:
    """Only one call at a time changes a cluster."""
    return lock(cluster.dir / ".lock", f"changes {cluster.dir.name}")


def name_of_cluster(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", text) or text == "bin":
        raise argparse.ArgumentTypeError("lower-case letters, digits and dashes, not `bin`")
    return text


def known_tool(text: str) -> str:
    if text not in build.TOOLS:
        raise argparse.ArgumentTypeError(f"unknown; one of {', '.join(build.TOOLS)}")
    return text


def count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError("a number from 0 on")
    return int(text)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    which = argparse.ArgumentParser(add_help=False)
    place = which.add_mutually_exclusive_group()
    place.add_argument("--name", type=name_of_cluster, default="dev",
                       help="the cluster in .cluster/NAME (default: dev)")
    place.add_argument("--dir", type=Path, help="the cluster in this directory instead")

    def verb(name: str, action: Callable[[argparse.Namespace], None], short: str,
             more: str = "", whole: bool = True) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=short, description=f"{short}. {more}".strip(),
                                 parents=[which] if whole else [])
        added.set_defaults(action=action)
        return added

    added = verb("build", build_verb, "build missing binaries", whole=False,
                 more="A binary is built again when its module's go.mod or go.sum changed. "
                      f"Without a name: {', '.join(build.DEFAULT)}. Only by name: "
                      f"{', '.join(build.ON_REQUEST)}.")
    added.add_argument("tools", nargs="*", metavar="TOOL", type=known_tool,
                       help="what to build")
    added = verb("up", up, "start a cluster and wait until a pod runs in it",
                 more="Prints the line that sets KUBECONFIG. On a cluster that runs it only "
                      "prints; on one with crashed parts it starts those again.")
    added.add_argument("--port", type=count, metavar="BASE",
                       help=f"use {len(parts.PARTS) + 1} ports from here on (default: free "
                            "ones, remembered in ports.json)")
    added.add_argument("--nodes", type=count, default=4, metavar="N",
                       help="how many nodes KWOK plays (default: 4); with 0 no pod is tried")
    added.add_argument("--crds", type=Path, metavar="DIR",
                       help="apply the CustomResourceDefinitions of this kustomization before the "
                            "controller manager starts, whose garbage collector learns of later "
                            "ones within 30 s only")
    added.add_argument("--apiserver-flag", action="append", metavar="FLAG",
                       help="start the API server with this flag, too, in this life of the cluster: "
                            "--apiserver-flag=--max-requests-inflight=12; may be given several times")
    added.add_argument("--keep", action="store_true",
                       help="start on the data of the cluster's last life")
    added = verb("down", down, "end a cluster and remove its data",
                 more="Ends exactly the processes that were started for it. Logs stay.")
    added.add_argument("--keep", action="store_true", help="keep the data for `up --keep`")
    for name, action, short in (("stop", stop, "end one part in good order"),
                                ("kill", kill, "end one part as a crash would"),
                                ("start", start, "start one part again and wait for it")):
        added = verb(name, action, short, "Its data and ports stay the same.")
        added.add_argument("part", choices=list(parts.PARTS))
    added = verb("token", token, "write a kubeconfig for a ServiceAccount",
                 more="It holds a token good for 24 hours. Prints the path.")
    added.add_argument("namespace")
    added.add_argument("account", metavar="serviceaccount")
    added.add_argument("--out", type=Path, metavar="FILE",
                       help="where to (default: NAMESPACE-SERVICEACCOUNT.kubeconfig in the "
                            "cluster's directory)")
    verb("status", status, "list the parts", "Exit code 1 unless all are ready.")
    return parser


def call(action: Callable[[], None]) -> None:
    """Runs what the command line asks for. TERM and a closed terminal clean up as ^C does,
    unless we are told to ignore them; a failure that is meant for the user is one sentence."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda caught, _: sys.exit(128 + caught))
    try:
        action()
    except ClusterError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def main() -> None:
    args = make_parser().parse_args()
    if hasattr(args, "name"):
        args.cluster = Cluster((args.dir or STATE / args.name).resolve())
    call(lambda: args.action(args))


if __name__ == "__main__":
    main()
