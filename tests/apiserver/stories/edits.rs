//! Checks that sandboxes with labels edited by hand are left alone and replaced.

use crate::api::PODS;
use crate::check::event::{condition, text};
use crate::cluster_state::{ClusterState, wait_until_at_rest};
use crate::objects::pool;
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};

const REPLICAS: usize = 4;

/// Sets labels of one warm sandbox of a full pool, and returns its name.
fn edited(scene: &Scene, labels: &Value) -> Result<String, String> {
    scene.create_pool(&pool("python", 4, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    let state = ClusterState::read(scene)?;
    let victim = state
        .unclaimed("python")
        .first()
        .map(|p| text(p, "/metadata/name").to_string());
    let victim = victim.ok_or("a full pool has sandboxes")?;
    scene.lab.api.merge(
        PODS,
        &scene.namespace,
        &victim,
        &json!({"metadata": {"labels": labels}}),
    )?;
    Ok(victim)
}

fn is_full_without_it(scene: &Scene) -> Result<(), String> {
    let (state, pool) = (ClusterState::read(scene)?, scene.pool("python")?);
    let unclaimed = state.unclaimed("python").len();
    let status = &pool["status"];
    wait::ensure(unclaimed == REPLICAS && status["available"] == REPLICAS, || {
        format!("{unclaimed} unclaimed, status {status}")
    })
}

/// A pod with the pool's label counts in its total, and the pool names it.
fn counts_and_is_named(scene: &Scene, victim: &str) -> Result<(), String> {
    wait::until("the pool counted and named the edited pod", 30, || {
        let pool = scene.pool("python")?;
        let said = condition(&pool, "Available").map_or("", |said| text(said, "/message"));
        let is_told = pool["status"]["total"] == REPLICAS + 1 && said.contains(victim);
        wait::ensure(is_told, || pool["status"].to_string())
    })
}

/// The edited pod is neither changed, deleted nor claimed. The pool creates exactly one replacement.
fn left_alone_and_replaced(scene: &Scene, victim: &str) -> Result<(), String> {
    let uid = scene.pod(victim)?["metadata"]["uid"].clone();
    wait::until("the pool was full without the edited pod", 30, || {
        is_full_without_it(scene)
    })?;
    wait::throughout("the edited pod is left alone", 4, || {
        let pod = scene.pod(victim)?;
        let same = pod["metadata"]["uid"] == uid && pod["metadata"]["deletionTimestamp"].is_null();
        wait::ensure(same, || pod["metadata"].to_string())
    })?;
    // The status may still have counted the edited pod when its replacement existed already.
    wait::until("the pool stayed full without the edited pod", 30, || {
        is_full_without_it(scene)
    })?;
    let made = super::pods_created(&scene.history());
    wait::ensure(made == REPLICAS + 1, || {
        format!("{made} pods were made where one more than {REPLICAS} should be")
    })?;
    for n in 0..REPLICAS {
        let name = format!("run-{n}");
        scene.create_claim(&name, "python", &json!({}))?;
        let (pod, _) = super::sandbox(&super::bound(scene, &name)?);
        wait::ensure(pod != victim, || format!("{name} was given the edited pod"))?;
    }
    Ok(())
}

pub fn a_sandbox_said_to_be_claimed_by_hand_is_left_alone_and_replaced(scene: &Scene) -> Result<(), String> {
    let victim = edited(scene, &json!({"warmpool.dev/state": "claimed"}))?;
    counts_and_is_named(scene, &victim)?;
    left_alone_and_replaced(scene, &victim)
}

pub fn a_sandbox_in_a_state_nobody_knows_is_left_alone_and_replaced(scene: &Scene) -> Result<(), String> {
    let victim = edited(scene, &json!({"warmpool.dev/state": "nonsense"}))?;
    counts_and_is_named(scene, &victim)?;
    left_alone_and_replaced(scene, &victim)
}

pub fn a_sandbox_without_its_state_is_left_alone_and_replaced(scene: &Scene) -> Result<(), String> {
    let victim = edited(scene, &json!({"warmpool.dev/state": null}))?;
    counts_and_is_named(scene, &victim)?;
    left_alone_and_replaced(scene, &victim)
}

pub fn a_sandbox_without_its_pool_label_is_left_alone_and_replaced(scene: &Scene) -> Result<(), String> {
    let victim = edited(scene, &json!({"warmpool.dev/pool": null}))?;
    left_alone_and_replaced(scene, &victim)
}

pub fn a_label_set_right_again_brings_the_sandbox_back(scene: &Scene) -> Result<(), String> {
    let victim = edited(scene, &json!({"warmpool.dev/state": "nonsense"}))?;
    counts_and_is_named(scene, &victim)?;
    wait::until("the pool was full without the edited pod", 30, || {
        is_full_without_it(scene)
    })?;
    let fixed = json!({"metadata": {"labels": {"warmpool.dev/state": "warm"}}});
    scene.lab.api.merge(PODS, &scene.namespace, &victim, &fixed)?;
    // Now there is one too many, which goes.
    wait_until_at_rest(scene, 30)
}

pub fn labels_of_others_are_nobodys_business(scene: &Scene) -> Result<(), String> {
    let victim = edited(scene, &json!({"team": "red", "warmpool.dev/unheard-of": "yes"}))?;
    wait::throughout("the pool stays as it is", 3, || {
        scene.pod(&victim)?;
        ClusterState::read(scene)?.at_rest()
    })
}
