"""The five parts of a cluster: how each is started, and how it says that it is ready."""

from __future__ import annotations

import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Protocol

import build
import processes
import versions
from access import static_token, write_kubeconfigs
from layout import HERE, LOOPBACK, Cluster, ClusterError, is_free

READY_SECONDS = 60
TERM_SECONDS = 5
LOG_LINES = 20
POLL_SECONDS = 0.1


class HasLogs(Protocol):
    """A cluster, or the real node of one (e2e/node)."""

    def log(self, part: str) -> Path: ...


class PartFailed(ClusterError):
    """A part that does not do its work; shows the end of its log."""

    def __init__(self, whose: HasLogs, part: str, why: str) -> None:
        log = whose.log(part)
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        shown = "\n".join(f"  {line}" for line in lines[-LOG_LINES:]) or "  (nothing)"
        super().__init__(f"{part} failed: {why}\nlast lines of {log}:\n{shown}")


@dataclass(frozen=True)
class Part:
    """One program of the control plane."""

    tool: str
    ports: tuple[str, ...]
    flags: Callable[[Cluster], list[str]]
    health: str


def etcd_flags(cluster: Cluster) -> list[str]:
    ports = cluster.ports()
    client = f"http://{LOOPBACK}:{ports['etcd']}"
    peer = f"http://{LOOPBACK}:{ports['etcd-peer']}"
    return [
        f"--data-dir={cluster.dir / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--quota-backend-bytes=8589934592",
        "--log-level=warn",
    ]


def apiserver_flags(cluster: Cluster) -> list[str]:
    """Each audit event is written before its request is answered (mode blocking) and the
    log is never rotated, so that a test which counts writes has all of them."""
    ports = cluster.ports()
    key = cluster.dir / "sa.key"
    return [
        f"--etcd-servers=http://{LOOPBACK}:{ports['etcd']}",
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        f"--secure-port={ports['apiserver']}",
        f"--cert-dir={cluster.dir / 'cert'}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        f"--token-auth-file={cluster.dir / 'tokens.csv'}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        # For logs and exec on a real node; those that KWOK plays have neither.
        f"--kubelet-client-certificate={cluster.kubelet_client}",
        f"--kubelet-client-key={cluster.kubelet_client}",
        "--kubelet-preferred-address-types=InternalIP",
        "--endpoint-reconciler-type=none",
        f"--audit-policy-file={HERE / 'audit-policy.yaml'}",
        f"--audit-log-path={cluster.dir / 'audit.log'}",
        "--audit-log-mode=blocking",
        "--audit-log-maxsize=0",
        *alpha_flags(),
        *cluster.more_apiserver_flags(),
    ]


def alpha_flags() -> list[str]:
    """Has the API server serve what the operator reads only where it is served: EvictionRequests."""
    major, minor, _ = (int(part) for part in versions.version().split("."))
    if (major, minor) < (1, 37):
        return []
    return ["--feature-gates=EvictionRequestAPI=true", "--runtime-config=lifecycle.k8s.io/v1alpha1=true"]


def client_flags(cluster: Cluster, name: str) -> list[str]:
    """What controller manager and scheduler have in common."""
    kubeconfig = cluster.dir / f"{name}.kubeconfig"
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={cluster.ports()[name]}",
        "--leader-elect=false",
        # The server has no authority for client certificates that could be looked up.
        "--authentication-skip-lookup=true",
    ]


def kcm_flags(cluster: Cluster) -> list[str]:
    """The request limits are raised: with the defaults, under load, the control plane
    would be what a test measures."""
    return [
        *client_flags(cluster, "kcm"),
        f"--service-account-private-key-file={cluster.dir / 'sa.key'}",
        f"--root-ca-file={cluster.certificate}",
        "--use-service-account-credentials=true",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        "--concurrent-gc-syncs=20",
        "--concurrent-namespace-syncs=10",
        *node_grace(cluster),
    ]


def node_grace(cluster: Cluster) -> list[str]:
    """Keeps simulated nodes Ready while API servers crash and no heartbeat arrives. The
    controller manager takes the readiness from the pods of a node that it gives up. A
    kubelet restores it, and KWOK never does. Without simulated nodes the default of
    Kubernetes holds, so that a test with a real node sees what users see."""
    return ["--node-monitor-grace-period=1h"] if fake_nodes(cluster) else []


def scheduler_flags(cluster: Cluster) -> list[str]:
    """The default of 50 requests a second caps pods at about 70 a second."""
    return [*client_flags(cluster, "scheduler"),
            "--kube-api-qps=1000", "--kube-api-burst=2000"]


def kwok_flags(cluster: Cluster) -> list[str]:
    return [
        f"--kubeconfig={cluster.dir / 'kwok.kubeconfig'}",
        f"--config={HERE / 'kwok.yaml'}",
        f"--server-address={LOOPBACK}:{cluster.ports()['kwok']}",
    ]


