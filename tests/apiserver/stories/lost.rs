//! Checks claims whose sandbox is evicted, fails or loses its node.

use super::own_nodes::{declare_drain, node, only_there};
use super::{bound, in_phase, sandbox, says};
use crate::api::{NODES, PODS};
use crate::check::event::text;
use crate::cluster_state::wait_until_at_rest;
use crate::objects::{pool, with};
use crate::scene::Scene;
use crate::wait;
use serde_json::json;

/// The claims `fails` and `replaces`, bound, and the names of their sandboxes.
fn two_claims(scene: &Scene) -> Result<[String; 2], String> {
    let allows = json!({"disruption": "Allow"});
    scene.create_claim("fails", "python", &allows)?;
    scene.create_claim(
        "replaces",
        "python",
        &with(allows, &json!({"onSandboxLost": "Replace"})),
    )?;
    let name = |claim| Ok::<_, String>(sandbox(&bound(scene, claim)?).0);
    Ok([name("fails")?, name("replaces")?])
}

fn one_ends_and_one_goes_on(scene: &Scene, lost: &[String; 2], seconds: u64) -> Result<(), String> {
    in_phase(scene, "fails", "Failed", seconds)?;
    says(scene, "fails", "Bound", "SandboxLost")?;
    wait::until("the other claim had another sandbox", seconds, || {
        let claim = scene.claim("replaces")?;
        let another = text(&claim, "/status/phase") == "Bound" && !lost.contains(&sandbox(&claim).0);
        wait::ensure(another, || claim["status"].to_string())
    })?;
    scene.delete_claim("fails")?;
    wait_until_at_rest(scene, 60)
}

pub fn a_claimed_sandbox_that_is_evicted_is_lost(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 3, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    let lost = two_claims(scene)?;
    for pod in &lost {
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}});
        let path = format!("/api/v1/namespaces/{}/pods/{pod}/eviction", scene.namespace);
        let arguments = ["create", "--raw", &path, "-f", "-"];
        scene.kubectl(&arguments, Some(&eviction.to_string()))?;
    }
    one_ends_and_one_goes_on(scene, &lost, 30)
}

pub fn a_claimed_sandbox_that_fails_is_lost(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 3, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    let lost = two_claims(scene)?;
    let fails = json!({"metadata": {"annotations": {"sim.warmpool.dev/fail-after": "0s"}}});
    for pod in &lost {
        scene.lab.api.merge(PODS, &scene.namespace, pod, &fails)?;
    }
    one_ends_and_one_goes_on(scene, &lost, 30)?;
    scene.expect_no_pod(&lost[1])
}

pub fn a_claimed_sandbox_whose_node_is_gone_is_lost(scene: &Scene) -> Result<(), String> {
    let api = &scene.lab.api;
    api.create(NODES, "", &node(scene, "doomed"))?;
    scene.create_pool(&pool("python", 2, &only_there(scene)))?;
    wait_until_at_rest(scene, 30)?;
    let lost = two_claims(scene)?;
    api.create(NODES, "", &node(scene, "spare-for-doomed"))?;
    // The operator deletes at once what was on a node that is gone.
    declare_drain(scene, "doomed", true);
    api.delete(NODES, "", "doomed")?;
    // Until the controller manager has waited for the node to come back (40 s) and cleaned up (every 20 s).
    one_ends_and_one_goes_on(scene, &lost, 150)?;
    scene.delete_claim("replaces")?;
    scene.patch_pool("python", &json!({"spec": {"replicas": 0}}))?;
    wait_until_at_rest(scene, 30)?;
    Ok(api.delete(NODES, "", "spare-for-doomed")?)
}
