//! Checks that events report rollouts and errors of pools, and what befalls claims that were not served at once.

use super::{all_bound, bound, burst, in_phase, pool_says, says};
use crate::api::{Api, CLAIMS, EVENTS, QUOTAS};
use crate::check::event::text;
use crate::cluster_state::wait_until_at_rest;
use crate::objects::{NEW_IMAGE, pool, pool_of};
use crate::scene::Scene;
use crate::wait;
use jiff::Timestamp;
use serde_json::{Value, json};

/// The operator's events about pools, oldest first.
fn events(scene: &Scene) -> Result<Vec<Value>, String> {
    events_about(scene, "Pool")
}

/// The operator's events about a kind, oldest first.
fn events_about(scene: &Scene, kind: &str) -> Result<Vec<Value>, String> {
    events_in(&scene.lab.api, &scene.namespace, kind)
}

fn events_in(api: &Api, namespace: &str, kind: &str) -> Result<Vec<Value>, String> {
    let mut all = api.list(EVENTS, namespace)?;
    all.retain(|event| event["reportingController"] == "warmpool" && event["regarding"]["kind"] == kind);
    all.sort_by_key(|event| text(event, "/eventTime").to_string());
    Ok(all)
}

/// Waits until events with exactly these reasons exist, in this order.
pub(super) fn wait_for_events(scene: &Scene, reasons: &[&str]) -> Result<Vec<Value>, String> {
    wait_for_events_in(&scene.lab.api, &scene.namespace, reasons)
}

/// The same in any namespace.
pub(super) fn wait_for_events_in(api: &Api, namespace: &str, reasons: &[&str]) -> Result<Vec<Value>, String> {
    wait::until(&format!("{reasons:?} were told"), 30, || {
        let all = events_in(api, namespace, "Pool")?;
        let now: Vec<&str> = all.iter().map(|event| text(event, "/reason")).collect();
        wait::ensure(now == reasons, || format!("{now:?}"))?;
        Ok(all)
    })
}

fn is_about_the_pool(scene: &Scene, event: &Value) -> Result<(), String> {
    let pool = scene.pool("python")?;
    let about = &event["regarding"];
    let right = about["kind"] == "Pool"
        && about["name"] == "python"
        && about["uid"] == pool["metadata"]["uid"]
        && !text(event, "/action").is_empty();
    wait::ensure(right, || event.to_string())
}

pub fn a_rollout_is_told_in_events_and_nothing_else_is(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 6, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    let mut reasons = vec!["NewRevision", "RolloutComplete"];
    wait_for_events(scene, &reasons)?;
    all_bound(scene, &burst(scene, "run", 4, "python", &json!({}))?)?;
    wait_until_at_rest(scene, 60)?;
    scene.roll_to("python", NEW_IMAGE)?;
    wait_until_at_rest(scene, 60)?;
    reasons.extend(["NewRevision", "RolloutComplete"]);
    wait_for_events(scene, &reasons)?;
    let pause = |paused: bool| json!({"spec": {"updateStrategy": {"paused": paused}}});
    scene.patch_pool("python", &pause(true))?;
    scene.roll_to("python", "sandbox:3")?;
    reasons.extend(["NewRevision", "Paused"]);
    wait_for_events(scene, &reasons)?;
    scene.patch_pool("python", &pause(false))?;
    wait_until_at_rest(scene, 60)?;
    reasons.extend(["Resumed", "RolloutComplete"]);
    let all = wait_for_events(scene, &reasons)?;
    wait::throughout("nothing more is told", 4, || {
        let now = events(scene)?;
        wait::ensure(now == all, || format!("{now:?}"))?;
        let of_claims = events_about(scene, "SandboxClaim")?;
        wait::ensure(of_claims.is_empty(), || format!("served at once: {of_claims:?}"))
    })?;
    for event in &all {
        is_about_the_pool(scene, event)?;
        wait::ensure(event["type"] == "Normal", || event.to_string())?;
    }
    let revision = text(&scene.pool("python")?, "/status/updateRevision").to_string();
    let note = |at: usize| text(&all[at], "/note").to_string();
    wait::ensure(note(6).contains(&revision) && note(7).contains(&revision), || {
        format!("not of revision {revision}: {} and {}", note(6), note(7))
    })?;
    for shown in [
        scene.kubectl(&["events", "--for", "pool/python"], None)?,
        scene.kubectl(&["describe", "pool", "python"], None)?,
    ] {
        let missing = reasons.iter().find(|reason| !shown.contains(**reason));
        wait::ensure(missing.is_none() && shown.contains(&note(7)), || {
            format!("{missing:?} is missing in:\n{shown}")
        })?;
    }
    Ok(())
}

pub fn what_stops_a_pool_is_told_in_a_warning(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool_of("shared", "python", 2, &json!({})))?;
    pool_says(scene, "python", "Progressing", "TemplateNotFound")?;
    wait_for_events(scene, &["TemplateNotFound"])?;
    scene.create_pod_quota(0)?;
    let shared = crate::objects::template("shared", &json!({}));
    scene.create(crate::api::TEMPLATES, &shared)?;
    let all = wait_for_events(scene, &["TemplateNotFound", "NewRevision", "FailedCreate"])?;
    for (event, type_, words) in [
        (&all[0], "Warning", "PodTemplate shared does not exist"),
        (&all[1], "Normal", "rolling out revision"),
        (&all[2], "Warning", "exceeded quota: narrow"),
    ] {
        is_about_the_pool(scene, event)?;
        let right = event["type"] == type_ && text(event, "/note").contains(words);
        wait::ensure(right, || event.to_string())?;
    }
    scene.lab.api.delete(QUOTAS, &scene.namespace, "narrow")?;
    wait_until_at_rest(scene, 90)
}

