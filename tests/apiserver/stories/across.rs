//! Checks claims during a rollout, a scale to zero and a pool's deletion.

use crate::api::POOLS;
use crate::claimants::Claimants;
use crate::cluster_state::wait_until_at_rest;
use crate::objects::{pool, sim, with};
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::Duration;

const WARM: i64 = 20;
const PATIENCE: u64 = 90;

/// The pool with the image of that number.
fn python(image: usize) -> Value {
    let template = json!({"template": {"spec": {"containers": [
        {"name": "main", "image": format!("sandbox:{image}")},
    ]}}});
    pool("python", WARM, &with(sim(&[("ready-after", "300ms")]), &template))
}

/// Waits until the status says that it is about the latest spec, and `holds`.
fn status(scene: &Scene, condition: &str, holds: impl Fn(&Value) -> bool) -> Result<(), String> {
    wait::until(condition, PATIENCE, || {
        let pool = scene.pool("python")?;
        let status = &pool["status"];
        let seen = status["observedGeneration"] == pool["metadata"]["generation"];
        wait::ensure(seen && holds(status), || status.to_string())
    })
}

fn almost_full(status: &Value) -> bool {
    status["available"].as_i64() >= Some(WARM - 5)
}

pub fn claims_keep_coming_through_a_rollout_a_scale_to_zero_and_a_pool_made_anew(
    scene: &Scene,
) -> Result<(), String> {
    let (rounds, stay) = scene.sized((1, 1), (4, 10));
    let stay = || sleep(Duration::from_secs(stay));
    let operator = scene.lab.start_operator()?;
    scene.create_pool(&python(1))?;
    wait_until_at_rest(scene, PATIENCE)?;
    let claimants = Claimants::start(scene, "python");
    for round in 0..rounds {
        let image = 2 + round;
        scene.roll_to("python", &format!("sandbox:{image}"))?;
        status(scene, "the rollout was complete", |status| {
            status["updateRevision"] == status["currentRevision"] && almost_full(status)
        })?;
        stay();
        scene.patch_pool("python", &json!({"spec": {"replicas": 0}}))?;
        status(scene, "none was kept warm", |status| status["available"] == 0)?;
        stay();
        scene.patch_pool("python", &json!({"spec": {"replicas": WARM}}))?;
        status(scene, "the pool was filled again", almost_full)?;
        stay();
        scene.lab.api.delete(POOLS, &scene.namespace, "python")?;
        stay();
        scene.create_pool(&python(image))?;
        status(scene, "the new pool was filled", almost_full)?;
        stay();
    }
    let came = claimants.stop()?;
    wait_until_at_rest(scene, PATIENCE)?;
    wait::ensure(scene.pods()?.len() == WARM as usize, || {
        format!("{WARM} should be left of all that {came} claims had")
    })?;
    operator.stop()
}
