//! Checks that pools replace sandboxes that fail or are deleted.

use super::{all_bound, bound, burst};
use crate::api::{NAMESPACES, PODS, POOLS};
use crate::check::event::text;
use crate::cluster_state::{ClusterState, wait_until_at_rest};
use crate::objects::{claim, pool};
use crate::scene::{Scene, make_namespace};
use crate::wait;
use crate::{api::CLAIMS, cluster::OPERATOR};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Names of the first unclaimed sandboxes.
fn some_warm(scene: &Scene, count: usize) -> Result<Vec<String>, String> {
    let state = ClusterState::read(scene)?;
    let all = state
        .unclaimed("python")
        .into_iter()
        .map(|p| text(p, "/metadata/name").to_string());
    Ok(all.take(count).collect())
}

fn gone_and_replaced(scene: &Scene, victims: &[String]) -> Result<(), String> {
    wait::until(&format!("{victims:?} were gone"), 30, || {
        let pods = scene.pods()?;
        let left = pods
            .iter()
            .find(|p| victims.iter().any(|v| v == text(p, "/metadata/name")));
        left.map_or(Ok(()), |p| {
            Err(format!(
                "{} is still there: {}",
                p["metadata"]["name"], p["status"]["phase"]
            ))
        })
    })?;
    wait_until_at_rest(scene, 30)
}

fn ended_by(scene: &Scene, annotation: &str) -> Result<(), String> {
    scene.create_pool(&pool("python", 6, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    let victims = some_warm(scene, 3)?;
    for victim in &victims {
        let patch = json!({"metadata": {"annotations": {format!("sim.warmpool.dev/{annotation}"): "0s"}}});
        scene.lab.api.merge(PODS, &scene.namespace, victim, &patch)?;
    }
    gone_and_replaced(scene, &victims)
}

pub fn failed_sandboxes_are_replaced(scene: &Scene) -> Result<(), String> {
    ended_by(scene, "fail-after")
}

pub fn finished_sandboxes_are_replaced(scene: &Scene) -> Result<(), String> {
    ended_by(scene, "finish-after")
}

pub fn sandboxes_deleted_by_hand_are_replaced(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 6, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    let victims = some_warm(scene, 3)?;
    let arguments: Vec<&str> = ["delete", "pod"]
        .into_iter()
        .chain(victims.iter().map(String::as_str))
        .collect();
    scene.kubectl(&arguments, None)?;
    gone_and_replaced(scene, &victims)
}

pub fn sandboxes_evicted_by_the_api_are_replaced(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 4, &json!({})))?;
    wait_until_at_rest(scene, 30)?;
    let victims = some_warm(scene, 1)?;
    for victim in &victims {
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": victim}});
        let path = format!("/api/v1/namespaces/{}/pods/{victim}/eviction", scene.namespace);
        scene.kubectl(
            &["create", "--raw", &path, "-f", "-"],
            Some(&eviction.to_string()),
        )?;
    }
    gone_and_replaced(scene, &victims)
}

pub fn an_unready_sandbox_is_not_handed_out_and_comes_back(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 2, &json!({"capacity": {"maxTotal": 2}})))?;
    wait_until_at_rest(scene, 30)?;
    let [shaky] = some_warm(scene, 1)?.try_into().map_err(|v| format!("{v:?}"))?;
    let steer = |value: &str| {
        let patch = json!({"metadata": {"annotations": {"sim.warmpool.dev/unready": value}}});
        scene
            .lab
            .api
            .merge(PODS, &scene.namespace, &shaky, &patch)
            .map(drop)
    };
    steer("true")?;
    wait::until("the pool counted one available", 30, || {
        let status = scene.pool("python")?["status"].clone();
        wait::ensure(status["available"] == 1 && status["ready"] == 1, || {
            status.to_string()
        })
    })?;
    scene.create_claim("first", "python", &json!({}))?;
    let taken = super::sandbox(&bound(scene, "first")?).0;
    wait::ensure(taken != shaky, || format!("{shaky} was handed out while unready"))?;
    scene.create_claim("second", "python", &json!({}))?;
    super::says(scene, "second", "Bound", "Exhausted")?;
    steer("false")?;
    bound(scene, "second")?;
    scene.delete_claim("first")?;
    scene.delete_claim("second")?;
    wait_until_at_rest(scene, 30)
}

pub fn a_namespace_deleted_under_it_hurts_no_other(scene: &Scene) -> Result<(), String> {
    let (api, doomed) = (&scene.lab.api, "doomed");
    make_namespace(scene.lab, doomed)?;
    scene.create_pool(&pool("python", 3, &json!({})))?;
    api.create(POOLS, doomed, &pool("python", 5, &json!({})))?;
    for name in ["one", "two", "three"] {
        api.create(CLAIMS, doomed, &claim(name, "python", &json!({})))?;
    }
    wait::until("the claims in the doomed namespace were bound", 30, || {
        let all: Vec<Value> = api.list(CLAIMS, doomed)?;
        let bound = all.iter().filter(|c| text(c, "/status/phase") == "Bound").count();
        wait::ensure(bound == 3, || format!("{bound} of 3"))
    })?;
    wait_until_at_rest(scene, 30)?;
    let since = Timestamp::now();
    api.delete(NAMESPACES, "", doomed)?;
    let claims = burst(scene, "run", 5, "python", &json!({}))?;
    all_bound(scene, &claims)?;
    wait::until("the namespace was gone", 60, || {
        let left = api.get(NAMESPACES, "", doomed)?;
        left.map_or(Ok(()), |n| Err(n["status"].to_string()))
    })?;
    // While it goes the server refuses new pods in it. That is no reason to try and try.
    let audit = scene.lab.cluster.audit(doomed)?;
    let refused = audit
        .iter()
        .filter(|w| w.user == OPERATOR && w.at > since && w.verb == "create" && w.code >= 400);
    wait::ensure(refused.clone().count() <= 20, || {
        format!("{} creations were refused", refused.count())
    })?;
    wait_until_at_rest(scene, 30)
}
