"""New templates, good and bad, beside sandboxes that people use."""

from __future__ import annotations

import time

from images import SANDBOXES
from objects import expect_full, full, identity, pool, take, template
from world import World, check, condition, expect, is_ready, note

ABSENT = "warmpool.local/absent:1"
ROLLOUT_SECONDS = 90


def a_rollout_changes_every_idle_sandbox_and_no_claimed_one(world: World) -> None:
    """Claim run-1 is there from an earlier chapter, and is held through all that follow."""
    held = world.claimed("run-1")
    name = held["metadata"]["name"]
    world.apply(pool("work", 4, template(SANDBOXES[1])))
    least, deadline = 4, time.monotonic() + ROLLOUT_SECONDS
    while not full(world, "work"):
        least = min(least, world.get("pool", "work")["status"]["available"])
        check(time.monotonic() < deadline, f"the rollout should be complete after {ROLLOUT_SECONDS} s")
    for sandbox in world.idle("work"):
        check(world.exec(sandbox["metadata"]["name"], "cat", "/etc/version") == "2",
              "every idle sandbox should run the new image")
    untouched(world, "run-1", held)
    note(f"held: {name}, image {world.exec(name, 'cat', '/etc/version')}; available never below {least} of 4")


def untouched(world: World, claim: str, before: dict) -> None:
    """The claim has the same pod, the same container, not restarted, with its file, Ready."""
    after = world.claimed(claim)
    check(identity(after) == identity(before),
          f"the sandbox of {claim} should be the same: {identity(before)} became {identity(after)}")
    check(world.exec(after["metadata"]["name"], "cat", "/work/file") == "mine",
          "the file that was written in it should be there")
    expect(30, f"claim {claim} should be Ready",
           lambda: is_ready(world.get("sandboxclaim", claim)))


def an_image_that_does_not_exist_costs_no_more_than_the_budget(world: World) -> None:
    world.apply(pool("typo", 4, warmUpDeadlineSeconds=5))
    expect_full(world, "typo")
    world.apply(pool("typo", 4, template(ABSENT), warmUpDeadlineSeconds=5))
    made: set[str] = set()
    least = 4

    def fails_often() -> bool:
        nonlocal least
        made.update(sandbox["metadata"]["uid"] for sandbox in world.idle("typo")
                    if sandbox["spec"]["containers"][0]["image"] == ABSENT)
        least = min(least, world.get("pool", "typo")["status"]["available"])
        return "3 times in a row" in says(world)

    expect(60, "the pool should say how often its sandboxes failed", fails_often)
    check(least >= 3, f"{least} of 4 available; maxUnavailable is 25%")
    check(len(made) <= 4, f"{len(made)} sandboxes were made of an image that does not exist")
    note(says(world))


def why_a_sandbox_does_not_come_up_is_told(world: World) -> None:
    told = world.run_plugin("why", "pool/typo")
    check("ImagePull" in says(world) + told.stdout, f"nothing says ImagePull: {told.stdout}")
    note(told.stdout)


def the_rest_of_the_pool_is_served_meanwhile_and_the_mended_template_rolls_out(world: World) -> None:
    sandbox = take(world, "served", "typo")
    check(world.exec(sandbox["metadata"]["name"], "cat", "/etc/version") == "1",
          "the claim should have a sandbox of the old template, which runs")
    world.apply(pool("typo", 4, template(SANDBOXES[1]), warmUpDeadlineSeconds=5))
    expect_full(world, "typo")
    check(condition(world.get("pool", "typo"), "Progressing")["reason"] == "RolloutComplete",
          "the rollout should be complete")
    world.kubectl("delete", "pool/typo", "sandboxclaim/served")


def says(world: World) -> str:
    return condition(world.get("pool", "typo"), "Progressing").get("message", "")
