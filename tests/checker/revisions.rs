//! Checks the rules on claims that accept only the update revision.

use crate::check::event::{Change, Kind};
use crate::history::{History, Pod, latest_claim, of_revision};

/// A pool in the middle of a rollout, with one old sandbox.
fn rolling() -> History {
    History::rolling(2).write(Change::Added, Kind::Pod, of_revision("old", &Pod::warm("w1")))
}

#[test]
fn a_latest_claim_that_waits_beside_an_old_sandbox_is_no_breach() {
    rolling()
        .write(Change::Added, Kind::Claim, latest_claim("a"))
        .later(60_000)
        .pod(&Pod::pending("w2"))
        .is_innocent();
}

#[test]
fn a_latest_claim_that_waits_beside_a_new_sandbox_is_accused() {
    rolling()
        .write(Change::Added, Kind::Pod, of_revision("new", &Pod::warm("w2")))
        .write(Change::Added, Kind::Claim, latest_claim("a"))
        .later(60_000)
        .pod(&Pod::pending("w3"))
        .is_guilty("I7", "no claim on pool p was served");
}

#[test]
fn a_latest_claim_bound_to_an_old_sandbox_is_accused() {
    rolling()
        .write(Change::Added, Kind::Claim, latest_claim("a"))
        .write(
            Change::Modified,
            Kind::Pod,
            of_revision("old", &Pod::warm("w1").held_by("a")),
        )
        .bound("a", "w1")
        .is_guilty("I3", "which the claim excludes");
}

#[test]
fn a_younger_claim_may_pass_a_latest_claim_for_an_old_sandbox_and_not_for_a_new_one() {
    let passed = |revision: &str| {
        rolling()
            .write(Change::Added, Kind::Pod, of_revision("new", &Pod::warm("w2")))
            .write(Change::Added, Kind::Claim, latest_claim("a"))
            .later(2_200)
            .new_claim("b", 0)
            .write(
                Change::Modified,
                Kind::Pod,
                of_revision(revision, &Pod::warm("w1").held_by("b")),
            )
            .bound("b", "w1")
            .later(2_200)
    };
    let w2 = Pod::warm("w2").held_by("a");
    passed("old")
        .write(Change::Modified, Kind::Pod, of_revision("new", &w2))
        .bound("a", "w2")
        .is_innocent();
    passed("new")
        .write(Change::Modified, Kind::Pod, of_revision("new", &w2))
        .bound("a", "w2")
        .is_guilty("I7", "which goes first, waited");
}
