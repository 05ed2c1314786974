//! Claims for several sandboxes, claims that any of several pools may serve, and what a pool says for its claims.

use super::{bound, burst};
use crate::check::event::{items, text};
use crate::objects::{pool, sim, with};
use crate::rest::{label, settle};
use crate::scene::Scene;
use crate::wait;
use serde_json::{Value, json};

fn sandboxes(claim: &Value) -> usize {
    items(claim, "/status/sandboxes").len()
}

fn warming(replicas: i64, more: &Value) -> Value {
    pool("python", replicas, &with(sim(&[("ready-after", "300ms")]), more))
}

pub fn a_batch_is_bound_all_together_and_younger_claims_wait_for_it(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&warming(4, &json!({"scaleStrategy": {"maxUnavailable": 2}})))?;
    settle(scene, 60)?;
    scene.create_claim("batch", "python", &json!({"replicas": 10}))?;
    let younger = burst(scene, "younger", 4, "python", &json!({}))?;
    let batch = bound(scene, "batch")?;
    wait::ensure(sandboxes(&batch) == 10, || batch["status"].to_string())?;
    younger.iter().try_for_each(|c| bound(scene, c).map(drop))?;
    settle(scene, 60)?;
    scene.delete_claim("batch")?;
    settle(scene, 60)
}

pub fn two_hundred_sandboxes_in_one_claim(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool(
        "python",
        5,
        &json!({"scaleStrategy": {"maxUnavailable": 100}}),
    ))?;
    scene.create_claim("many", "python", &json!({"replicas": 200}))?;
    let many = super::in_phase(scene, "many", "Bound", 60)?;
    wait::ensure(sandboxes(&many) == 200, || {
        format!("{} are listed", sandboxes(&many))
    })?;
    settle(scene, 60)
}

fn labelled(name: &str, replicas: i64) -> Value {
    let mut pool = pool(name, replicas, &json!({}));
    pool["metadata"]["labels"] = json!({"lang": "python"});
    pool
}

fn roaming(scene: &Scene, name: &str, more: &Value) -> Result<(), String> {
    let mut claim = crate::objects::claim(name, "", more);
    claim["spec"]["poolRef"] = Value::Null;
    claim["spec"]["poolSelector"] = json!({"matchLabels": {"lang": "python"}});
    if let Some(spec) = claim["spec"].as_object_mut() {
        spec.remove("poolRef");
    }
    scene.create(crate::api::CLAIMS, &claim).map(drop)
}

pub fn a_selector_takes_from_the_pool_with_the_most(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&labelled("few", 1))?;
    scene.create_pool(&labelled("many", 5))?;
    scene.create_pool(&pool("other", 9, &json!({})))?;
    settle(scene, 60)?;
    roaming(scene, "run", &json!({}))?;
    let run = bound(scene, "run")?;
    wait::ensure(run["status"]["pool"] == "many", || run["status"].to_string())?;
    settle(scene, 60)
}

pub fn a_selector_moves_to_the_pool_that_can_serve_first(scene: &Scene) -> Result<(), String> {
    let mut held = labelled("a-held", 1);
    held["spec"]["template"]["metadata"]["annotations"] = json!({"sim.warmpool.dev/hold": "true"});
    scene.create_pool(&held)?;
    roaming(scene, "run", &json!({}))?;
    super::says(scene, "run", "Bound", "NoneAvailable")?;
    scene.create_pool(&labelled("b-works", 1))?;
    let run = bound(scene, "run")?;
    wait::ensure(run["status"]["pool"] == "b-works", || run["status"].to_string())?;
    scene.patch_pool("a-held", &json!({"spec": {"replicas": 0}}))?;
    settle(scene, 60)
}

pub fn a_selector_that_fits_no_pool_says_so_until_one_comes(scene: &Scene) -> Result<(), String> {
    roaming(scene, "run", &json!({}))?;
    let why = super::says(scene, "run", "Bound", "PoolNotFound")?;
    wait::ensure(why.contains("lang=python"), || why.clone())?;
    scene.create_pool(&labelled("python", 1))?;
    bound(scene, "run")?;
    settle(scene, 60)
}

pub fn what_a_pool_says_for_its_claims_holds_where_they_say_nothing(scene: &Scene) -> Result<(), String> {
    let metadata = json!({"labels": {"team": "red"}, "annotations": {"example.com/from": "pool"}});
    let defaults = json!({"claimDefaults": {"onEmpty": "Fail", "podMetadata": metadata}});
    scene.create_pool(&pool("python", 1, &defaults))?;
    settle(scene, 60)?;
    let own = json!({"podMetadata": {"labels": {"team": "blue"}}});
    scene.create_claim("first", "python", &own)?;
    let first = bound(scene, "first")?;
    let pod = scene.pod(text(&first, "/status/sandboxes/0/name"))?;
    let metadata = &pod["metadata"];
    let merged =
        metadata["labels"]["team"] == "blue" && metadata["annotations"]["example.com/from"] == "pool";
    wait::ensure(merged, || metadata.to_string())?;
    scene.patch_pool("python", &json!({"spec": {"replicas": 0}}))?;
    settle(scene, 60)?;
    scene.create_claim("second", "python", &json!({}))?;
    super::in_phase(scene, "second", "Failed", 30)?;
    scene.create_claim("third", "python", &json!({"onEmpty": "Create"}))?;
    bound(scene, "third").map(drop)
}

pub fn a_batch_given_up_leaves_nothing_behind(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 2, &json!({"capacity": {"maxWarm": 3}})))?;
    settle(scene, 60)?;
    let batch = json!({"replicas": 3, "onEmpty": "Wait", "waitTimeoutSeconds": 3});
    scene.create_claim("batch", "python", &batch)?;
    super::in_phase(scene, "batch", "Failed", 30)?;
    settle(scene, 60)?;
    let none = |pod: &&Value| label(pod, "claim") == "batch";
    let pods = scene.pods()?;
    wait::ensure(pods.iter().find(none).is_none(), || {
        "the batch holds a pod".into()
    })
}
