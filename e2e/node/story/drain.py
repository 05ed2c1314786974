"""The node is drained, as before it is upgraded. A node that KWOK plays takes what it can."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor

import workload
from objects import expect_full, identity, pool, take, template
from world import World, check, condition, expect, is_ready, note

POOL = "drained"
IDLE = 2
# A tenant that stays has the drain end at this time.
DRAIN_SECONDS = 25


def a_drain_replaces_the_idle_sandboxes_first_and_waits_for_the_tenant(world: World) -> None:
    """Only sandboxes of one pool are evicted: the operators and the other pools have no other node."""
    tolerant = template()
    tolerant["spec"]["tolerations"] = [{"key": POOL, "operator": "Exists"}]
    world.apply(pool(POOL, IDLE, tolerant, updateStrategy={"maxUnavailable": 0}))
    held = take(world, "tenant", POOL)
    name, node = held["metadata"]["name"], held["spec"]["nodeName"]
    expect_full(world, POOL)
    simulated = workload.node(0)
    simulated["spec"] = {"taints": [{"key": POOL, "effect": "NoSchedule"}]}
    world.apply(simulated)
    spare = simulated["metadata"]["name"]
    expect(30, f"node {spare} should be Ready", lambda: is_ready(world.get("node", spare)))
    try:
        drained, least = drain(world, node)
        check(drained.returncode != 0 and name in drained.stderr,
              f"the drain should name the sandbox that it waits for: {drained.stderr}")
        check(least >= IDLE, f"{least} of {IDLE} were available during the drain")
        on = {sandbox["spec"]["nodeName"] for sandbox in world.idle(POOL)}
        check(on == {spare}, f"the idle sandboxes should be on {spare}, and are on {on}")
        check(identity(world.claimed("tenant")) == identity(held), "the tenant's container should be the same")
        pending = condition(world.get("sandboxclaim", "tenant"), "DisruptionPending")
        check(pending.get("reason") == "NodeCordoned", f"the claim should say why its node has to go: {pending}")
        note(f"available never below {least} of {IDLE}; {pending['message']}")
        world.kubectl("delete", "sandboxclaim/tenant")
        drained, _ = drain(world, node)
        check(drained.returncode == 0, f"without the tenant the drain should end: {drained.stderr}")
        note(drained.stdout)
    finally:
        world.kubectl("uncordon", node, namespace="")
    world.kubectl("delete", f"pool/{POOL}")
    expect(60, f"node {spare} should be empty", lambda: not world.every("pods", f"warmpool.dev/pool={POOL}"))
    world.kubectl("delete", f"node/{spare}", namespace="")
    expect_full(world, "work")


def drain(world: World, node: str) -> tuple[subprocess.CompletedProcess[str], int]:
    """What `kubectl drain` said, and the fewest sandboxes that were available meanwhile."""
    least = IDLE
    with ThreadPoolExecutor(max_workers=1) as beside:
        draining = beside.submit(
            world.try_kubectl, "drain", node, f"--pod-selector=warmpool.dev/pool={POOL}",
            f"--timeout={DRAIN_SECONDS}s", namespace="")
        while not draining.done():
            least = min(least, world.get("pool", POOL)["status"]["available"])
    return draining.result(), least
