//! Checks `warmpool plan` on claims that end or lose sandboxes.

use super::{CLAIM, POOL, actions, plan, pod, stream};
use serde_json::Value;

/// A claim whose status lists the sandbox `held`. `spec` and `status` are further fields.
fn claim_with(spec: &str, status: &str) -> String {
    let claim = CLAIM.replace(
        "{poolRef: {name: python}}",
        &format!("{{poolRef: {{name: python}}, {spec}}}"),
    );
    format!(
        "{claim}status:
  {{pool: python, waitSeconds: 0.1, {status}, sandboxes: [
    {{name: held, uid: uid-held, revision: oldrevision, boundTime: '2026-01-31T11:59:59Z'}}]}}
"
    )
}

fn held() -> String {
    pod("held", "claimed", "SandboxClaim, name: run-42, uid: claim-uid")
}

/// Action, pod and reason of each action for the claim.
fn claim_actions(plan: &Value) -> Vec<String> {
    actions(plan)
        .iter()
        .filter(|a| a["claim"] == "run-42")
        .map(|a| {
            let pod = a["pod"].as_str().unwrap_or("-");
            format!(
                "{} {pod} {}",
                a["action"].as_str().unwrap(),
                a["reason"].as_str().unwrap()
            )
        })
        .collect()
}

#[test]
fn an_ending_claim_shows_each_released_sandbox_and_the_reason() {
    let failed = held().replace("phase: Running", "phase: Failed");
    let expires = "phase: Bound, boundTime: '2026-01-31T11:59:57Z', defaults: {lifetimeSeconds: 2}";
    let lives = expires.replace(":57Z", ":58Z");
    for (spec, status, pod, expected) in [
        ("", "phase: Bound", held(), vec![]),
        (
            "",
            "phase: Bound",
            failed.clone(),
            vec!["FailClaim - SandboxLost"],
        ),
        ("", "phase: Bound", String::new(), vec!["FailClaim - SandboxLost"]),
        ("onSandboxLost: Replace", "phase: Bound", failed, vec![]),
        ("", expires, held(), vec!["ReleaseClaim held ClaimExpired"]),
        ("", &lives, held(), vec![]),
        ("releasePolicy: Retain", expires, held(), vec![]),
        (
            "",
            "phase: Expired",
            held(),
            vec!["ReleaseClaim held ClaimExpired"],
        ),
    ] {
        let claim = claim_with(spec, status);
        let planned = claim_actions(&plan(&stream(&[POOL, &claim, &pod])));
        assert_eq!(planned, expected, "{spec} {status}");
    }
    let second = held().replace("held", "second");
    let plan = plan(&stream(&[
        POOL,
        &claim_with("", "phase: Bound"),
        &held(),
        &second,
    ]));
    assert_eq!(claim_actions(&plan), ["ReleaseClaim second NotPublished"]);
}

#[test]
fn a_waiting_claim_that_loses_another_sandbox_is_not_half_bound() {
    let claim = claim_with("replicas: 2, onSandboxLost: Replace", "phase: Pending");
    let gone = "{name: gone, uid: uid-gone, revision: oldrevision, boundTime: '2026-01-31T11:59:59Z'}";
    let claim = claim.replace("sandboxes: [", &format!("sandboxes: [{gone}, "));
    let planned = claim_actions(&plan(&stream(&[POOL, &claim, &held()])));
    assert!(planned.is_empty(), "{planned:?}");
}

#[test]
fn a_claim_on_a_pool_that_is_being_deleted_fails_at_once() {
    let pool = POOL.replace(
        "{name: python",
        "{deletionTimestamp: '2026-01-31T11:00:00Z', name: python",
    );
    let claim = CLAIM.replace("{name: python}}", "{name: python}, onEmpty: Fail}");
    let planned = claim_actions(&plan(&stream(&[&pool, &claim])));
    assert_eq!(planned, ["FailClaim - PoolNotFound"]);
}