pub fn a_pool_exhausted_by_one_claim_after_another_does_not_say_so_for_each(
    scene: &Scene,
) -> Result<(), String> {
    scene.create_pool(&pool("python", 1, &json!({"capacity": {"maxTotal": 1}})))?;
    wait_until_at_rest(scene, 60)?;
    let began = Timestamp::now();
    scene.create_claim("first", "python", &json!({}))?;
    bound(scene, "first")?;
    let mut holder = "first".to_string();
    for n in 0..4 {
        let next = format!("next-{n}");
        scene.create_claim(&next, "python", &json!({}))?;
        says(scene, &next, "Bound", "Exhausted")?;
        pool_says(scene, "python", "Exhausted", "MaxTotalReached")?;
        scene.delete_claim(&holder)?;
        bound(scene, &next)?;
        wait::until("the pool was exhausted no more", 30, || {
            let pool = scene.pool("python")?;
            let said = crate::check::event::condition(&pool, "Exhausted");
            said.map_or(Ok(()), |c| Err(c.to_string()))
        })?;
        holder = next;
    }
    let all = wait_for_events(scene, &["NewRevision", "RolloutComplete", "Exhausted"])?;
    let exhausted = &all[2];
    let times = exhausted["series"]["count"].as_i64().unwrap_or(1);
    let minutes = Timestamp::now().duration_since(began).as_secs() / 60;
    // One warning a minute.
    wait::ensure(times <= 1 + minutes && exhausted["type"] == "Warning", || {
        format!("after {minutes} minutes: {exhausted}")
    })?;
    scene.delete_claim(&holder)?;
    wait_until_at_rest(scene, 60)
}

/// The reasons of the events of a claim, in their order.
fn reasons(scene: &Scene, claim: &str) -> Result<Vec<String>, String> {
    let all = events_about(scene, "SandboxClaim")?;
    let of_claim = all.iter().filter(|event| event["regarding"]["name"] == claim);
    Ok(of_claim.map(|event| text(event, "/reason").to_string()).collect())
}

/// Waits until events of the claim with exactly these reasons exist, in this order.
fn wait_for_reasons(scene: &Scene, claim: &str, expected: &[&str]) -> Result<(), String> {
    wait::until(&format!("{expected:?} were told of {claim}"), 30, || {
        let now = reasons(scene, claim)?;
        wait::ensure(now == expected, || format!("{now:?}"))
    })
}

pub fn what_befalls_a_claim_is_told_once(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 0, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    let fields = json!({"onEmpty": "Wait", "onSandboxLost": "Replace"});
    scene.create_claim("run", "python", &fields)?;
    says(scene, "run", "Bound", "NoneAvailable")?;
    scene.patch_pool("python", &json!({"spec": {"replicas": 1}}))?;
    let (pod, _) = super::sandbox(&bound(scene, "run")?);
    scene.lab.api.delete(crate::api::PODS, &scene.namespace, &pod)?;
    let mut of_run = vec!["Waiting", "Bound", "SandboxLost", "Replaced"];
    wait_for_reasons(scene, "run", &of_run)?;
    let lifetime = json!({"spec": {"lifetimeSeconds": 1}});
    scene.lab.api.merge(CLAIMS, &scene.namespace, "run", &lifetime)?;
    in_phase(scene, "run", "Expired", 60)?;
    of_run.push("Expired");
    scene.create_claim("hasty", "python", &json!({"onEmpty": "Fail", "replicas": 9}))?;
    in_phase(scene, "hasty", "Failed", 30)?;
    wait_for_reasons(scene, "run", &of_run)?;
    wait_for_reasons(scene, "hasty", &["Failed"])?;
    let shown = scene.kubectl(&["describe", "sandboxclaim", "hasty"], None)?;
    wait::ensure(shown.contains("PoolEmpty: "), || shown)?;
    wait_until_at_rest(scene, 60)
}

pub fn a_claim_bound_at_once_is_told_only_where_that_is_asked_for(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 2, &json!({})))?;
    for (which, of_bound, of_failed) in [
        ("notable", &[][..], &["Failed"][..]),
        ("all", &["Bound"], &["Failed"]),
        ("none", &[], &[]),
    ] {
        let flag = format!("--claim-events={which}");
        let operator = scene.lab.start_operator_with(&["--leader-elect=false", &flag])?;
        wait_until_at_rest(scene, 60)?;
        let (served, hasty) = (format!("served-{which}"), format!("hasty-{which}"));
        scene.create_claim(&served, "python", &json!({}))?;
        bound(scene, &served)?;
        // Events are written in their order, so after one about a later claim none is to come about an earlier one.
        scene.create_claim(&hasty, "python", &json!({"onEmpty": "Fail", "replicas": 9}))?;
        in_phase(scene, &hasty, "Failed", 30)?;
        wait::until("the failed claim was told of", 30, || {
            let now = reasons(scene, &hasty)?;
            wait::ensure(now == of_failed, || format!("{which}: {now:?}"))
        })?;
        wait_until_at_rest(scene, 60)?;
        // It writes what is left before it ends.
        operator.stop()?;
        for (claim, expected) in [(&served, of_bound), (&hasty, of_failed)] {
            let now = reasons(scene, claim)?;
            wait::ensure(now == expected, || format!("{claim}: {now:?}"))?;
        }
    }
    Ok(())
}
