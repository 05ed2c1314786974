"""The operator itself: how it is installed, whom it speaks as, upgraded and rolled back."""

from __future__ import annotations

import json
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import build
import image
from layout import REPO
from objects import claim, expect_full, identity, take
from rollout import untouched
from world import NAMESPACE, SYSTEM, World, Untrue, check, expect, is_ready, note

CHART = REPO / "charts" / "warmpool"
OPERATOR = "app.kubernetes.io/name=warmpool"
ACCOUNT = f"system:serviceaccount:{SYSTEM}:warmpool"
WAIT_SECONDS = 120
CLAIM_EVERY_SECONDS = 1


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


def helm_test_runs_the_image_with_the_operators_rights(world: World) -> None:
    done = subprocess.run(
        [str(build.binary("helm")), "test", "warmpool", f"--kubeconfig={world.node.cluster.kubeconfig}",
         f"--namespace={SYSTEM}", f"--timeout={WAIT_SECONDS}s", "--logs"],
        capture_output=True, text=True)
    check(done.returncode == 0, f"helm test: {done.stderr.strip()}\n{done.stdout}")
    note(done.stdout)


def the_leader_alone_writes_from_its_pod_with_its_own_token(world: World) -> None:
    """The audit log tells who made the sandboxes of the pool that is there by now."""
    addresses = {pod["status"]["podIP"] for pod in operators(world)}
    made = recorded(world, "create")
    makers = {(event["user"]["username"], *event["sourceIPs"]) for event in made}
    check(len(makers) == 1, f"one operator should make all sandboxes, not {makers}")
    check(makers <= {(ACCOUNT, address) for address in addresses}, f"the sandboxes were made by {makers}")
    note(f"{len(made)} sandboxes were made by {makers.pop()}; the operators are at {sorted(addresses)}")


def a_helm_upgrade_under_claims_serves_each_and_harms_no_sandbox(world: World) -> None:
    replace_operators(world, image.NAMES[1], ("upgrade", "warmpool", str(CHART), *values(image.NAMES[1])))


def a_helm_rollback_under_claims_serves_each_and_harms_no_sandbox(world: World) -> None:
    replace_operators(world, image.NAMES[0], ("rollback", "warmpool", "1"))


def a_helm_uninstall_and_install_under_claims_serves_each_and_harms_no_sandbox(world: World) -> None:
    """What arrives while no operator is there is served once one is installed."""
    replace_operators(world, image.NAMES[0], ("uninstall", "warmpool"),
                      ("install", "warmpool", str(CHART), *values(image.NAMES[0])))


def replace_operators(world: World, wanted: str, *commands: tuple[str, ...]) -> None:
    """Runs Helm while a claim is bound and others arrive, until operators of the wanted image
    do the work. The claims stay, so that no sandbox has a reason to go."""
    verb = commands[-1][0]
    held, deleted = world.claimed("run-1"), len(recorded(world, "delete"))
    before = {pod["metadata"]["uid"] for pod in operators(world)}
    over = threading.Event()
    with ThreadPoolExecutor(max_workers=1) as beside:
        claiming = beside.submit(keep_claiming, world, verb, over)
        try:
            for command in commands:
                helm(world, *command)
            after = expect(60, "the old operators should be gone", lambda: (
                found if len(found := operators(world)) == 2
                and before.isdisjoint(pod["metadata"]["uid"] for pod in found) else None))
        finally:
            over.set()
        claims = claiming.result()
    for pod in after:
        runs = pod["spec"]["containers"][0]["image"]
        check(runs == wanted, f"{pod['metadata']['name']} runs {runs}")
    take(world, f"after-{verb}", "work")
    waits = [served(world, name) for name in claims]
    untouched(world, "run-1", held)
    taken = {identity(world.claimed(name)) for name in (*claims, f"after-{verb}")}
    check(len(taken) == len(claims) + 1, f"{len(claims) + 1} claims have {len(taken)} sandboxes")
    expect_full(world, "work")
    gone = [(event["objectRef"]["name"], event["user"]["username"])
            for event in recorded(world, "delete")[deleted:]
            if event["objectRef"]["name"].startswith("work-")]
    check(not gone, f"no claim was released, and sandboxes were deleted: {gone}")
    note(f"{len(claims)} claims arrived during helm {verb}; the longest wait was {max(waits):.2f} s")


def recorded(world: World, verb: str) -> list[dict]:
    """The audit log's events of one verb on the tenants' pods."""
    log = (world.node.cluster.dir / "audit.log").read_text().splitlines()
    return [event for event in map(json.loads, log)
            if event["objectRef"].get("namespace") == NAMESPACE and event["verb"] == verb
            and event["objectRef"]["resource"] == "pods" and not event["objectRef"].get("subresource")]


def keep_claiming(world: World, prefix: str, over: threading.Event) -> list[str]:
    """Creates a claim every second; their names."""
    names: list[str] = []
    while not (names and over.wait(CLAIM_EVERY_SECONDS)):
        names.append(f"{prefix}-{len(names)}")
        world.apply(claim(names[-1], "work"))
    return names


def served(world: World, name: str) -> float:
    """How long a claim waited, in seconds, once it is Ready."""
    expect(30, f"claim {name} should be Ready", lambda: is_ready(world.get("sandboxclaim", name)))
    return world.get("sandboxclaim", name)["status"]["waitSeconds"]


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