# In the order in which they need each other.
PARTS = {
    "etcd": Part("etcd", ("etcd", "etcd-peer"), etcd_flags, "http /health"),
    "apiserver": Part("kube-apiserver", ("apiserver",), apiserver_flags, "https /readyz"),
    "kcm": Part("kube-controller-manager", ("kcm",), kcm_flags, "https /healthz"),
    "scheduler": Part("kube-scheduler", ("scheduler",), scheduler_flags, "https /healthz"),
    "kwok": Part("kwok", ("kwok",), kwok_flags, "http /readyz"),
}


def connect(cluster: Cluster, port: str, scheme: str, path: str, method: str = "GET",
            given: object = None, seconds: float = 5) -> http.client.HTTPResponse:
    """One request as admin. Only the API server's certificate can be verified: the other
    parts make theirs in memory, and only loopback hears us."""
    context = ssl.create_default_context()
    headers = {}
    if port == "apiserver":
        context.load_verify_locations(cafile=str(cluster.certificate))
        headers = {"Authorization": f"Bearer {static_token(cluster, 'admin')}",
                   "Content-Type": "application/json"}
    else:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    url = f"{scheme}://{LOOPBACK}:{cluster.ports()[port]}{path}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}),
                                         urllib.request.HTTPSHandler(context=context))
    body = json.dumps(given).encode() if given is not None else None
    request = urllib.request.Request(url, headers=headers, method=method, data=body)
    return opener.open(request, timeout=seconds)


def ask(cluster: Cluster, port: str, scheme: str, path: str, method: str = "GET") -> str | None:
    """What a part answers; None when the request does not succeed."""
    try:
        with connect(cluster, port, scheme, path, method) as answer:
            return answer.read().decode()
    except (urllib.error.URLError, http.client.HTTPException, OSError):
        return None


def is_ready(cluster: Cluster, name: str) -> bool:
    scheme, path = PARTS[name].health.split()
    return ask(cluster, name, scheme, path) is not None


def api(cluster: Cluster, path: str, method: str = "GET") -> dict:
    """What the API server answers; empty when it does not, or refuses."""
    return json.loads(ask(cluster, "apiserver", "https", path, method) or "{}")


def fake_nodes(cluster: Cluster) -> list[dict]:
    """The nodes that KWOK plays."""
    return api(cluster, "/api/v1/nodes?labelSelector=type%3Dkwok").get("items", [])


def release_nodes(cluster: Cluster) -> None:
    """Takes KWOK's nodes from the KWOK that ran before. Each KWOK has an identity of its
    own, and leaves a node alone until the lease of another one ends, which takes 40 s."""
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    for node in fake_nodes(cluster):
        api(cluster, f"{leases}/{node['metadata']['name']}", "DELETE")


def launch(cluster: Cluster, name: str) -> None:
    """Starts a part without waiting for it."""
    part = PARTS[name]
    ports = cluster.ports()
    for port in part.ports:
        if not is_free(ports[port]):
            raise PartFailed(cluster, name, f"port {ports[port]} on {LOOPBACK} is taken")
    if name == "kwok":
        release_nodes(cluster)
    processes.spawn([str(build.binary(part.tool)), *part.flags(cluster)],
                    cluster.dir, cluster.log(name), cluster.record(name))


def await_ready(cluster: Cluster, name: str) -> None:
    """Waits until a part says it is ready; fails as soon as its process is gone."""
    deadline = time.monotonic() + READY_SECONDS
    while not is_ready(cluster, name):
        if not processes.running(cluster.record(name)):
            raise PartFailed(cluster, name, "its process ended")
        if time.monotonic() > deadline:
            raise PartFailed(cluster, name, f"not ready after {READY_SECONDS} s")
        time.sleep(POLL_SECONDS)


def launch_store(cluster: Cluster, started: list[str]) -> None:
    """Starts etcd and the API server if they do not run; see `launch_missing`."""
    launch_missing(cluster, ["etcd"], started)
    if launch_missing(cluster, ["apiserver"], started):
        write_kubeconfigs(cluster)


def launch_clients(cluster: Cluster, started: list[str]) -> None:
    """Starts the parts that need the API server but not each other; see `launch_missing`.
    The nodes exist by then: the controller manager is started for their kind."""
    launch_missing(cluster, ["kcm", "scheduler", "kwok"], started)


def launch_missing(cluster: Cluster, names: list[str], started: list[str]) -> list[str]:
    """Starts those of the parts that do not run, waits for them, and returns them; tells
    the caller which in `started`, also when it fails half-way."""
    missing = [name for name in names if not processes.running(cluster.record(name))]
    for name in missing:
        started.append(name)
        launch(cluster, name)
    for name in missing:
        await_ready(cluster, name)
    return missing


def end_parts(cluster: Cluster, names: list[str]) -> None:
    """Ends parts, the clients before what they talk to."""
    for batch in (["kwok", "scheduler", "kcm"], ["apiserver"], ["etcd"]):
        processes.end([cluster.record(name) for name in batch if name in names], TERM_SECONDS)


def states(cluster: Cluster) -> dict[str, str]:
    """One word for each part: ready, unready, died (nobody stopped it) or stopped."""
    found = {}
    for name in PARTS:
        process = processes.load(cluster.record(name))
        if process is None:
            found[name] = "stopped"
        elif not process.alive():
            found[name] = "died"
        else:
            found[name] = "ready" if is_ready(cluster, name) else "unready"
    return found
