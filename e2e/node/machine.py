"""What a node needs of the machine, noted before it is changed, and undone again: kernel
settings, a bridge, one rule that leads to the API server, a cgroup."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Iterator

from layout import LOOPBACK, ClusterError, write_private
from place import ADDRESS, BRIDGE, CGROUP, NETWORK, RUN, SOCKET, SUBNET, TABLE, Node

# Written by the kubelet, and the last one by the CNI plugin `bridge`.
SYSCTLS = (
    "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "net/ipv4/ip_forward",
)
CONTROLLERS = ("cpu", "cpuset", "memory", "hugetlb", "pids")
# The first address of --service-cluster-ip-range: `kubernetes` of every pod's environment.
API_SERVICE = "10.96.0.1"
# Where every CNI plugin notes what it did.
CNI_RESULTS = Path("/var/lib/cni/results")
GONE_SECONDS = 10
POLL_SECONDS = 0.1


def command(*argv: str, given: str | None = None) -> str:
    """Runs a program of the system; what it prints, or its complaint as an error."""
    done = subprocess.run(argv, capture_output=True, text=True, input=given)
    if done.returncode != 0:
        raise ClusterError(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout


def prepare(node: Node) -> None:
    """Makes what the node needs. Everything here is undone by `restore`."""
    note_sysctls(node)
    if not Path("/sys/class/net", BRIDGE).exists():
        if "dev" in command("ip", "route", "show", "root", SUBNET):
            raise ClusterError(f"this machine has a route to {SUBNET} already, which the node's "
                               "pods would need")
        command("ip", "link", "add", BRIDGE, "type", "bridge")
        command("ip", "addr", "add", f"{ADDRESS}/{SUBNET.partition('/')[2]}", "dev", BRIDGE)
        command("ip", "link", "set", BRIDGE, "up")
    lead_to_api(node)
    for root in cgroup_roots():
        hand_down(root)
        (root / CGROUP).mkdir(exist_ok=True)


def note_sysctls(node: Node) -> None:
    notes = node.dir / "sysctls.json"
    if not notes.exists():
        found = {name: Path("/proc/sys", name).read_text().strip()
                 for name in SYSCTLS if Path("/proc/sys", name).exists()}
        write_private(notes, json.dumps(found, indent=1) + "\n")


def lead_to_api(node: Node) -> None:
    """Pods reach the API server at its service address, though it listens on loopback alone
    and there is no kube-proxy. A table of our own is added, and later deleted, whole."""
    Path("/proc/sys/net/ipv4/conf", BRIDGE, "route_localnet").write_text("1")
    port = node.cluster.ports()["apiserver"]
    command("nft", "-f", "-", given=f"""
        add table ip {TABLE}
        delete table ip {TABLE}
        table ip {TABLE} {{
          chain prerouting {{
            type nat hook prerouting priority dstnat;
            iifname "{BRIDGE}" ip daddr {API_SERVICE} tcp dport 443 dnat to {LOOPBACK}:{port}
          }}
        }}
        """)


def cgroup_roots() -> list[Path]:
    """Where a cgroup is made: in the one tree of version 2, or in each of version 1."""
    top = Path("/sys/fs/cgroup")
    if (top / "cgroup.controllers").exists():
        return [top]
    return [path.parent for path in top.glob("*/cgroup.procs")
            if not (path.parent / "cgroup.controllers").exists() and not path.parent.is_symlink()]


def hand_down(root: Path) -> None:
    """In version 2 a cgroup has the controllers that the one above it hands down. The kubelet
    refuses to start without those of its own that the machine has. They stay handed down:
    others may have come to use them."""
    if (root / "cgroup.controllers").exists():
        for name in (root / "cgroup.controllers").read_text().split():
            if name in CONTROLLERS:
                (root / "cgroup.subtree_control").write_text(f"+{name}")


def restore(node: Node) -> None:
    """Undoes what `prepare`, the kubelet and containerd changed. Safe to repeat, and goes on
    after a part that fails, so that one complaint does not leave the rest undone."""
    problems = []
    for undo in (end_processes, unmount, remove_cgroups, remove_network, restore_sysctls):
        try:
            undo(node)
        except (ClusterError, OSError) as error:
            problems.append(f"  {undo.__name__.replace('_', ' ')}: {error}")
    if problems:
        raise ClusterError("not everything of the node could be undone; try again:\n"
                           + "\n".join(problems))


def end_processes(_: Node) -> None:
    """Kills what runs in containers, known by its cgroup, and the shims above it, known by
    our socket among their arguments. A shim's own socket is not where containerd's is."""
    deadline = time.monotonic() + GONE_SECONDS
    while pids := [*contained(), *shims()]:
        if time.monotonic() > deadline:
            raise ClusterError(f"processes {pids} do not end")
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(POLL_SECONDS)
    for address in RUN.glob("containerd/io.containerd.runtime.v2.task/*/*/address"):
        Path(address.read_text().removeprefix("unix://")).unlink(missing_ok=True)


def contained() -> Iterator[int]:
    for root in cgroup_roots():
        for procs in (root / CGROUP).rglob("cgroup.procs"):
            yield from map(int, procs.read_text().split())


def shims() -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            argv = path.read_text(errors="replace").split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if argv[0].endswith("containerd-shim-runc-v2") and str(SOCKET) in argv:
            yield int(path.parent.name)


def unmount(node: Node) -> None:
    """Unmounts what lies under the node's directories, the innermost first."""
    places = [line.split()[1].encode().decode("unicode_escape")
              for line in Path("/proc/self/mounts").read_text().splitlines()]
    for place in reversed(places):
        if any(Path(place).is_relative_to(top) for top in (RUN, node.dir)):
            command("umount", "--lazy", place)


def remove_cgroups(_: Node) -> None:
    """Also from the empty tree of version 2 beside those of version 1, where runc makes some."""
    top = Path("/sys/fs/cgroup")
    for root in (top, *top.iterdir()):
        if (root / CGROUP).exists() and not root.is_symlink():
            for folder, _folders, _files in os.walk(root / CGROUP, topdown=False):
                os.rmdir(folder)


def remove_network(_: Node) -> None:
    """The pods' ends of their links went with their network namespaces."""
    if Path("/sys/class/net", BRIDGE).exists():
        command("ip", "link", "delete", BRIDGE)
    command("nft", "-f", "-", given=f"add table ip {TABLE}\ndelete table ip {TABLE}\n")
    for result in CNI_RESULTS.glob(f"{NETWORK}-*-eth0"):
        pod = result.name.removeprefix(f"{NETWORK}-").removesuffix("-eth0")
        result.unlink()
        (CNI_RESULTS / f"cni-loopback-{pod}-lo").unlink(missing_ok=True)
    remove_empty(CNI_RESULTS, CNI_RESULTS.parent)


def remove_empty(*folders: Path) -> None:
    """Removes folders that programs made where no setting of theirs leads, if nobody else
    uses them."""
    for folder in folders:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def restore_sysctls(node: Node) -> None:
    notes = node.dir / "sysctls.json"
    if notes.exists():
        for name, value in json.loads(notes.read_text()).items():
            path = Path("/proc/sys", name)
            if path.read_text().strip() != value:
                path.write_text(value)
        notes.unlink()
