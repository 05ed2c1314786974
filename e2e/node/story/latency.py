"""The number a user buys this for: a claim beside a plain pod of the same template."""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass
from typing import Iterator

from objects import claim, expect_full, pool, template
from parts import connect
from world import NAMESPACE, World, check, is_ready, note

ROUNDS = 20
SECONDS = 60
CLAIMS = f"/apis/warmpool.dev/v1alpha1/namespaces/{NAMESPACE}/sandboxclaims"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


@dataclass
class Times:
    """Seconds from just before a POST: to Ready as a watch shows it, and to the end of the
    first `kubectl exec` that succeeds, begun when it is Ready."""

    ready: list[float]
    used: list[float]

    def row(self, name: str) -> str:
        cells = (f"{statistics.median(times) * 1000:6.0f} / {max(times) * 1000:5.0f} ms"
                 for times in (self.ready, self.used))
        return f"{name:<32}" + "   ".join(cells)


def a_claim_is_usable_sooner_than_a_cold_start(world: World) -> None:
    world.apply(pool("fast", 3))
    warm, cold = Times([], []), Times([], [])
    for number in range(ROUNDS):
        expect_full(world, "fast")
        measure(world, warm, CLAIMS, claim(f"fast-{number}", "fast"))
        # The refill is over: it would slow the other one down.
        expect_full(world, "fast")
        name = f"cold-{number}"
        measure(world, cold, PODS, {"apiVersion": "v1", "kind": "Pod",
                                    "metadata": {"name": name}} | template())
        world.kubectl("delete", f"sandboxclaim/fast-{number}", f"pod/{name}")
    world.kubectl("delete", "pool/fast")
    note(f"median / longest of {ROUNDS}               POST to Ready        POST to first exec")
    note(warm.row("claim on a warm pool"))
    note(cold.row("plain pod, image already there"))
    check(statistics.median(warm.used) < statistics.median(cold.used),
          "a claim should be usable sooner than a pod that starts cold")


def measure(world: World, times: Times, collection: str, item: dict) -> None:
    """Creates one object, waits for it on a watch, and runs a command in its pod."""
    name = item["metadata"]["name"]
    version = request(world, collection)["metadata"]["resourceVersion"]
    events = watch(world, f"{collection}?watch=1&resourceVersion={version}"
                          f"&fieldSelector=metadata.name%3D{name}")
    began = time.monotonic()
    request(world, collection, "POST", item)
    seen = next(found for found in events if is_ready(found))
    times.ready.append(time.monotonic() - began)
    sandboxes = seen["status"].get("sandboxes")
    sandbox = sandboxes[0]["name"] if sandboxes else name
    while world.try_kubectl("exec", sandbox, "--", "true").returncode != 0:
        check(time.monotonic() - began < SECONDS, f"no command runs in {sandbox}")
    times.used.append(time.monotonic() - began)


def request(world: World, path: str, method: str = "GET", given: object = None) -> dict:
    with connect(world.node.cluster, "apiserver", "https", path, method, given) as answer:
        return json.loads(answer.read())


def watch(world: World, path: str) -> Iterator[dict]:
    """The objects of a watch; the connection is there when this returns."""
    answer = connect(world.node.cluster, "apiserver", "https", path, seconds=SECONDS)

    def objects() -> Iterator[dict]:
        with answer:
            for line in answer:
                yield json.loads(line)["object"]

    return objects()
