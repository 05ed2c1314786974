#!/usr/bin/env python3
"""warmpool on a real node, with real containers: statements that are checked one by one."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from world import SYSTEM, NAMESPACE, Untrue, World, note

import build
import crash
import drain
import image
import latency
import node
import operate
import rollout
import serving
from cluster import call
from layout import HERE, STATE, Cluster, lock
from place import LOCK, Node

CLUSTER = "e2e-node"
# In this order: each goes on from what the one before left.
STORY = (
    image.the_image_built_from_the_dockerfile_is_one_program,
    operate.the_chart_installs_two_operators_under_the_restricted_standard,
    serving.a_pool_of_real_containers_warms,
    operate.helm_test_runs_the_image_with_the_operators_rights,
    operate.the_leader_alone_writes_from_its_pod_with_its_own_token,
    serving.a_claim_is_bound_and_a_command_runs_in_its_sandbox,
    serving.the_plugin_claims_runs_a_command_and_gives_the_sandbox_back,
    serving.the_examples_run_a_command_in_a_sandbox_and_release_it,
    rollout.a_rollout_changes_every_idle_sandbox_and_no_claimed_one,
    serving.a_readiness_probe_decides_what_is_available,
    crash.a_crashed_container_of_an_idle_sandbox_is_not_handed_out,
    crash.a_crashed_container_of_a_claim_is_told_and_comes_back,
    rollout.an_image_that_does_not_exist_costs_no_more_than_the_budget,
    rollout.why_a_sandbox_does_not_come_up_is_told,
    rollout.the_rest_of_the_pool_is_served_meanwhile_and_the_mended_template_rolls_out,
    latency.a_claim_is_usable_sooner_than_a_cold_start,
    crash.claimed_sandboxes_survive_a_stopped_kubelet_and_the_numbers_follow,
    operate.a_helm_upgrade_under_claims_serves_each_and_harms_no_sandbox,
    operate.a_helm_rollback_under_claims_serves_each_and_harms_no_sandbox,
    operate.a_helm_uninstall_and_install_under_claims_serves_each_and_harms_no_sandbox,
    drain.a_drain_replaces_the_idle_sandboxes_first_and_waits_for_the_tenant,
)


def tell(world: World) -> bool:
    """Checks one statement after the other; true when all hold. The first that does not ends
    the story, since the next ones go on from it."""
    began = time.monotonic()
    for number, statement in enumerate(STORY, start=1):
        asked = time.monotonic()
        words = statement.__name__.replace("_", " ")
        print(f"\n{number:2}/{len(STORY)}  {words} ...", flush=True)
        try:
            statement(world)
        except Untrue as untrue:
            print(f"FAIL   {untrue}")
            show_what_is_there(world)
            return False
        print(f"ok     {time.monotonic() - asked:.1f} s", flush=True)
    print(f"\nAll {len(STORY)} statements hold, in {time.monotonic() - began:.0f} s.")
    return True


def show_what_is_there(world: World) -> None:
    for namespace, *arguments in (
            (NAMESPACE, "get", "nodes,pools,sandboxclaims,pods", "--output=wide"),
            (NAMESPACE, "get", "events", "--sort-by=.lastTimestamp"),
            (SYSTEM, "get", "pods,events"),
            (SYSTEM, "logs", f"--selector={operate.OPERATOR}", "--tail=20", "--prefix")):
        shown = world.try_kubectl(*arguments, namespace=namespace)
        note(f"$ kubectl --namespace={namespace} {' '.join(arguments)}")
        note(f"{shown.stdout[-5000:]}{shown.stderr}")


def run(keep: bool) -> None:
    where = Node(Cluster(STATE / CLUSTER))
    node.need_root()
    build.ensure(("helm",))
    plugin = image.FOLDER / "kubectl-warmpool"
    image.take_out_plugin(image.prepare(), plugin)
    end(where)
    try:
        node.up(where)
        held = tell(World(where, plugin))
    finally:
        if not keep:
            end(where)
    if keep:
        note(f"left as it is: export KUBECONFIG={where.cluster.kubeconfig} PATH={build.bin_dir()}:$PATH")
    if not held:
        sys.exit(1)


def end(where: Node) -> None:
    """Ends node and cluster, those that an earlier run kept as well."""
    if where.is_up():
        node.down(where)
    if where.cluster.ports_file.exists():
        subprocess.run([str(HERE / "cluster.py"), "down", "--dir", str(where.cluster.dir)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true",
                        help="leave the node and the cluster up at the end")
    keep = parser.parse_args().keep

    def alone() -> None:
        with lock(LOCK, "changes the node"):
            run(keep)

    call(alone)


if __name__ == "__main__":
    main()
