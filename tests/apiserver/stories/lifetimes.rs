//! Checks when claims expire, and what happens to their sandboxes.

use super::{bound, entered, in_phase, lasted, late_in_a_second};
use crate::api::CLAIMS;
use crate::check::event::{Change, Kind, items, text};
use crate::cluster_state::{ClusterState, label, wait_until_at_rest};
use crate::objects::pool;
use crate::scene::Scene;
use crate::wait;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

fn claimed(scene: &Scene) -> Result<usize, String> {
    Ok(ClusterState::read(scene)?.claimed("python").len())
}

fn full(scene: &Scene, replicas: i64) -> Result<(), String> {
    scene.create_pool(&pool("python", replicas, &json!({})))?;
    wait_until_at_rest(scene, 60)
}

/// Waits until the claim has entered a phase, which it may have left again.
fn has_been(scene: &Scene, claim: &str, phase: &str) -> Result<(), String> {
    wait::until(&format!("claim {claim} had been {phase}"), 30, || {
        let at = entered(&scene.history(), claim, phase);
        at.map(drop).ok_or_else(|| "it has not".into())
    })
}

fn patch(scene: &Scene, claim: &str, spec: &Value) -> Result<(), String> {
    let patch = json!({ "spec": spec }).to_string();
    let arguments = ["patch", "sandboxclaim", claim, "--type=merge", "-p", &patch];
    scene.kubectl(&arguments, None).map(drop)
}

pub fn a_claim_expires_and_its_sandbox_goes_unless_it_is_retained(scene: &Scene) -> Result<(), String> {
    full(scene, 2)?;
    late_in_a_second();
    scene.create_claim("short", "python", &json!({"lifetimeSeconds": 2}))?;
    let kept = json!({"lifetimeSeconds": 2, "releasePolicy": "Retain"});
    scene.create_claim("kept", "python", &kept)?;
    in_phase(scene, "short", "Expired", 30)?;
    in_phase(scene, "kept", "Expired", 30)?;
    let events = scene.history_up_to_now()?;
    for name in ["short", "kept"] {
        let bound = entered(&events, name, "Bound");
        lasted(scene, name, bound, entered(&events, name, "Expired"), 2.0)?;
    }
    wait::until("only the retained sandbox was left", 30, || {
        let left = claimed(scene)?;
        wait::ensure(left == 1, || format!("{left} are claimed"))
    })?;
    scene.delete_claim("kept")?;
    wait_until_at_rest(scene, 60)
}

pub fn the_lifetime_of_a_bound_claim_may_be_changed_and_nothing_else(scene: &Scene) -> Result<(), String> {
    full(scene, 1)?;
    scene.create_claim("run", "python", &json!({"lifetimeSeconds": 3600}))?;
    bound(scene, "run")?;
    patch(
        scene,
        "run",
        &json!({"lifetimeSeconds": null, "shutdownTime": "2100-01-01T00:00:00Z"}),
    )?;
    wait::until("the status told of the new end", 30, || {
        let claim = scene.claim("run")?;
        let end = text(&claim, "/status/expirationTime").to_string();
        wait::ensure(end.starts_with("2100"), || end.clone())
    })?;
    for forbidden in [
        json!({"priority": 3}),
        json!({"replicas": 2}),
        json!({"poolRef": {"name": "other"}}),
        json!({"onSandboxLost": "Replace"}),
    ] {
        let answer = scene
            .lab
            .api
            .merge(CLAIMS, &scene.namespace, "run", &json!({ "spec": forbidden }));
        let refused = answer.as_ref().err();
        let right = refused.is_some_and(|error| error.code == 422 && error.message.contains("immutable"));
        wait::ensure(right, || format!("{forbidden} was answered with {answer:?}"))?;
    }
    let soon = Timestamp::now() + SignedDuration::from_secs(2);
    patch(
        scene,
        "run",
        &json!({"shutdownTime": soon.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()}),
    )?;
    in_phase(scene, "run", "Expired", 30)?;
    wait_until_at_rest(scene, 60)
}

pub fn new_defaults_of_a_pool_touch_no_claim_that_was_bound(scene: &Scene) -> Result<(), String> {
    full(scene, 2)?;
    scene.create_claim("run", "python", &json!({}))?;
    let kept = bound(scene, "run")?["status"]["defaults"].clone();
    wait::ensure(kept == json!({}), || format!("{kept} is kept of nothing"))?;
    let defaults = json!({"lifetimeSeconds": 1, "ttlSecondsAfterFinished": 1});
    scene.patch_pool("python", &json!({"spec": {"claimDefaults": defaults}}))?;
    scene.create_claim("next", "python", &json!({}))?;
    has_been(scene, "next", "Expired")?;
    patch(scene, "run", &json!({"ttlSecondsAfterFinished": 600}))?;
    wait::until("only the claim of before was left", 30, || {
        let left = scene.claims()?.len();
        wait::ensure(left == 1, || format!("{left} claims are there"))
    })?;
    wait::throughout("it stays bound", 2, || {
        let status = scene.claim("run")?["status"].clone();
        wait::ensure(text(&status, "/phase") == "Bound", || status.to_string())
    })?;
    scene.delete_claim("run")?;
    wait_until_at_rest(scene, 60)
}

