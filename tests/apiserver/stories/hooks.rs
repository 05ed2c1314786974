//! Checks lifecycle hooks that gate sandboxes and delay their deletion.

use super::{bound, pool_says};
use crate::check::event::condition;
use crate::cluster_state::{ClusterState, label, wait_until_at_rest};
use crate::objects::{NEW_IMAGE, pool};
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};

const CHECKED: &str = "example.com/checked";
const HELD: &str = "example.com/held";

fn name(pod: &Value) -> String {
    pod["metadata"]["name"].as_str().unwrap_or_default().to_string()
}

/// Names of the pool's sandboxes in that state.
fn in_state(scene: &Scene, state: &str) -> Result<Vec<String>, String> {
    let pods = scene.pods()?;
    let here = pods.iter().filter(|pod| label(pod, "state") == state);
    Ok(here.map(name).collect())
}

fn patch(scene: &Scene, pod: &str, patch: &Value) -> Result<(), String> {
    let patch = patch.to_string();
    scene
        .kubectl(&["patch", "pod", pod, "--type=merge", "-p", &patch], None)
        .map(drop)
}

fn counts(scene: &Scene, wanted: &[(&str, i64)]) -> Result<(), String> {
    wait::until(&format!("the status counted {wanted:?}"), 30, || {
        let status = scene.pool("python")?["status"].clone();
        let right = wanted.iter().all(|(field, n)| status[field].as_i64() == Some(*n));
        wait::ensure(right, || status.to_string())
    })
}

pub fn a_sandbox_is_available_only_with_every_pre_normal_handler(scene: &Scene) -> Result<(), String> {
    let hook = json!({"labelsHandler": {CHECKED: "yes"}, "finalizersHandler": [HELD]});
    scene.create_pool(&pool("python", 2, &json!({"lifecycle": {"preNormal": hook}})))?;
    counts(scene, &[("ready", 2), ("available", 0)])?;
    scene.create_claim("run", "python", &json!({"onEmpty": "Wait"}))?;
    let warm = in_state(scene, "warm")?;
    let [first, second] = &warm[..] else {
        return Err(format!("{warm:?}"));
    };
    patch(scene, first, &json!({"metadata": {"labels": {CHECKED: "yes"}}}))?;
    patch(scene, second, &json!({"metadata": {"finalizers": [HELD]}}))?;
    super::in_phase(scene, "run", "Pending", 30)?;
    counts(scene, &[("available", 0), ("claimed", 0)])?;
    patch(scene, first, &json!({"metadata": {"finalizers": [HELD]}}))?;
    let claim = bound(scene, "run")?;
    wait::ensure(claim["status"]["sandboxes"][0]["name"] == **first, || {
        claim["status"].to_string()
    })?;
    // The finalizers are ours to take off, or the namespace would never go.
    scene.patch_pool("python", &json!({"spec": {"replicas": 0, "lifecycle": null}}))?;
    for pod in [first, second] {
        patch(scene, pod, &json!({"metadata": {"finalizers": null}}))?;
    }
    wait_until_at_rest(scene, 30)
}

fn held(replicas: i64, more: &Value) -> Value {
    let mut pool = pool("python", replicas, more);
    pool["spec"]["template"]["metadata"]["labels"][HELD] = json!("yes");
    pool["spec"]["lifecycle"] = json!({"preDelete": {"labelsHandler": {HELD: "yes"}}});
    pool
}

fn let_go(scene: &Scene) -> Result<(), String> {
    let draining = in_state(scene, "draining")?;
    draining.iter().try_for_each(|pod| let_pod_go(scene, pod))
}

fn let_pod_go(scene: &Scene, pod: &str) -> Result<(), String> {
    patch(scene, pod, &json!({"metadata": {"labels": {HELD: null}}}))
}

pub fn a_held_sandbox_drains_until_it_is_let_go(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&held(4, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    scene.patch_pool("python", &json!({"spec": {"replicas": 1}}))?;
    counts(scene, &[("replicas", 1), ("available", 1), ("draining", 3)])?;
    let draining = in_state(scene, "draining")?;
    let_pod_go(scene, &draining[0])?;
    counts(scene, &[("draining", 2)])?;
    // Wanted again before anything was released: the very same sandboxes come back, and only what is missing
    // is made anew.
    scene.patch_pool("python", &json!({"spec": {"replicas": 4}}))?;
    wait_until_at_rest(scene, 60)?;
    let warm = in_state(scene, "warm")?;
    let back = draining[1..].iter().all(|pod| warm.contains(pod));
    wait::ensure(back && !warm.contains(&draining[0]), || {
        format!("{draining:?} were drained, {warm:?} are warm")
    })
}

/// The drained sandboxes take up `maxTotal` until they are let go, so no more new ones fit beside them.
pub fn a_rollout_of_held_sandboxes_goes_on_as_they_are_let_go(scene: &Scene) -> Result<(), String> {
    let budget = json!({"updateStrategy": {"maxUnavailable": 2}, "capacity": {"maxTotal": 9}});
    scene.create_pool(&held(6, &budget))?;
    wait_until_at_rest(scene, 60)?;
    scene.create_claim("run", "python", &json!({}))?;
    bound(scene, "run")?;
    wait_until_at_rest(scene, 60)?;
    scene.roll_to("python", NEW_IMAGE)?;
    for updated in [2, 4] {
        // Two more were drained when the new ones were available, and their replacements do not fit.
        let stands = [("updatedAvailable", updated), ("draining", 4), ("available", 4)];
        counts(scene, &stands)?;
        wait::throughout("the rollout stands still", 3, || {
            let pool = scene.pool("python")?;
            let status = &pool["status"];
            let still = stands
                .iter()
                .all(|(field, n)| status[*field].as_i64() == Some(*n));
            let complete = condition(&pool, "Progressing").is_some_and(|c| c["reason"] == "RolloutComplete");
            wait::ensure(still && !complete, || status.to_string())
        })?;
        let first: Vec<_> = in_state(scene, "draining")?.into_iter().take(2).collect();
        first.iter().try_for_each(|pod| let_pod_go(scene, pod))?;
    }
    counts(scene, &[("updatedAvailable", 6)])?;
    pool_says(scene, "python", "Progressing", "RolloutComplete")?;
    let_go(scene)?;
    wait_until_at_rest(scene, 60)?;
    wait::ensure(ClusterState::read(scene)?.claimed("python").len() == 1, || {
        "the claimed sandbox is gone".into()
    })
}
