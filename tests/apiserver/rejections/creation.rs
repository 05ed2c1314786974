//! Checks templates whose pods the API server rejects.
//!
//! The pool says why in a condition, and the operator retries with backoff.

use crate::api::{ACCOUNTS, QUOTAS};
use crate::check::event::condition;
use crate::cluster::Recorded;
use crate::cluster_state::wait_until_at_rest;
use crate::objects::{pool, with};
use crate::scene::Scene;
use crate::stories::{bound, pool_says};
use crate::wait;
use serde_json::{Value, json};

fn refused_creations(scene: &Scene) -> Result<Vec<Recorded>, String> {
    scene.writes(|w| w.verb == "create" && w.resource == "pods" && w.code >= 400)
}

/// Rejections must come at the pace of the backoff. Pauses of 1, 2, 4 and 8 s make one round at least and a few at most, each
/// of as many creations as were in flight together.
fn retries_patiently(scene: &Scene, together: usize) -> Result<(), String> {
    let before = refused_creations(scene)?.len();
    let more = || Ok::<_, String>(refused_creations(scene)?.len().saturating_sub(before));
    wait::throughout("refused creations are few", 7, || {
        let count = more()?;
        wait::ensure(count <= 4 * together, || format!("{count} more were refused"))
    })?;
    let count = more()?;
    wait::ensure(count > 0, || "no pod was tried again within 7 s".into())
}

fn failure_is_gone(scene: &Scene, name: &str) -> Result<(), String> {
    wait::until(&format!("pool {name} no longer said ReplicaFailure"), 90, || {
        let pool = scene.pool(name)?;
        let said = condition(&pool, "ReplicaFailure");
        said.map_or(Ok(()), |c| Err(c.to_string()))
    })
}

pub fn a_quota_is_reported_and_the_pool_fills_when_it_is_lifted(scene: &Scene) -> Result<(), String> {
    scene.create_pod_quota(3)?;
    scene.create_pool(&pool("python", 6, &json!({})))?;
    let message = pool_says(scene, "python", "ReplicaFailure", "FailedCreate")?;
    wait::ensure(message.contains("exceeded quota: narrow"), || {
        format!("the server's own words, not: {message}")
    })?;
    retries_patiently(scene, 3)?;
    // What could be made is of use.
    scene.create_claim("run", "python", &json!({}))?;
    bound(scene, "run")?;
    scene.lab.api.delete(QUOTAS, &scene.namespace, "narrow")?;
    failure_is_gone(scene, "python")?;
    wait_until_at_rest(scene, 90)
}

pub fn a_missing_service_account_is_reported_and_hurts_no_other_pool(scene: &Scene) -> Result<(), String> {
    let missing = json!({"template": {"spec": {"serviceAccountName": "builder"}}});
    scene.create_pool(&pool("broken", 4, &missing))?;
    scene.create_pool(&pool("good", 3, &json!({})))?;
    let message = pool_says(scene, "broken", "ReplicaFailure", "FailedCreate")?;
    wait::ensure(message.contains("serviceaccount \"builder\" not found"), || {
        format!("not: {message}")
    })?;
    retries_patiently(scene, 4)?;
    wait::until("the other pool was full", 30, || {
        let status = scene.pool("good")?["status"].clone();
        wait::ensure(status["available"] == 3, || status.to_string())
    })?;
    scene.create_claim("run", "good", &json!({}))?;
    bound(scene, "run")?;
    scene.create(ACCOUNTS, &json!({"metadata": {"name": "builder"}}))?;
    failure_is_gone(scene, "broken")?;
    wait_until_at_rest(scene, 90)
}

pub fn a_pod_that_the_server_cannot_take_is_reported(scene: &Scene) -> Result<(), String> {
    let invalid = json!({"template": {"spec": {"dnsPolicy": "Sometimes"}}});
    scene.create_pool(&pool("python", 2, &invalid))?;
    let message = pool_says(scene, "python", "ReplicaFailure", "FailedCreate")?;
    wait::ensure(message.contains("Sometimes"), || {
        format!("the server's own words, not: {message}")
    })?;
    retries_patiently(scene, 2)?;
    // A fixed template is tried at once, without backoff.
    scene.patch_pool(
        "python",
        &json!({"spec": {"template": {"spec": {"dnsPolicy": "Default"}}}}),
    )?;
    failure_is_gone(scene, "python")?;
    wait_until_at_rest(scene, 90)
}

pub fn a_rollout_to_a_refused_template_keeps_what_works(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool(
        "python",
        4,
        &json!({"updateStrategy": {"maxUnavailable": 1}}),
    ))?;
    wait_until_at_rest(scene, 30)?;
    let missing = json!({"template": {"spec": {"serviceAccountName": "builder"}}});
    scene.patch_pool("python", &json!({"spec": missing}))?;
    pool_says(scene, "python", "ReplicaFailure", "FailedCreate")?;
    wait::throughout("three stay available", 4, || {
        let status = scene.pool("python")?["status"].clone();
        wait::ensure(status["available"].as_i64() >= Some(3), || status.to_string())
    })?;
    let back: Value = with(
        missing,
        &json!({"template": {"spec": {"serviceAccountName": "default"}}}),
    );
    scene.patch_pool("python", &json!({"spec": back}))?;
    failure_is_gone(scene, "python")?;
    wait_until_at_rest(scene, 90)
}

pub fn a_budget_of_nothing_is_a_surge_of_one(scene: &Scene) -> Result<(), String> {
    let pools = [
        ("percent", json!("0%"), None),
        ("number", json!(0), Some(4)),
        ("small", json!("10%"), Some(3)),
    ];
    for (name, max_unavailable, max_total) in &pools {
        let strategy = json!({"maxUnavailable": max_unavailable});
        let fields = json!({"updateStrategy": strategy, "capacity": {"maxTotal": max_total}});
        scene.create_pool(&pool(name, 3, &fields))?;
    }
    wait_until_at_rest(scene, 60)?;
    for (name, ..) in &pools {
        scene.roll_to(name, crate::objects::NEW_IMAGE)?;
    }
    // How few may be available meanwhile is judged by the history checker.
    wait_until_at_rest(scene, 60)?;
    for (name, ..) in &pools {
        pool_says(scene, name, "Progressing", "RolloutComplete")?;
        crate::stories::rollouts::everything_unclaimed_runs(scene, name, crate::objects::NEW_IMAGE)?;
    }
    Ok(())
}
