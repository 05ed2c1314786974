"""The operator itself: how it is installed, whom it speaks as, and an upgrade under way."""

from __future__ import annotations

import json
import subprocess

import build
import image
from layout import REPO
from objects import expect_full, identity, take
from rollout import untouched
from world import NAMESPACE, SYSTEM, World, Untrue, check, expect, note

CHART = REPO / "charts" / "warmpool"
OPERATOR = "app.kubernetes.io/name=warmpool"
ACCOUNT = f"system:serviceaccount:{SYSTEM}:warmpool"
WAIT_SECONDS = 120


def the_chart_installs_two_operators_under_the_restricted_standard(world: World) -> None:
    world.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": SYSTEM, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    note(helm(world, "install", "warmpool", str(CHART), *values(image.NAMES[0])))
    found = operators(world)
    check(len(found) == 2, f"{len(found)} operators run, not 2")
    expect(10, "the tenants' namespace should have a ServiceAccount",
           lambda: world.get("serviceaccount", "default"))


def the_leader_alone_writes_from_its_pod_with_its_own_token(world: World) -> None:
    """The audit log tells who made the sandboxes of the pool that is there by now."""
    addresses = {pod["status"]["podIP"] for pod in operators(world)}
    log = (world.node.cluster.dir / "audit.log").read_text().splitlines()
    made = [event for event in map(json.loads, log)
            if event["objectRef"].get("namespace") == NAMESPACE and event["verb"] == "create"
            and event["objectRef"]["resource"] == "pods" and not event["objectRef"].get("subresource")]
    makers = {(event["user"]["username"], *event["sourceIPs"]) for event in made}
    check(len(makers) == 1, f"one operator should make all sandboxes, not {makers}")
    check(makers <= {(ACCOUNT, address) for address in addresses}, f"the sandboxes were made by {makers}")
    note(f"{len(made)} sandboxes were made by {makers.pop()}; the operators are at {sorted(addresses)}")


def a_helm_upgrade_touches_nothing_of_the_tenants_and_its_successor_goes_on(world: World) -> None:
    held = world.claimed("run-1")
    idle = {identity(sandbox) for sandbox in world.idle("work")}
    before = {pod["metadata"]["uid"] for pod in operators(world)}
    helm(world, "upgrade", "warmpool", str(CHART), *values(image.NAMES[1]))
    after = expect(60, "the old operators should be gone", lambda: (
        found if len(found := operators(world)) == 2
        and before.isdisjoint(pod["metadata"]["uid"] for pod in found) else None))
    for pod in after:
        runs = pod["spec"]["containers"][0]["image"]
        check(runs == image.NAMES[1], f"{pod['metadata']['name']} runs {runs}")
    untouched(world, "run-1", held)
    check({identity(sandbox) for sandbox in world.idle("work")} == idle,
          "the idle sandboxes should be the same")
    take(world, "after-upgrade", "work")
    expect_full(world, "work")
    note(world.kubectl("get", "sandboxclaims,pods"))


def values(image: str) -> list[str]:
    repository, _, tag = image.rpartition(":")
    return [f"--set-string=image.repository={repository}", f"--set-string=image.tag={tag}"]


def helm(world: World, *arguments: str) -> str:
    done = subprocess.run(
        [str(build.binary("helm")), *arguments, f"--kubeconfig={world.node.cluster.kubeconfig}",
         f"--namespace={SYSTEM}", "--wait", f"--timeout={WAIT_SECONDS}s"],
        capture_output=True, text=True)
    if done.returncode != 0:
        raise Untrue(f"helm {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def operators(world: World) -> list[dict]:
    return json.loads(world.kubectl("get", "pods", f"--selector={OPERATOR}", "--output=json",
                                    namespace=SYSTEM))["items"]