pub fn an_ended_claim_is_deleted_in_its_time(scene: &Scene) -> Result<(), String> {
    scene.create_pool(&pool("python", 0, &json!({})))?;
    let fails = json!({"onEmpty": "Fail", "ttlSecondsAfterFinished": 2});
    late_in_a_second();
    scene.create_claim("failed", "python", &fails)?;
    has_been(scene, "failed", "Failed")?;
    wait::until("the claim was gone", 30, || {
        let left = scene.claims()?;
        wait::ensure(left.is_empty(), || format!("{left:?}"))
    })?;
    let events = scene.history_up_to_now()?;
    let gone = events
        .iter()
        .find(|e| e.kind == Kind::Claim && e.change == Change::Deleted);
    lasted(
        scene,
        "its end",
        entered(&events, "failed", "Failed"),
        gone.map(|e| e.at),
        2.0,
    )
}

pub fn a_lost_sandbox_is_replaced_where_the_claim_asks_for_it(scene: &Scene) -> Result<(), String> {
    full(scene, 2)?;
    scene.create_claim(
        "run",
        "python",
        &json!({"replicas": 2, "onSandboxLost": "Replace"}),
    )?;
    let before = bound(scene, "run")?;
    let name =
        |claim: &Value, index: usize| text(claim, &format!("/status/sandboxes/{index}/name")).to_string();
    wait_until_at_rest(scene, 60)?;
    scene.kubectl(&["delete", "pod", &name(&before, 0), "--wait=false"], None)?;
    wait::until("another sandbox had taken its place", 30, || {
        let now = scene.claim("run")?;
        let names = [name(&now, 0), name(&now, 1)];
        let replaced = text(&now, "/status/phase") == "Bound" && !names.contains(&name(&before, 0));
        wait::ensure(replaced && names.contains(&name(&before, 1)), || {
            now["status"].to_string()
        })
    })?;
    wait_until_at_rest(scene, 60)
}

pub fn a_claim_whose_end_is_past_gets_nothing(scene: &Scene) -> Result<(), String> {
    full(scene, 1)?;
    let past = json!({"shutdownTime": "2020-01-01T00:00:00Z"});
    scene.create_claim("late", "python", &past)?;
    let late = in_phase(scene, "late", "Expired", 30)?;
    wait::ensure(items(&late, "/status/sandboxes").is_empty(), || {
        late["status"].to_string()
    })?;
    wait_until_at_rest(scene, 30)?;
    let taken = scene
        .history()
        .iter()
        .any(|e| label(&e.object, "claim") == "late");
    wait::ensure(!taken, || "it was given a sandbox".into())
}

/// A restart in the middle neither shortens a time nor lets it begin anew.
pub fn waiting_and_finished_claims_keep_their_time_over_a_restart(scene: &Scene) -> Result<(), String> {
    const SECONDS: i32 = 20;
    let operator = scene.lab.start_operator()?;
    scene.create_pool(&pool("python", 0, &json!({})))?;
    let waits = json!({"onEmpty": "Wait", "waitTimeoutSeconds": SECONDS});
    late_in_a_second();
    scene.create_claim("waits", "python", &waits)?;
    let ended = json!({"onEmpty": "Fail", "ttlSecondsAfterFinished": SECONDS});
    scene.create_claim("ended", "python", &ended)?;
    in_phase(scene, "ended", "Failed", 30)?;
    std::thread::sleep(std::time::Duration::from_secs(12));
    operator.kill()?;
    let operator = scene.lab.start_operator()?;
    in_phase(scene, "waits", "Failed", 30)?;
    wait::until("the claim that had ended was gone", 30, || {
        let left = scene.claims()?.len();
        wait::ensure(left == 1, || format!("{left} claims are there"))
    })?;
    let events = scene.history_up_to_now()?;
    let of = |name: &'static str| events.iter().filter(move |e| e.name() == name);
    let came = |name| of(name).next().map(|e| e.at);
    let failed = |name| entered(&events, name, "Failed");
    let gone = of("ended").next_back().map(|e| e.at);
    // A timer that starts again would take twelve seconds more.
    lasted(scene, "its wait", came("waits"), failed("waits"), SECONDS.into())?;
    lasted(scene, "its end", failed("ended"), gone, SECONDS.into())?;
    operator.stop()
}

/// An operator that was down at the expiration time expires the claim when it is back. A restart before that time
/// shortens nothing.
pub fn lifetimes_survive_a_restart_of_the_operator(scene: &Scene) -> Result<(), String> {
    let mut operator = scene.lab.start_operator()?;
    scene.create_pool(&pool("python", 2, &json!({})))?;
    wait_until_at_rest(scene, 60)?;
    scene.create_claim("long", "python", &json!({"lifetimeSeconds": 3600}))?;
    let end = |claim: &Value| text(claim, "/status/expirationTime").to_string();
    let long = end(&bound(scene, "long")?);
    // However slow the machine is, the operator is killed before it is over.
    scene.create_claim("short", "python", &json!({"lifetimeSeconds": 15}))?;
    let short = end(&bound(scene, "short")?);
    operator.kill()?;
    let over = short.parse::<Timestamp>().map_err(|e| format!("{short}: {e}"))?;
    wait::until("its lifetime was over", 60, || {
        wait::ensure(Timestamp::now() > over, || format!("it ends at {over}"))
    })?;
    let asleep = scene.claim("short")?;
    wait::ensure(text(&asleep, "/status/phase") == "Bound", || {
        asleep["status"].to_string()
    })?;
    operator = scene.lab.start_operator()?;
    in_phase(scene, "short", "Expired", 30)?;
    let now = end(&scene.claim("long")?);
    wait::ensure(now == long, || format!("{long} became {now}"))?;
    scene.create(CLAIMS, &crate::objects::claim("next", "python", &json!({})))?;
    bound(scene, "next")?;
    wait_until_at_rest(scene, 60)?;
    operator.stop()
}
