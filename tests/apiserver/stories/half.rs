//! Checks an operator that dies in the middle of one claim's bindings.

use super::{bound, in_phase};
use crate::check::event::{Kind, items};
use crate::cluster_state::{label, wait_until_at_rest};
use crate::objects::pool;
use crate::operator::Operator;
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// So many that the operator cannot bind them all before it is killed.
const WANTED: usize = 80;
/// How often a kill may come too late.
const ROUNDS: usize = 5;

fn held(scene: &Scene, claim: &str) -> usize {
    scene.count(Kind::Pod, |pod| label(pod, "claim") == claim)
}

/// What there is after a kill in the middle of a claim's bindings, and who took over.
struct Half {
    claim: String,
    /// The pods while no operator ran.
    pods: Vec<Value>,
    operator: Operator,
}

/// Makes a claim for all that the pool has, and kills the operator when the claim holds some. The next one starts
/// `seconds` later.
fn killed_half_way(
    scene: &Scene,
    mut operator: Operator,
    more: &Value,
    seconds: u64,
) -> Result<Half, String> {
    for round in 0..ROUNDS {
        let claim = format!("run-{round}");
        let mut terms = more.clone();
        terms["replicas"] = json!(WANTED);
        scene.create_claim(&claim, "python", &terms)?;
        let deadline = Instant::now() + Duration::from_secs(30);
        while held(scene, &claim) == 0 && Instant::now() < deadline {
            sleep(Duration::from_millis(1));
        }
        let mut pods = Vec::new();
        operator = scene.while_operator_is_down(|| {
            operator.kill()?;
            pods = scene.pods()?;
            sleep(Duration::from_secs(seconds));
            scene.lab.start_operator()
        })?;
        let held = pods.iter().filter(|pod| label(pod, "claim") == claim).count();
        if (1..WANTED).contains(&held) {
            return Ok(Half {
                claim,
                pods,
                operator,
            });
        }
        scene.delete_claim(&claim)?;
        wait_until_at_rest(scene, 60)?;
    }
    Err(format!("in {ROUNDS} rounds no kill came half-way"))
}

fn warm(scene: &Scene) -> Result<Operator, String> {
    let operator = scene.lab.start_operator()?;
    scene.create_pool(&pool("python", WANTED as i64, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    Ok(operator)
}

pub fn a_batch_whose_operator_dies_half_way_is_finished(scene: &Scene) -> Result<(), String> {
    let Half {
        claim,
        pods,
        operator,
    } = killed_half_way(scene, warm(scene)?, &json!({}), 0)?;
    let batch = bound(scene, &claim)?;
    let listed = items(&batch, "/status/sandboxes");
    wait::ensure(listed.len() == WANTED, || batch["status"].to_string())?;
    let kept = |pod: &&Value| label(pod, "claim") == claim;
    let all_kept = pods
        .iter()
        .filter(kept)
        .all(|pod| listed.iter().any(|s| s["uid"] == pod["metadata"]["uid"]));
    wait::ensure(all_kept, || "what it held already was not used".into())?;
    wait_until_at_rest(scene, 60)?;
    operator.stop()
}

pub fn a_batch_whose_operator_dies_half_way_and_whose_time_ends_is_given_up_whole(
    scene: &Scene,
) -> Result<(), String> {
    let short = json!({"waitTimeoutSeconds": 4});
    let Half { claim, operator, .. } = killed_half_way(scene, warm(scene)?, &short, 5)?;
    let batch = in_phase(scene, &claim, "Failed", 30)?;
    wait::ensure(items(&batch, "/status/sandboxes").is_empty(), || {
        batch["status"].to_string()
    })?;
    wait_until_at_rest(scene, 60)?;
    wait::ensure(held(scene, &claim) == 0, || {
        format!("{} are still the claim's", held(scene, &claim))
    })?;
    operator.stop()
}
