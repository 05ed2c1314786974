//! Checks rule I2 on how claims end.

use crate::check::Rules;
use crate::check::event::{Change, Kind};
use crate::history::{History, Pod, bound_once, claim, text};
use jiff::SignedDuration;
use serde_json::{Value, json};

fn ended(phase: &str) -> Value {
    json!({"phase": phase, "sandboxes": [{"name": "w1", "uid": "uid-w1"}]})
}

#[test]
fn a_claim_that_fails_while_all_its_sandboxes_exist_is_accused() {
    let w1 = Pod::warm("w1").held_by("a");
    let after = |pod: &Pod| bound_once().pod(pod).claim("a", ended("Failed"));
    after(&w1).is_guilty("I2", "became Failed with all its sandboxes there");
    after(&w1.unready()).is_guilty("I2", "became Failed");
    let succeeded = Pod {
        phase: "Succeeded",
        ..w1.clone()
    };
    after(&succeeded).is_guilty("I2", "became Failed");
    let failed = Pod {
        phase: "Failed",
        ..w1.clone()
    };
    after(&failed).is_innocent();
    // A claim that never had a sandbox may fail at any time.
    let waited = History::default().pool(1, json!({})).new_claim("a", 0);
    waited.claim("a", json!({"phase": "Failed"})).is_innocent();
}

#[test]
fn a_claim_that_fails_without_its_sandbox_is_innocent() {
    let w1 = Pod::warm("w1").held_by("a");
    let lost = Rules {
        deleted_by_others: ["uid-w1".to_string()].into(),
        ..Rules::default()
    };
    for history in [
        bound_once().pod(&w1.terminating()),
        bound_once().no_pod(&w1),
        bound_once().pod(&w1.terminating()).no_pod(&w1.terminating()),
    ] {
        let verdict = history.claim("a", ended("Failed")).judged_by(&lost);
        assert!(verdict.accusations.is_empty(), "{}", text(&verdict));
    }
}

/// A claim with `spec`, bound on a pool with `defaults`, that expires `after_ms` later.
fn expired(defaults: &Value, spec: &Value, after_ms: i64) -> History {
    let written = |status: Value| {
        let mut object = claim("a", 0, status);
        for (field, value) in spec.as_object().into_iter().flatten() {
            object["spec"][field] = value.clone();
        }
        object
    };
    let w1 = Pod::warm("w1");
    let bound = History::default()
        .pool(1, json!({ "claimDefaults": defaults }))
        .pod(&w1)
        .write(Change::Added, Kind::Claim, written(json!({})))
        .pod(&w1.held_by("a"))
        .write(Change::Modified, Kind::Claim, written(ended("Bound")));
    bound
        .later(after_ms)
        .write(Change::Modified, Kind::Claim, written(ended("Expired")))
}

#[test]
fn a_claim_that_expires_before_its_lifetime_is_over_is_accused() {
    let (none, ten) = (json!({}), json!({"lifetimeSeconds": 10}));
    expired(&none, &none, 60_000).is_guilty("I2", "became Expired and has no time to live");
    expired(&none, &ten, 8900).is_guilty("I2", "became Expired before");
    expired(&none, &ten, 10_000).is_innocent();
    expired(&ten, &none, 5000).is_guilty("I2", "became Expired before");
    expired(&ten, &none, 10_000).is_innocent();
    // The claim's spec overrides the default.
    expired(&ten, &json!({"lifetimeSeconds": 60}), 10_000).is_guilty("I2", "became Expired before");
}

#[test]
fn a_claim_that_expires_before_its_shutdown_time_is_accused() {
    let at = json!({"shutdownTime": "1970-01-01T00:00:20Z"});
    let early = expired(&json!({}), &at, 19_000);
    early.is_guilty("I2", "became Expired before 1970-01-01T00:00:20Z");
    expired(&json!({}), &at, 20_000).is_innocent();
    // The operator's clock may be two seconds ahead.
    let rules = Rules {
        clock: SignedDuration::from_secs(2),
        ..Rules::default()
    };
    assert!(early.judged_by(&rules).accusations.is_empty());
    // The rule also holds for a claim that was never bound.
    History::default()
        .pool(1, json!({}))
        .new_claim("a", 0)
        .claim("a", json!({"phase": "Expired"}))
        .is_guilty("I2", "has no time to live");
}

#[test]
fn an_expired_claim_keeps_the_sandboxes_that_it_retains() {
    let removed = |policy: &str| {
        let w1 = Pod::warm("w1").held_by("a");
        expired(
            &json!({}),
            &json!({"lifetimeSeconds": 1, "releasePolicy": policy}),
            5000,
        )
        .pod(&w1.terminating())
    };
    removed("Delete").is_innocent();
    removed("Retain").is_guilty("I2", "was deleted while claim a has it");
}
