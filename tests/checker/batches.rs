//! Checks the rules for claims for several sandboxes.

use crate::check::event::{Change, Kind};
use crate::history::{History, Pod, claim};
use serde_json::{Value, json};

fn asking(name: &str, spec: &Value) -> Value {
    let mut object = claim(name, 0, json!({}));
    for (field, value) in spec.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

fn saying(name: &str, spec: &Value, phase: &str, sandboxes: &[&str]) -> Value {
    let sandboxes: Vec<_> = sandboxes
        .iter()
        .map(|pod| json!({"name": pod, "uid": format!("uid-{pod}")}))
        .collect();
    let mut object = asking(name, spec);
    object["status"] = json!({"phase": phase, "sandboxes": sandboxes});
    object
}

/// Claim `a`, for that many sandboxes.
fn batch(replicas: u32) -> Value {
    asking("a", &json!({"replicas": replicas}))
}

/// A pool with three available sandboxes, and a claim `a` that waits for that many.
fn waiting_batch(pool: Value, replicas: u32) -> History {
    History::default()
        .pool(3, pool)
        .warm(3)
        .write(Change::Added, Kind::Claim, batch(replicas))
}

fn pair() -> Value {
    json!({"replicas": 2})
}

/// A pool of three, all available, and a claim for two that holds `count` of them.
fn holding(count: usize) -> History {
    let mut history =
        History::default()
            .pool(3, json!({}))
            .warm(3)
            .write(Change::Added, Kind::Claim, asking("a", &pair()));
    for number in 1..=count {
        history = history.pod(&Pod::warm(&format!("w{number}")).held_by("a"));
    }
    history
}

fn says(history: History, phase: &str, sandboxes: &[&str]) -> History {
    let said = saying("a", &pair(), phase, sandboxes);
    history.write(Change::Modified, Kind::Claim, said)
}

#[test]
fn one_that_holds_more_than_it_asks_for_is_accused() {
    says(holding(2), "Bound", &["w1", "w2"]).is_innocent();
    holding(3).is_guilty("I1", "a claim for 2 holds 3 pods");
}

#[test]
fn one_that_is_bound_to_fewer_is_accused() {
    says(holding(2), "Bound", &["w1"]).is_guilty("I1", "Bound to 1 of 2");
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
fn a_batch_that_was_left_half_done_is_accused_while_the_rest_is_there() {
    let left = |holds: usize, asks: u32| {
        let mut history = waiting_batch(json!({}), asks);
        for number in 1..=holds {
            history = history.pod(&Pod::warm(&format!("w{number}")).held_by("a"));
        }
        history.later(6_000).pod(&Pod::pending("w9"))
    };
    left(1, 3).is_guilty("I7", "while a waited and a sandbox was available for it");
    left(1, 4).is_innocent();
    // One of its two went again.
    let w1 = Pod::warm("w1").held_by("a");
    let lost = left(2, 2).pod(&w1.terminating()).no_pod(&w1);
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
fn one_that_stands_behind_a_batch_waits_for_it_unless_it_can_never_be_served() {
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
        says(holding(2), "Bound", &["w1", "w2"])
            .write(
                Change::Modified,
                Kind::Claim,
                saying("a", &past, phase, &["w1", "w2"]),
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
            .write(Change::Added, Kind::Claim, asking("a", &spec))
            .pod(&Pod::warm("w1").held_by("a"))
            .pod(&Pod::warm("w2").held_by("a"))
            .write(
                Change::Modified,
                Kind::Claim,
                saying("a", &spec, "Bound", &["w1", "w2"]),
            )
            .write(
                Change::Modified,
                Kind::Claim,
                saying("a", &spec, "Pending", &["w1"]),
            );
        if innocent {
            history.is_innocent();
        } else {
            history.is_guilty("I1", "went from phase Bound back");
        }
    }
}
