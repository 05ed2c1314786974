//! Checks the rules for claims that take only the update revision.

use crate::check::event::{Change, Kind};
use crate::history::{History, Pod, claim};
use serde_json::{Value, json};

/// A pool in the middle of a rollout, with one old sandbox.
fn rolling() -> History {
    let pool = json!({
        "metadata": {"name": "p", "uid": "pool-p"},
        "spec": {"replicas": 2},
        "status": {"currentRevision": "old", "updateRevision": "new"},
    });
    History::default()
        .write(Change::Modified, Kind::Pool, pool)
        .write(Change::Added, Kind::Pod, of("old", &Pod::warm("w1")))
}

fn of(revision: &str, pod: &Pod) -> Value {
    let mut object = pod.object();
    object["metadata"]["labels"]["warmpool.dev/revision"] = json!(revision);
    object
}

fn latest(name: &str) -> Value {
    let mut object = claim(name, 0, json!({}));
    object["spec"]["revisionPolicy"] = json!("Latest");
    object
}

#[test]
fn one_that_waits_beside_an_old_sandbox_is_no_breach() {
    rolling()
        .write(Change::Added, Kind::Claim, latest("a"))
        .later(60_000)
        .pod(&Pod::pending("w2"))
        .is_innocent();
}

#[test]
fn one_that_waits_beside_a_new_sandbox_is_accused() {
    rolling()
        .write(Change::Added, Kind::Pod, of("new", &Pod::warm("w2")))
        .write(Change::Added, Kind::Claim, latest("a"))
        .later(60_000)
        .pod(&Pod::pending("w3"))
        .is_guilty("I7", "no claim on pool p was served");
}

#[test]
fn one_that_is_given_an_old_sandbox_is_accused() {
    rolling()
        .write(Change::Added, Kind::Claim, latest("a"))
        .write(
            Change::Modified,
            Kind::Pod,
            of("old", &Pod::warm("w1").held_by("a")),
        )
        .bound("a", "w1")
        .is_guilty("I3", "which the claim excludes");
}

#[test]
fn a_younger_claim_may_pass_it_for_an_old_sandbox_and_not_for_a_new_one() {
    let passed = |revision: &str| {
        rolling()
            .write(Change::Added, Kind::Pod, of("new", &Pod::warm("w2")))
            .write(Change::Added, Kind::Claim, latest("a"))
            .later(2_200)
            .new_claim("b", 0)
            .write(
                Change::Modified,
                Kind::Pod,
                of(revision, &Pod::warm("w1").held_by("b")),
            )
            .bound("b", "w1")
            .later(2_200)
    };
    let taken = Pod::warm("w2").held_by("a");
    passed("old")
        .write(Change::Modified, Kind::Pod, of("new", &taken))
        .bound("a", "w2")
        .is_innocent();
    passed("new")
        .write(Change::Modified, Kind::Pod, of("new", &taken))
        .bound("a", "w2")
        .is_guilty("I7", "which goes first, waited");
}
