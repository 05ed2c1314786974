//! Checks that waiting claims are served by priority, then by age.

use super::{in_phase, order_of_service, says};
use crate::cluster_state::wait_until_at_rest;
use crate::objects;
use crate::scene::Scene;
use crate::wait;
use serde_json::json;

/// Lets the pool warm up one sandbox at a time, so that each goes to the first claim in the queue.
fn one_at_a_time(scene: &Scene) -> Result<(), String> {
    scene.patch_pool(
        "python",
        &json!({"spec": {"replicas": 1, "scaleStrategy": {"maxUnavailable": 1}}}),
    )
}

fn served_in_order(scene: &Scene, expected: &[String]) -> Result<(), String> {
    expected
        .iter()
        .try_for_each(|claim| in_phase(scene, claim, "Bound", 60).map(drop))?;
    let order = order_of_service(&scene.history_up_to_now()?);
    wait::ensure(order == expected, || {
        format!("served in order {order:?} instead of {expected:?}")
    })?;
    wait_until_at_rest(scene, 30)
}

pub fn waiting_claims_are_served_oldest_first(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool("python", 0, &json!({})))?;
    // Names are not in the order of age, so that sorting by name cannot pass.
    let claims: Vec<String> = [7, 2, 9, 0, 4, 8, 1, 6, 3, 5].map(|n| format!("run-{n}")).into();
    claims
        .iter()
        .try_for_each(|claim| scene.create_claim(claim, "python", &json!({"onEmpty": "Wait"})))?;
    let message = says(scene, "run-6", "Bound", "NoneAvailable")?;
    wait::ensure(message.contains("7 claims ahead"), || {
        format!("the eighth claim says: {message}")
    })?;
    one_at_a_time(scene)?;
    served_in_order(scene, &claims)
}

/// Resource versions order claims that were created within one second while the operator was down.
pub fn those_that_came_while_nobody_was_at_work_are_served_oldest_first(scene: &Scene) -> Result<(), String> {
    let operator = scene.lab.start_operator()?;
    scene.create_pool(&objects::pool("python", 0, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    let claims: Vec<String> = [7, 2, 9, 0, 4, 8, 1, 6, 3, 5].map(|n| format!("run-{n}")).into();
    let operator = scene.while_operator_is_down(|| {
        operator.kill()?;
        claims
            .iter()
            .try_for_each(|claim| scene.create_claim(claim, "python", &json!({"onEmpty": "Wait"})))?;
        one_at_a_time(scene)?;
        scene.lab.start_operator()
    })?;
    served_in_order(scene, &claims)?;
    operator.stop()
}

pub fn a_higher_priority_goes_first_and_age_decides_among_equals(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&objects::pool("python", 0, &json!({})))?;
    let queue = [("z", 0), ("y", 5), ("d", 0), ("a", 9), ("c", 5), ("b", -3)];
    for (name, priority) in queue {
        scene.create_claim(name, "python", &json!({"onEmpty": "Wait", "priority": priority}))?;
    }
    queue
        .iter()
        .try_for_each(|(name, _)| says(scene, name, "Bound", "NoneAvailable").map(drop))?;
    one_at_a_time(scene)?;
    served_in_order(scene, &["a", "y", "c", "z", "d", "b"].map(String::from))
}
