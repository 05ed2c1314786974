"""What every chapter of the story needs: the cluster, questions to it, and plain words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, TypeVar

sys.path.append(str(Path(__file__).resolve().parents[1]))

from place import Node  # noqa: E402
import build  # noqa: E402
import workload  # noqa: E402

NAMESPACE = "tenants"
SYSTEM = "warmpool-system"
POLL_SECONDS = 0.2
Answer = TypeVar("Answer")


class Untrue(Exception):
    """A statement of the story that does not hold."""


@dataclass(frozen=True)
class World:
    """A cluster with a real node, seen from the tenants' namespace."""

    node: Node
    plugin: Path

    def kubectl(self, *arguments: str, given: object = None, namespace: str = NAMESPACE) -> str:
        """Runs kubectl, for the tenants unless told otherwise; what it prints."""
        done = self.try_kubectl(*arguments, given=given, namespace=namespace)
        if done.returncode != 0:
            raise Untrue(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def try_kubectl(self, *arguments: str, given: object = None,
                    namespace: str = NAMESPACE) -> subprocess.CompletedProcess[str]:
        where = [f"--namespace={namespace}"] if namespace else []
        return subprocess.run(
            [*workload.kubectl(self.node.cluster), *arguments[:1], *where, *arguments[1:]],
            capture_output=True, text=True, input="" if given is None else json.dumps(given))

    def apply(self, *objects: dict) -> None:
        for each in objects:
            self.kubectl("apply", "--filename=-", given=each)

    def get(self, kind: str, name: str) -> dict:
        return json.loads(self.kubectl("get", kind, name, "--output=json"))

    def every(self, kind: str, labels: str = "") -> list[dict]:
        return json.loads(self.kubectl("get", kind, f"--selector={labels}",
                                       "--output=json"))["items"]

    def exec(self, pod: str, *argv: str) -> str:
        """What a command prints in the first container of a pod."""
        return self.kubectl("exec", pod, "--", *argv).strip()

    def idle(self, pool: str) -> list[dict]:
        """The unclaimed sandboxes of a pool that nobody deletes."""
        pods = self.every("pods", f"warmpool.dev/pool={pool},warmpool.dev/state=warm")
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def claimed(self, claim: str) -> dict:
        """The sandbox that a bound claim names."""
        return self.get("pod", self.get("sandboxclaim", claim)["status"]["sandboxes"][0]["name"])

    def run_plugin(self, verb: str, *rest: str) -> subprocess.CompletedProcess[str]:
        """`kubectl warmpool VERB ...`; kubectl finds the plugin in the PATH, and it kubectl."""
        path = f"{self.plugin.parent}:{build.bin_dir()}:{os.environ['PATH']}"
        return subprocess.run(
            [str(build.binary("kubectl")), "warmpool", verb, "--namespace", NAMESPACE, *rest],
            capture_output=True, text=True, stdin=subprocess.DEVNULL,
            env=os.environ | {"PATH": path, "KUBECONFIG": str(self.node.cluster.kubeconfig)})


def expect(seconds: float, sentence: str, question: Callable[[], Answer | None]) -> Answer:
    """Asks until the answer is a true one, and returns it; the sentence is what is untrue
    when the time is over. A question may fail while what it asks about is not there yet."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            answer, complaint = question(), ""
        except (Untrue, KeyError, IndexError) as error:
            answer, complaint = None, f" ({error})"
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise Untrue(f"{sentence}; not so after {seconds:.0f} s{complaint}")
        time.sleep(POLL_SECONDS)


def check(holds: bool, sentence: str) -> None:
    """Ends the story with the sentence unless it holds."""
    if not holds:
        raise Untrue(sentence)


def note(text: str) -> None:
    """Shows what happened, below the statement that it belongs to."""
    for line in text.rstrip().splitlines():
        print(f"       {line}", flush=True)


def condition(item: dict, wanted: str) -> dict:
    """A condition of an object; empty when it has none of the type."""
    return next((found for found in item.get("status", {}).get("conditions", [])
                 if found["type"] == wanted), {})


def is_ready(item: dict) -> bool:
    return condition(item, "Ready").get("status") == "True"
