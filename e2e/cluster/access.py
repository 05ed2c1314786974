"""Who may talk to a cluster: static tokens, kubeconfigs, and ServiceAccount tokens."""

from __future__ import annotations

import base64
import json
import secrets
import shutil
import subprocess
from pathlib import Path

from layout import Cluster, ClusterError, write_private

# What a real node (e2e/node) is called, here and in its own token.
REAL_NODE = "real-0"

# Kubeconfig file, user and group. `load` and `kwok` may do all that admin may; they have
# names of their own so that the audit log tells load generators and KWOK from people.
USERS = (
    ("kubeconfig", "admin", "system:masters"),
    ("load.kubeconfig", "load", "system:masters"),
    ("kwok.kubeconfig", "kwok", "system:masters"),
    ("kcm.kubeconfig", "system:kube-controller-manager", ""),
    ("scheduler.kubeconfig", "system:kube-scheduler", ""),
    ("kubelet.kubeconfig", f"system:node:{REAL_NODE}", "system:nodes"),
)


def prepare_keys(cluster: Cluster) -> None:
    """Makes the key that signs ServiceAccount tokens, the API server's certificate for
    kubelets and the static tokens, once in a cluster's life: a restarted API server must
    know the tokens it gave out."""
    if not shutil.which("openssl"):
        raise ClusterError("`openssl` is not on PATH; it makes the keys of the API server")
    key = cluster.dir / "sa.key"
    if not key.exists():
        write_private(key, openssl("genrsa", "2048"))
    # Key and certificate in one file. It is its own authority: a kubelet trusts this one
    # certificate and no other.
    client = cluster.kubelet_client
    if not client.exists():
        write_private(client, openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-days", "3650", "-subj", "/O=system:masters/CN=kube-apiserver",
            "-addext", "extendedKeyUsage=clientAuth", "-keyout", "-", "-out", "-"))
    tokens = cluster.dir / "tokens.csv"
    if not tokens.exists():
        write_private(tokens, "".join(
            f'{secrets.token_urlsafe(24)},{user},{user},"{group}"\n'
            for _, user, group in USERS))


def openssl(*arguments: str) -> str:
    """What openssl makes, as text."""
    return subprocess.run(["openssl", *arguments], capture_output=True, text=True,
                          check=True).stdout


def static_token(cluster: Cluster, wanted: str) -> str:
    for line in (cluster.dir / "tokens.csv").read_text().splitlines():
        token, user, _, _ = line.split(",")
        if user == wanted:
            return token
    raise ClusterError(f"tokens.csv has no user {wanted}")


def write_kubeconfigs(cluster: Cluster) -> None:
    """Writes the kubeconfig of every static user; needs the API server's certificate."""
    for name, user, _ in USERS:
        write_kubeconfig(cluster, cluster.dir / name, user, static_token(cluster, user))


def write_kubeconfig(cluster: Cluster, path: Path, user: str, token: str,
                     namespace: str = "default") -> None:
    """Writes one kubeconfig that needs no other file. JSON is YAML too.

    The API server makes its certificate and an authority for it when it first starts,
    and keeps both in one file, so clients can verify the server.
    """
    authority = base64.b64encode(cluster.certificate.read_bytes()).decode()
    name = f"warmpool-{cluster.dir.name}"
    write_private(path, json.dumps({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {
            "server": cluster.server(), "certificate-authority-data": authority}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {
            "cluster": name, "user": user, "namespace": namespace}}],
        "current-context": name,
    }, indent=1) + "\n")


def write_account_kubeconfig(cluster: Cluster, kubectl: list[str], namespace: str,
                             account: str, path: Path) -> None:
    """Asks for a token of a ServiceAccount and writes a kubeconfig with it, so that a
    program runs here with exactly the rights it has inside a cluster."""
    asked = subprocess.run(
        [*kubectl, "create", "token", account, "--namespace", namespace, "--duration=24h"],
        capture_output=True, text=True)
    if asked.returncode != 0:
        raise ClusterError(f"no token for {namespace}/{account}: {asked.stderr.strip()}")
    write_kubeconfig(cluster, path, f"system:serviceaccount:{namespace}:{account}",
                     asked.stdout.strip(), namespace)
