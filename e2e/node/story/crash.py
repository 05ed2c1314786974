"""Containers that end, and a kubelet that does."""

from __future__ import annotations

import kubelet
from objects import ENDING, container, expect_full, identity, pool, take, template
from rollout import untouched
from world import World, check, expect, is_ready, note

# A node that has not been heard of for so long is not Ready (the controller manager's default).
GRACE_SECONDS = 50


def a_crashed_container_of_an_idle_sandbox_is_not_handed_out(world: World) -> None:
    """The kubelet starts it again at once the first time and after 10 s the second time."""
    world.apply(pool("crashing", 1, template(command=ENDING)))
    expect_full(world, "crashing")
    name = world.idle("crashing")[0]["metadata"]["name"]
    crash(world, name)
    crash(world, name)
    expect(15, "the pool should have nothing available while the container is down",
           lambda: world.get("pool", "crashing")["status"]["available"] == 0)
    check(running(world, name) is None, "the container should be down for some seconds")
    sandbox = take(world, "crashed", "crashing", onEmpty="Wait")
    check(sandbox["metadata"]["name"] == name and running(world, name) is not None,
          "the claim should have waited until the very container runs again")


def a_crashed_container_of_a_claim_is_told_and_comes_back(world: World) -> None:
    sandbox = world.claimed("crashed")
    name = sandbox["metadata"]["name"]
    crash(world, name)
    expect(20, "the claim should say that its sandbox is not Ready",
           lambda: not is_ready(world.get("sandboxclaim", "crashed")))
    expect(90, "and Ready again when the container runs again",
           lambda: is_ready(world.get("sandboxclaim", "crashed")))
    after = world.claimed("crashed")
    check(after["metadata"]["uid"] == sandbox["metadata"]["uid"], "the claim should keep its sandbox")
    note(f"{name}: {container(after)['restartCount']} restarts, exit code "
         f"{container(after)['lastState']['terminated']['exitCode']}")
    world.kubectl("delete", "pool/crashing", "sandboxclaim/crashed")


def crash(world: World, name: str) -> None:
    """Ends a container, and waits until that has been seen."""
    restarts = expect(30, f"the container of {name} should run", lambda: running(world, name))
    world.exec(name, "touch", "/work/end")
    expect(20, f"the container of {name} should have ended",
           lambda: running(world, name) != restarts)


def running(world: World, name: str) -> tuple[str, int] | None:
    """Which run of a container it is, while it runs."""
    found = container(world.get("pod", name))
    return (found["containerID"], found["restartCount"]) if "running" in found["state"] else None


def claimed_sandboxes_survive_a_stopped_kubelet_and_the_numbers_follow(world: World) -> None:
    held = world.claimed("run-1")
    before = {identity(sandbox) for sandbox in world.idle("work")}
    kubelet.end(world.node)
    expect(GRACE_SECONDS + 40, "with its node gone, nothing of the pool should count as available",
           lambda: world.get("pool", "work")["status"]["available"] == 0)
    expect(10, "the claim should say so too",
           lambda: not is_ready(world.get("sandboxclaim", "run-1")))
    note(world.kubectl("get", "nodes,pools,sandboxclaims"))
    kubelet.start(world.node)
    expect_full(world, "work")
    untouched(world, "run-1", held)
    check({identity(sandbox) for sandbox in world.idle("work")} == before,
          "the idle sandboxes should be the same, and their containers not restarted")
    note(world.kubectl("get", "nodes,pools,sandboxclaims"))
