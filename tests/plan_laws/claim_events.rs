//! Checks which changes of a claim's status emit events.

use serde_json::{Value, json};
use warmpool::api::SandboxClaimStatus;
use warmpool::model::claim::Claim;
use warmpool::model::stored::StoredClaim;
use warmpool::telemetry::events::claims::{ClaimEvents, transitions};

const NONE: &str = "no sandbox is available yet";
const LOST: &str = "sandbox a is gone";

/// A status with the condition Bound and the sandboxes with these names. `waited`: the claim was bound at least once.
fn status(phase: &str, reason: &str, message: &str, sandboxes: &[&str], waited: bool) -> Value {
    let time = "2026-01-31T12:00:00Z";
    let sandboxes: Vec<_> = sandboxes
        .iter()
        .map(|name| json!({"name": name, "uid": name, "boundTime": time}))
        .collect();
    let bound = if phase == "Bound" { "True" } else { "False" };
    let mut status = json!({
        "phase": phase, "pool": "python", "sandboxes": sandboxes, "wait": "3.4s",
        "conditions": [{
            "type": "Bound", "status": bound, "reason": reason, "message": message, "lastTransitionTime": time,
        }],
    });
    if waited {
        status["waitSeconds"] = json!(3.4);
    }
    status
}

fn waiting() -> Value {
    status("Pending", "NoneAvailable", NONE, &[], false)
}

fn bound(sandbox: &str) -> Value {
    status("Bound", "Bound", "", &[sandbox], true)
}

fn replacing() -> Value {
    status("Pending", "SandboxLost", LOST, &[], true)
}

/// Events as short lines: `Normal Waiting Bind -: why`.
fn lines(before: &Value, after: &Value, which: ClaimEvents) -> Vec<String> {
    let stored: StoredClaim = serde_json::from_value(json!({
        "metadata": {"namespace": "default", "name": "run", "uid": "run"},
        "spec": {"poolRef": {"name": "python"}},
        "status": before,
    }))
    .unwrap();
    let claim = Claim::read(&stored, 1, "2026-01-31T12:00:00Z".parse().unwrap());
    let after: SandboxClaimStatus = serde_json::from_value(after.clone()).unwrap();
    let events = transitions(&claim, &after, which);
    let line = |e: &kube::runtime::events::Event| {
        let about = e.secondary.as_ref().map_or("-", |s| s.name.as_deref().unwrap());
        let note = e.note.as_deref().unwrap_or_default();
        format!("{:?} {} {} {about}: {note}", e.type_, e.reason, e.action)
    };
    events.iter().map(line).collect()
}

#[test]
fn each_change_of_a_claim_emits_its_own_event_once() {
    let failed = |reason, message| status("Failed", reason, message, &[], true);
    let rows: [(Value, Value, &[&str]); 12] = [
        (
            json!({}),
            waiting(),
            &["Normal Waiting Bind -: NoneAvailable: no sandbox is available yet"],
        ),
        (waiting(), status("Pending", "Exhausted", "full", &[], false), &[]),
        (
            waiting(),
            bound("a"),
            &["Normal Bound Bind a: bound to sandbox a of pool python after 3.4s"],
        ),
        (json!({}), bound("a"), &[]),
        (bound("a"), bound("a"), &[]),
        (
            bound("a"),
            replacing(),
            &["Warning SandboxLost Bind -: sandbox a is gone"],
        ),
        (replacing(), replacing(), &[]),
        (
            replacing(),
            bound("b"),
            &["Normal Replaced Bind b: sandbox b of pool python replaces what was lost"],
        ),
        (
            bound("a"),
            failed("SandboxLost", LOST),
            &[
                "Warning SandboxLost Bind -: sandbox a is gone",
                "Warning Failed End -: SandboxLost: sandbox a is gone",
            ],
        ),
        (
            waiting(),
            failed("WaitTimeout", "too late"),
            &["Warning Failed End -: WaitTimeout: too late"],
        ),
        (
            failed("WaitTimeout", "too late"),
            failed("WaitTimeout", "too late"),
            &[],
        ),
        (
            bound("a"),
            status("Expired", "Expired", "the lifetime ended", &["a"], true),
            &["Normal Expired End -: the lifetime ended"],
        ),
    ];
    for (before, after, expected) in rows {
        assert_eq!(
            lines(&before, &after, ClaimEvents::Notable),
            expected,
            "{before} to {after}"
        );
        assert!(lines(&before, &after, ClaimEvents::None).is_empty());
    }
}

#[test]
fn a_claim_that_was_served_at_once_gets_an_event_only_where_all_do() {
    assert_eq!(
        lines(&json!({}), &bound("a"), ClaimEvents::All),
        ["Normal Bound Bind a: bound to sandbox a of pool python after 3.4s"]
    );
}

#[test]
fn the_event_of_a_claim_for_several_names_one_and_counts_the_others() {
    let several = status("Bound", "Bound", "", &["a", "b", "c"], true);
    let events = lines(&waiting(), &several, ClaimEvents::Notable);
    assert_eq!(
        events,
        ["Normal Bound Bind a: bound to sandbox a and 2 more of pool python after 3.4s"]
    );
    let kept = status("Pending", "SandboxLost", LOST, &["b", "c"], true);
    let again = status("Bound", "Bound", "", &["b", "c", "d"], true);
    let events = lines(&kept, &again, ClaimEvents::Notable);
    assert_eq!(
        events,
        ["Normal Replaced Bind d: sandbox d of pool python replaces what was lost"]
    );
}
