//! Checks that a deletion removes only what belongs to the deleted object.

use super::{bound, burst, in_phase, sandbox, says};
use crate::api::{CLAIMS, PODS, POOLS};
use crate::check::event::text;
use crate::cluster_state::{ClusterState, label, wait_until_at_rest};
use crate::objects::pool;
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};

pub fn a_pool_deleted_under_its_claims_leaves_the_bound_ones_theirs(scene: &Scene) -> Result<(), String> {
    let narrow = pool("python", 2, &json!({"capacity": {"maxTotal": 3}}));
    scene.create_pool(&narrow)?;
    wait_until_at_rest(scene, 30)?;
    let claims = burst(scene, "run", 3, "python", &json!({}))?;
    let uid = |claim: &String| Ok::<_, String>(sandbox(&bound(scene, claim)?).1);
    let held: Vec<String> = claims.iter().map(uid).collect::<Result<_, _>>()?;
    scene.create_claim("waits", "python", &json!({}))?;
    says(scene, "waits", "Bound", "Exhausted")?;
    scene.lab.api.delete(POOLS, &scene.namespace, "python")?;
    says(scene, "waits", "Bound", "PoolNotFound")?;
    let uids = |pods: &[Value]| -> Vec<String> {
        let mut uids: Vec<_> = pods
            .iter()
            .map(|p| text(p, "/metadata/uid").to_string())
            .collect();
        uids.sort();
        uids
    };
    let mut expected = held.clone();
    expected.sort();
    wait::throughout("the claimed sandboxes stay", 3, || {
        let pods = scene.pods()?;
        wait::ensure(uids(&pods) == expected, || format!("{:?}", uids(&pods)))
    })?;
    // The pool that comes under the same name is another one: it counts them as claimed all the same.
    scene.create_pool(&narrow)?;
    says(scene, "waits", "Bound", "Exhausted")?;
    scene.delete_claim("run-0")?;
    bound(scene, "waits")?;
    for (claim, uid) in claims.iter().zip(&held).skip(1) {
        let (_, now) = sandbox(&scene.claim(claim)?);
        wait::ensure(now == *uid, || format!("{claim} had {uid} and has {now}"))?;
    }
    claims.iter().try_for_each(|claim| scene.delete_claim(claim))?;
    wait_until_at_rest(scene, 30)
}

pub fn a_claim_deleted_in_any_phase_takes_what_it_has_along(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("none", 0, &json!({})))?;
    scene.create_pool(&pool("python", 4, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    scene.create_claim("pending", "none", &json!({"onEmpty": "Wait"}))?;
    scene.create_claim("bound", "python", &json!({}))?;
    scene.create_claim("failed", "python", &json!({}))?;
    scene.create_claim("expired", "python", &json!({"lifetimeSeconds": 1}))?;
    let kept = json!({"lifetimeSeconds": 1, "releasePolicy": "Retain"});
    scene.create_claim("kept", "python", &kept)?;
    bound(scene, "bound")?;
    let (victim, _) = sandbox(&bound(scene, "failed")?);
    let fails = json!({"metadata": {"annotations": {"sim.warmpool.dev/fail-after": "0s"}}});
    scene.lab.api.merge(PODS, &scene.namespace, &victim, &fails)?;
    in_phase(scene, "failed", "Failed", 30)?;
    in_phase(scene, "expired", "Expired", 30)?;
    in_phase(scene, "kept", "Expired", 30)?;
    says(scene, "pending", "Bound", "NoneAvailable")?;
    let mut holding = Vec::new();
    wait::until("three sandboxes were left with their claims", 30, || {
        let state = ClusterState::read(scene)?;
        holding = state
            .claimed("python")
            .iter()
            .map(|p| label(p, "claim").to_string())
            .collect();
        holding.sort();
        wait::ensure(holding == ["bound", "failed", "kept"], || format!("{holding:?}"))
    })?;
    let all = ["pending", "bound", "failed", "expired", "kept"].map(String::from);
    scene.lab.api.delete_all(CLAIMS, &scene.namespace, &all)?;
    wait_until_at_rest(scene, 30)?;
    wait::ensure(scene.pods()?.len() == 4, || {
        "only the warm ones should be left".into()
    })
}
