"""What a fresh cluster is given and asked before it is called ready: nodes, and one pod."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Callable

import build
from layout import Cluster, ClusterError
from parts import PartFailed, api, fake_nodes

NODES_SECONDS = 30
CRD_SECONDS = 30
POD_SECONDS = 30
POLL_SECONDS = 0.1
POD = "cluster-check"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def kubectl(cluster: Cluster) -> list[str]:
    """The kubectl built here (one from PATH may be years old), as admin. Its discovery
    cache stays with the cluster: ports are used again by clusters with other types."""
    return [str(build.binary("kubectl")), f"--kubeconfig={cluster.kubeconfig}",
            f"--cache-dir={cluster.dir / 'kubectl-cache'}"]


def run(cluster: Cluster, *arguments: str, given: object = None) -> None:
    """Runs kubectl, with an object on its stdin where it reads one."""
    done = subprocess.run([*kubectl(cluster), *arguments], capture_output=True, text=True,
                          input=json.dumps(given))
    if done.returncode != 0:
        raise ClusterError(f"kubectl {arguments[0]}: {done.stderr.strip()}")


def node(number: int) -> dict:
    """A node that KWOK plays."""
    name = f"kwok-{number}"
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"type": "kwok", "kubernetes.io/hostname": name,
                       "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
    }


def add_nodes(cluster: Cluster, count: int) -> None:
    if count == 0:
        return
    nodes = [node(number) for number in range(count)]
    run(cluster, "apply", "--server-side", "-f", "-",
        given={"apiVersion": "v1", "kind": "List", "items": nodes})


def apply_crds(cluster: Cluster, where: Path) -> None:
    """Applies the CustomResourceDefinitions of a kustomization and waits until they are served."""
    run(cluster, "apply", "-k", str(where))
    await_true(cluster, "apiserver", "types not served", CRD_SECONDS, lambda: all(
        has_condition(crd, "Established") for crd in api(cluster, CRDS).get("items", [{}])))


def await_nodes(cluster: Cluster, count: int) -> None:
    """Waits until KWOK has made that many nodes Ready."""
    await_true(cluster, "kwok", "nodes not Ready", NODES_SECONDS, lambda: ready_nodes(cluster) >= count)


def await_true(cluster: Cluster, part: str, otherwise: str, seconds: int,
               is_true: Callable[[], bool]) -> None:
    """Waits until something holds; after so many seconds, `part` has failed."""
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            raise PartFailed(cluster, part, f"{otherwise} after {seconds} s")
        time.sleep(POLL_SECONDS)


def ready_nodes(cluster: Cluster) -> int:
    return sum(1 for node in fake_nodes(cluster) if has_condition(node, "Ready"))


def has_condition(item: dict, wanted: str) -> bool:
    return any(condition["type"] == wanted and condition["status"] == "True"
               for condition in item.get("status", {}).get("conditions") or [])


def check_pod_runs(cluster: Cluster) -> None:
    """Creates a pod, sees it Ready and deletes it. Where it stops tells which part fails:
    the controller manager makes the ServiceAccount, the scheduler binds, KWOK runs."""
    path = "/api/v1/namespaces/default"
    deadline = time.monotonic() + POD_SECONDS
    while not api(cluster, f"{path}/serviceaccounts/default"):
        if time.monotonic() > deadline:
            raise PartFailed(cluster, "kcm", "it made no default ServiceAccount")
        time.sleep(POLL_SECONDS)
    run(cluster, "create", "-f", "-", given={
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": POD, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    })
    pod: dict = {}
    while not has_condition(pod, "Ready"):
        if time.monotonic() > deadline:
            idle = "kwok" if pod.get("spec", {}).get("nodeName") else "scheduler"
            raise PartFailed(cluster, idle, f"a pod is not Ready after {POD_SECONDS} s")
        time.sleep(POLL_SECONDS)
        pod = api(cluster, f"{path}/pods/{POD}")
    run(cluster, "delete", "pod", POD, "--namespace=default", "--now")
