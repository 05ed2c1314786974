//! Checks the rules on claims for several sandboxes.

use crate::check::event::{Change, Kind};
use crate::history::{History, Pod, claim};
use serde_json::{Value, json};

fn claim_with_spec(name: &str, spec: &Value) -> Value {
    let mut object = claim(name, 0, json!({}));
    for (field, value) in spec.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

fn claim_with_status(name: &str, spec: &Value, phase: &str, sandboxes: &[&str]) -> Value {
    let sandboxes: Vec<_> = sandboxes
        .iter()
        .map(|pod| json!({"name": pod, "uid": format!("uid-{pod}")}))
        .collect();
    let mut object = claim_with_spec(name, spec);
    object["status"] = json!({"phase": phase, "sandboxes": sandboxes});
    object
}

/// Claim `a` for `replicas` sandboxes.
fn batch(replicas: u32) -> Value {
    claim_with_spec("a", &json!({"replicas": replicas}))
}

/// A pool with three available sandboxes, and claim `a` that waits for `replicas`.
fn waiting_batch(pool: Value, replicas: u32) -> History {
    History::default()
        .pool(3, pool)
        .warm(3)
        .write(Change::Added, Kind::Claim, batch(replicas))
}

fn spec_of_two() -> Value {
    json!({"replicas": 2})
}

/// A pool of three available sandboxes, and claim `a` for two that holds `count` of them.
fn holding(count: usize) -> History {
    let mut history = History::default().pool(3, json!({})).warm(3).write(
        Change::Added,
        Kind::Claim,
        claim_with_spec("a", &spec_of_two()),
    );
    for number in 1..=count {
        history = history.pod(&Pod::warm(&format!("w{number}")).held_by("a"));
    }
    history
}

fn with_status(history: History, phase: &str, sandboxes: &[&str]) -> History {
    let claim = claim_with_status("a", &spec_of_two(), phase, sandboxes);
    history.write(Change::Modified, Kind::Claim, claim)
}

#[test]
fn a_batch_that_holds_more_than_its_replicas_is_accused() {
    with_status(holding(2), "Bound", &["w1", "w2"]).is_innocent();
    holding(3).is_guilty("I1", "a claim for 2 holds 3 pods");
}

#[test]
fn a_batch_that_is_bound_to_fewer_is_accused() {
    with_status(holding(2), "Bound", &["w1"]).is_guilty("I1", "Bound to 1 of 2");
}

#[test]
fn a_younger_claim_that_passes_an_older_batch_is_accused() {
    let passed = |wanted: u32| {
        waiting_batch(json!({"capacity": {"maxTotal": 9}}), wanted)
            .later(3_000)
            .new_claim("b", 0)
            .pod(&Pod::warm("w1").held_by("b"))
            .bound("b", "w1")
            .later(3_000)
            .pod(&Pod::pending("w9"))
    };
    passed(5).is_guilty("I7", "which goes first, waited");
    // A claim that the pool can never serve delays no other.
    passed(10).is_innocent();
}

#[test]
fn a_batch_that_waits_beside_too_few_is_no_breach() {
    waiting_batch(json!({}), 5)
        .later(60_000)
        .pod(&Pod::pending("w9"))
        .is_innocent();
    waiting_batch(json!({}), 3)
        .later(60_000)
        .pod(&Pod::pending("w9"))
        .is_guilty("I7", "no claim on pool p was served");
}

#[test]
fn a_half_bound_batch_is_accused_while_the_missing_sandboxes_are_available() {
    let half_bound = |holds: usize, asks: u32| {
        let mut history = waiting_batch(json!({}), asks);
        for number in 1..=holds {
            history = history.pod(&Pod::warm(&format!("w{number}")).held_by("a"));
        }
        history.later(6_000).pod(&Pod::pending("w9"))
    };
    half_bound(1, 3).is_guilty("I7", "while a waited and a sandbox was available for it");
    half_bound(1, 4).is_innocent();
    // The claim loses one of its two sandboxes.
    let w1 = Pod::warm("w1").held_by("a");
    let lost = half_bound(2, 2).pod(&w1.terminating()).no_pod(&w1);
    lost.later(6_000)
        .pod(&Pod::pending("w8"))
        .is_guilty("I7", "while a waited and a sandbox was available for it");
}

#[test]
fn a_batch_that_gets_one_sandbox_after_the_other_is_no_breach_however_long_it_takes() {
    let mut history =
        History::default()
            .pool(4, json!({}))
            .warm(4)
            .write(Change::Added, Kind::Claim, batch(4));
    for number in 1..=4 {
        let claimed = Pod::warm(&format!("w{number}")).held_by("a");
        history = history.later(3_000).pod(&claimed);
    }
    history.is_innocent();
}

#[test]
fn a_claim_behind_a_batch_waits_for_it_unless_the_batch_can_never_be_served() {
    let behind = |wanted: u32| {
        waiting_batch(json!({"capacity": {"maxTotal": 9}}), wanted)
            .new_claim("b", 0)
            .later(6_000)
            .pod(&Pod::pending("w9"))
    };
    behind(5).is_innocent();
    behind(10).is_guilty("I7", "while b waited and a sandbox was available for it");
}

#[test]
fn the_sandbox_of_an_expired_claim_may_go_and_that_of_a_bound_one_may_not() {
    let past = json!({"replicas": 2, "shutdownTime": "1970-01-01T00:00:00Z"});
    let gone = |phase: &str| {
        with_status(holding(2), "Bound", &["w1", "w2"])
            .write(
                Change::Modified,
                Kind::Claim,
                claim_with_status("a", &past, phase, &["w1", "w2"]),
            )
            .pod(&Pod::warm("w1").held_by("a").terminating())
    };
    gone("Expired").is_innocent();
    gone("Bound").is_guilty("I2", "was deleted while claim a has it");
}

#[test]
fn a_claim_that_waits_again_is_accused_unless_its_loss_is_to_be_replaced() {
    for (policy, innocent) in [("Replace", true), ("Fail", false)] {
        let spec = json!({"replicas": 2, "onSandboxLost": policy});
        let history = History::default()
            .pool(3, json!({}))
            .warm(3)
            .write(Change::Added, Kind::Claim, claim_with_spec("a", &spec))
            .pod(&Pod::warm("w1").held_by("a"))
            .pod(&Pod::warm("w2").held_by("a"))
            .write(
                Change::Modified,
                Kind::Claim,
                claim_with_status("a", &spec, "Bound", &["w1", "w2"]),
            )
            .write(
                Change::Modified,
                Kind::Claim,
                claim_with_status("a", &spec, "Pending", &["w1"]),
            );
        if innocent {
            history.is_innocent();
        } else {
            history.is_guilty("I1", "went from phase Bound back");
        }
    }
}
