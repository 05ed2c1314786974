"""The pools, claims and templates of the story, and which container of a pod is which."""

from __future__ import annotations

from images import SANDBOXES
from world import World, expect, is_ready

# A sandbox that waits for work, one that ends when it finds a file, and one that is ready
# only while there is a file.
WAITING = ["sleep", "infinity"]
ENDING = ["sh", "-c", "until [ -e /work/end ]; do sleep 0.1; done; exit 3"]
PROBE = {"exec": {"command": ["test", "-e", "/work/ready"]}, "periodSeconds": 1}


def template(image: str = SANDBOXES[0], command: list[str] | None = None, **container: object) -> dict:
    """The pod of a sandbox."""
    return {"spec": {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "containers": [{
            "name": "sandbox", "image": image, "command": command or WAITING,
            "resources": {"requests": {"cpu": "10m", "memory": "8Mi"}, "limits": {"memory": "64Mi"}},
            **container,
        }],
    }}


def pool(name: str, replicas: int, pod: dict | None = None, **spec: object) -> dict:
    return {"apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool", "metadata": {"name": name},
            "spec": {"replicas": replicas, "template": pod or template(), **spec}}


def claim(name: str, of: str, **spec: object) -> dict:
    return {"apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaim", "metadata": {"name": name},
            "spec": {"poolRef": {"name": of}, **spec}}


def container(pod: dict) -> dict:
    """The status of a pod's only container."""
    return pod["status"]["containerStatuses"][0]


def identity(pod: dict) -> tuple[str, str, int]:
    """What stays the same as long as nobody touches a sandbox."""
    return pod["metadata"]["uid"], container(pod)["containerID"], container(pod)["restartCount"]


def full(world: World, name: str) -> dict | None:
    """The pool, once it holds exactly what it shall."""
    found = world.get("pool", name)
    status, wanted = found.get("status", {}), found["spec"]["replicas"]
    return found if status.get("observedGeneration") == found["metadata"]["generation"] and (
        status.get("replicas"), status.get("available"), status.get("updated")) == (
        wanted, wanted, wanted) else None


def expect_full(world: World, name: str, seconds: float = 60) -> dict:
    return expect(seconds, f"pool {name} should hold the available sandboxes that it asks for",
                  lambda: full(world, name))


def take(world: World, name: str, of: str, **spec: object) -> dict:
    """Makes a claim and waits until it is Ready; its sandbox."""
    world.apply(claim(name, of, **spec))
    expect(30, f"claim {name} should be Ready", lambda: is_ready(world.get("sandboxclaim", name)))
    return world.claimed(name)
