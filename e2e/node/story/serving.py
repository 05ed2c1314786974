"""A pool of real containers, and a claim on it."""

from __future__ import annotations

import os
import subprocess

from layout import REPO, STATE
from objects import PROBE, claim, container, expect_full, pool, take, template
from world import NAMESPACE, World, check, expect, is_ready, note

REPLICAS = 4
# Kubernetes' garbage collector looks for new types every 30 s, and these are new.
COLLECTOR_SECONDS = 60


def a_pool_of_real_containers_warms(world: World) -> None:
    world.apply(pool("work", REPLICAS))
    expect_full(world, "work")
    sandboxes = world.idle("work")
    check(len(sandboxes) == REPLICAS, f"{len(sandboxes)} idle sandboxes, not {REPLICAS}")
    for sandbox in sandboxes:
        check(container(sandbox)["state"].get("running") is not None,
              f"{sandbox['metadata']['name']} is called available, but its container does not run")
    note(world.kubectl("get", "pools,pods", "--output=wide"))


def a_claim_is_bound_and_a_command_runs_in_its_sandbox(world: World) -> None:
    sandbox = take(world, "run-1", "work")
    name = sandbox["metadata"]["name"]
    check(world.exec(name, "hostname") == name, "the command should run in the sandbox itself")
    status = world.get("sandboxclaim", "run-1")["status"]["sandboxes"][0]
    check((status["ip"], status["node"], status["uid"]) == (
        sandbox["status"]["podIP"], sandbox["spec"]["nodeName"], sandbox["metadata"]["uid"]),
        "the claim should tell the sandbox's real address, node and uid")
    world.exec(name, "sh", "-c", "echo mine > /work/file")
    note(world.kubectl("get", "sandboxclaims"))


def the_plugin_claims_runs_a_command_and_gives_the_sandbox_back(world: World) -> None:
    ran = world.run_plugin("claim", "work", "--name=by-hand", "--rm", "--exec", "--",
                           "sh", "-c", "cat /etc/version; hostname; exit 7")
    version, _, name = ran.stdout.strip().partition("\n")
    check(ran.returncode == 7, f"the exit code should be the command's, 7, not {ran.returncode}: "
                               f"{ran.stderr.strip()}")
    check(version == "1" and name.startswith("work-"), f"the command printed {ran.stdout!r}")
    expect(10, "the claim should be gone", lambda: not any(
        found["metadata"]["name"] == "by-hand" for found in world.every("sandboxclaims")))
    expect(COLLECTOR_SECONDS, "its sandbox should be gone",
           lambda: world.try_kubectl("get", "pod", name).returncode != 0)
    note("$ kubectl warmpool claim work --rm --exec -- sh -c 'cat /etc/version; hostname; exit 7'")
    note(f"{ran.stderr}{ran.stdout}")


def the_examples_run_a_command_in_a_sandbox_and_release_it(world: World) -> None:
    made = STATE / "examples"
    for language, program in (("Go", [made / "claim-go"]),
                              ("Python", [made / "python" / "bin" / "python", REPO / "examples" / "python" / "claim.py"])):
        ran = subprocess.run([*map(str, program), f"--namespace={NAMESPACE}", "--pool=work", "--", "hostname"],
                             capture_output=True, text=True, stdin=subprocess.DEVNULL,
                             env=os.environ | {"KUBECONFIG": str(world.node.cluster.kubeconfig)})
        check(ran.returncode == 0, f"the example in {language} failed: {ran.stderr.strip()}")
        said = [line.split() for line in ran.stdout.splitlines()]
        taken = next(words[3] for words in said if words[:1] == ["one:"] and words[2] == "has")
        printed = next(words[-1] for words in said if words[:3] == ["one:", "hostname", "printed"])
        check(taken == printed, f"the example in {language} took {taken}, and its command ran in {printed}")
        expect(10, "its claims should be gone", lambda: not any(
            found["metadata"]["name"].startswith("example-") for found in world.every("sandboxclaims")))
        expect(COLLECTOR_SECONDS, "its sandbox should be gone",
               lambda: world.try_kubectl("get", "pod", taken).returncode != 0)
        note(ran.stdout)


def a_readiness_probe_decides_what_is_available(world: World) -> None:
    world.apply(pool("probed", 2, template(readinessProbe=PROBE)),
                claim("patient", "probed", onEmpty="Wait"))
    running = expect(30, "both containers should run", lambda: (
        sandboxes if len(sandboxes := world.idle("probed")) == 2
        and all(container(each)["state"].get("running") for each in sandboxes) else None))
    status = world.get("pool", "probed")["status"]
    check(status["available"] == 0, "nothing is available before its probe succeeds")
    check(not is_ready(world.get("sandboxclaim", "patient")), "so the claim should wait")
    chosen = running[0]["metadata"]["name"]
    world.exec(chosen, "touch", "/work/ready")
    expect(15, "the claim should be Ready once a probe succeeds",
           lambda: is_ready(world.get("sandboxclaim", "patient")))
    check(world.claimed("patient")["metadata"]["name"] == chosen,
          "the claim should have the sandbox whose probe succeeds")
    world.exec(chosen, "rm", "/work/ready")
    expect(15, "the claim should say that its sandbox is no longer Ready",
           lambda: not is_ready(world.get("sandboxclaim", "patient")))
    world.kubectl("delete", "pool/probed", "sandboxclaim/patient")
