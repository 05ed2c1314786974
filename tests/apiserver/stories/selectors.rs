//! Checks claims that select a pool by labels.

use super::metrics::served;
use super::{bound, says};
use crate::api::{CLAIMS, POOLS};
use crate::cluster_state::wait_until_at_rest;
use crate::http;
use crate::objects::{claim, pool};
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::Duration;

/// Two pools and two claims that appear, three sandboxes that are created and never become ready, and the statuses that say so:
/// each is an event or two, and every event reconciles a pool and its claims.
const MOST_RECONCILES: f64 = 60.0;

fn labelled(name: &str, replicas: i64) -> Value {
    let mut pool = pool(name, replicas, &json!({}));
    pool["metadata"]["labels"] = json!({"lang": "python"});
    pool
}

/// One whose sandboxes never become ready.
fn held(name: &str, replicas: i64) -> Value {
    let mut pool = labelled(name, replicas);
    pool["spec"]["template"]["metadata"]["annotations"] = json!({"sim.warmpool.dev/hold": "true"});
    pool
}

fn selector_claim(scene: &Scene, name: &str, more: &Value) -> Result<(), String> {
    let mut claim = claim(name, "", more);
    claim["spec"]["poolSelector"] = json!({"matchLabels": {"lang": "python"}});
    if let Some(spec) = claim["spec"].as_object_mut() {
        spec.remove("poolRef");
    }
    scene.create(CLAIMS, &claim).map(drop)
}

pub fn a_selector_takes_from_the_pool_with_the_most(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&labelled("few", 1))?;
    scene.create_pool(&labelled("many", 5))?;
    scene.create_pool(&pool("other", 9, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    selector_claim(scene, "run", &json!({}))?;
    let run = bound(scene, "run")?;
    wait::ensure(run["status"]["pool"] == "many", || run["status"].to_string())?;
    wait_until_at_rest(scene, 60)
}

pub fn a_selector_moves_to_the_pool_that_can_serve_first(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&held("a-held", 1))?;
    selector_claim(scene, "run", &json!({}))?;
    says(scene, "run", "Bound", "NoneAvailable")?;
    scene.create_pool(&labelled("b-works", 1))?;
    let run = bound(scene, "run")?;
    wait::ensure(run["status"]["pool"] == "b-works", || run["status"].to_string())?;
    scene.patch_pool("a-held", &json!({"spec": {"replicas": 0}}))?;
    wait_until_at_rest(scene, 60)
}

pub fn a_selector_that_fits_no_pool_says_so_until_one_comes(scene: &Scene) -> Result<(), String> {
    selector_claim(scene, "run", &json!({}))?;
    let why = says(scene, "run", "Bound", "PoolNotFound")?;
    wait::ensure(why.contains("lang=python"), || why.clone())?;
    scene.create_pool(&labelled("python", 1))?;
    bound(scene, "run")?;
    wait_until_at_rest(scene, 60)
}

pub fn a_waiting_claim_goes_to_another_pool_when_its_own_is_deleted(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&held("a-held", 1))?;
    scene.create_pool(&labelled("b-empty", 0))?;
    selector_claim(scene, "run", &json!({}))?;
    says(scene, "run", "Bound", "NoneAvailable")?;
    scene.lab.api.delete(POOLS, &scene.namespace, "a-held")?;
    let run = bound(scene, "run")?;
    wait::ensure(run["status"]["pool"] == "b-empty", || run["status"].to_string())?;
    wait_until_at_rest(scene, 60)
}

pub fn pools_with_a_claim_for_each_other_are_looked_at_no_more_than_need_be(
    scene: &Scene,
) -> Result<(), String> {
    // What other stories leave behind is reconciled, too, until it is gone.
    for resource in [POOLS, CLAIMS] {
        wait::until("no other story had a pool or a claim", 60, || {
            let left = scene.lab.api.list(resource, "")?;
            wait::ensure(left.is_empty(), || {
                format!("{:?}", left.iter().map(|o| &o["metadata"]).collect::<Vec<_>>())
            })
        })?;
    }
    let operator = scene
        .lab
        .start_operator_with(&["--leader-elect=false", "--metrics-bind-address=127.0.0.1:0"])?;
    let address = served(&operator, "metrics-bind-address")?;
    let mut full = held("a-full", 0);
    full["spec"]["capacity"] = json!({"maxTotal": 1});
    scene.create_pool(&full)?;
    scene.create_pool(&held("b-roomy", 0))?;
    selector_claim(scene, "one", &json!({}))?;
    selector_claim(scene, "two", &json!({"replicas": 2}))?;
    for claim in ["one", "two"] {
        says(scene, claim, "Bound", "NoneAvailable")?;
    }
    sleep(Duration::from_secs(10));
    let more = reconciles(&address)?;
    scene.lab.print_at_end(format!(
        "reconciles of two pools with a claim for each other: {more}"
    ));
    wait::ensure(more <= MOST_RECONCILES, || {
        format!("{more} reconciles of two pools and two claims, and {MOST_RECONCILES} are enough")
    })?;
    for claim in ["one", "two"] {
        scene.delete_claim(claim)?;
    }
    wait_until_at_rest(scene, 60)?;
    operator.stop()
}

/// Reconciles so far, of both controllers.
fn reconciles(metrics: &str) -> Result<f64, String> {
    let (_, text) = http::get(metrics, "/metrics")?;
    let name = "warmpool_reconcile_duration_seconds_count";
    let counts: Vec<f64> = text
        .lines()
        .filter(|line| line.starts_with(name))
        .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
        .collect();
    wait::ensure(!counts.is_empty(), || format!("no {name} in {text}"))?;
    Ok(counts.iter().sum())
}
