#!/usr/bin/env python3
"""Takes sandboxes from a warmpool pool, uses them and gives them back: one sandbox, one that does not come in time, and a
batch.

    pip install -r requirements.txt
    ./claim.py --pool python -- hostname
"""

from __future__ import annotations

import argparse
import sys
import time
import uuid
from contextlib import contextmanager
from typing import Iterator

from kubernetes import client, config, watch
from kubernetes.stream import stream

# Another operator may serve a resource of the same name, so the group is always part of it.
GROUP, VERSION, PLURAL = "warmpool.dev", "v1alpha1", "sandboxclaims"
# The end of a claim whose program died: without it the sandbox would stay.
LIFETIME_SECONDS = 600


class NotBound(Exception):
    """The claim did not get its sandboxes."""


@contextmanager
def claimed(namespace: str, seconds: float, **spec: object) -> Iterator[dict]:
    """A claim whose sandboxes are Ready, until the block ends. The claim is deleted in every case, ^C included, and
    Kubernetes deletes its sandboxes."""
    api = client.CustomObjectsApi()
    # With a name of its own the claim can be deleted even when the creation was interrupted before the answer came.
    name, uid = f"example-{uuid.uuid4().hex}", None
    try:
        claim = api.create_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, {
            "apiVersion": f"{GROUP}/{VERSION}", "kind": "SandboxClaim",
            "metadata": {"name": name},
            "spec": {"lifetimeSeconds": LIFETIME_SECONDS, **spec}})
        uid = claim["metadata"]["uid"]
        yield ready(api, claim, seconds)
    finally:
        release(api, namespace, name, uid)


def release(api: client.CustomObjectsApi, namespace: str, name: str, uid: str | None) -> None:
    """Deletes the claim. The UID, where it is known, makes sure that no later claim of the same name is deleted."""
    exactly = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid=uid))
    try:
        api.delete_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, name, body=exactly)
    except client.ApiException as error:
        if error.status != 404:  # Not Found: the creation failed, or somebody else has deleted the claim.
            raise


def ready(api: client.CustomObjectsApi, claim: dict, seconds: float) -> dict:
    """The claim once its sandboxes are Ready. The watch begins at the version that was created, so that nothing is missed."""
    name, uid, version = (claim["metadata"][key] for key in ("name", "uid", "resourceVersion"))
    deadline, reason = time.monotonic() + seconds, "no status yet"
    while (left := deadline - time.monotonic()) > 0:
        # The server ends the watch after whole seconds; the socket's timeout is for a server that hangs.
        events = watch.Watch().stream(
            api.list_namespaced_custom_object, GROUP, VERSION, claim["metadata"]["namespace"], PLURAL,
            field_selector=f"metadata.name={name}", resource_version=version,
            timeout_seconds=max(1, int(left)), _request_timeout=(5, left + 30))
        try:
            for event in events:
                seen = event["object"]
                if seen["metadata"]["uid"] != uid:
                    continue
                if event["type"] == "DELETED":
                    raise NotBound(f"claim {name} was deleted")
                version = seen["metadata"]["resourceVersion"]
                phase = seen.get("status", {}).get("phase", "Pending")
                bound = condition(seen, "Bound")
                reason = bound.get("reason", reason)
                if phase in ("Failed", "Expired"):
                    raise NotBound(f"claim {name} is {phase}: {reason}: {bound.get('message')}")
                if phase == "Bound" and condition(seen, "Ready").get("status") == "True":
                    return seen
        except client.ApiException as error:
            if error.status != 410:  # Gone: the version is too old to watch from, so begin anew.
                raise
            version = None
    raise NotBound(f"claim {name} is not Ready after {seconds:g} s ({reason})")


def condition(claim: dict, kind: str) -> dict:
    """The condition of a type; empty when the status does not have it."""
    conditions = claim.get("status", {}).get("conditions", [])
    return next((found for found in conditions if found["type"] == kind), {})


def execute(namespace: str, sandbox: dict, command: list[str]) -> str:
    """Runs a command in the first container of a sandbox; what it prints."""
    return stream(client.CoreV1Api().connect_get_namespaced_pod_exec, sandbox["name"], namespace,
                  command=command, stdout=True, stderr=True, stdin=False, tty=False)


def one_sandbox(args: argparse.Namespace) -> None:
    with claimed(args.namespace, args.timeout, poolRef={"name": args.pool}) as claim:
        status = claim["status"]
        sandbox = status["sandboxes"][0]
        print(f"one: {claim['metadata']['name']} has {sandbox['name']} at {sandbox['ip']} "
              f"after {status['waitSeconds']:.3f} s")
        if args.command:
            said = execute(args.namespace, sandbox, args.command)
            print(f"one: {' '.join(args.command)} printed {said.strip()}")


def a_timeout(args: argparse.Namespace) -> None:
    """Waits a second for a pool that does not exist; the claim is deleted after it."""
    try:
        with claimed(args.namespace, 1, poolRef={"name": f"{args.pool}-missing"}):
            sys.exit("a claim on a pool that does not exist was bound")
    except NotBound as error:
        print(f"timeout: {error}")


def a_batch(args: argparse.Namespace) -> None:
    """Several sandboxes, which are bound all together or not at all."""
    with claimed(args.namespace, args.timeout, poolRef={"name": args.pool}, replicas=args.batch) as claim:
        for sandbox in claim["status"]["sandboxes"]:
            print(f"batch: {claim['metadata']['name']} has {sandbox['name']} at {sandbox['ip']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--namespace", default="default", help="namespace of the pool")
    parser.add_argument("--pool", default="python", help="pool to claim from")
    parser.add_argument("--timeout", type=float, default=60, help="how many seconds to wait for a claim")
    parser.add_argument("--batch", type=int, default=3, help="sandboxes in the batch")
    parser.add_argument("command", nargs="*", help="what to run in the sandbox")
    args = parser.parse_args()
    config.load_config()  # the kubeconfig, or the ServiceAccount in a pod
    for example in (one_sandbox, a_timeout, a_batch):
        example(args)


if __name__ == "__main__":
    main()
