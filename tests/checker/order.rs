//! Checks rule I7 on the order of service, and gaps in histories.

use crate::check::event::{Change, Kind};
use crate::check::{self, Rules};
use crate::history::{History, Pod, bound_once, claim, text};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

/// Claims a and b wait. First b is served, and `elder_waits_ms` later a.
fn served_second_first(elder: i64, younger: i64, elder_waits_ms: i64) -> History {
    let (w1, w2) = (Pod::warm("w1"), Pod::warm("w2"));
    let queue = History::default()
        .pool(2, json!({}))
        .new_claim("a", elder)
        .later(1500)
        .new_claim("b", younger);
    let served = queue.later(1500).warm(2).pod(&w1.held_by("b")).bound("b", "w1");
    served
        .later(elder_waits_ms)
        .pod(&w2.held_by("a"))
        .bound("a", "w2")
}

#[test]
fn overtaking_a_claim_is_accused() {
    served_second_first(0, 0, 3000)
        .is_guilty("I7", "was served while claim a (priority 0), which goes first");
    served_second_first(5, 0, 3000).is_guilty("I7", "claim a (priority 5)");
    served_second_first(0, 5, 3000).is_innocent();
}

#[test]
fn an_operator_started_later_need_not_know_the_age_of_a_rewritten_claim_within_its_second() {
    let created = |name: &str, second: u8| {
        let mut object = claim(name, 0, json!({}));
        object["metadata"]["creationTimestamp"] = json!(format!("1970-01-01T00:00:0{second}Z"));
        object
    };
    let w1 = Pod::warm("w1");
    let passed = |written: &str, second: u8| {
        let history = History::default()
            .pool(1, json!({}))
            .write(Change::Added, Kind::Claim, created("a", 0))
            .write(Change::Added, Kind::Claim, created("b", second));
        let second_written = if written == "a" { 0 } else { second };
        history
            .write(Change::Modified, Kind::Claim, created(written, second_written))
            .later(3000)
            .pod(&w1)
            .pod(&w1.held_by("b"))
            .bound("b", "w1")
            .later(3000)
            .pod(&Pod::pending("w2"))
    };
    let started = |second: i64| {
        let at = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second);
        Rules {
            operator_down: vec![(at, at)],
            ..Rules::default()
        }
    };
    let accused = |second: u8, rules: &Rules| !passed("a", second).judged_by(rules).accusations.is_empty();
    passed("a", 0).is_guilty("I7", "which goes first, waited");
    assert!(!accused(0, &started(1)));
    assert!(accused(1, &started(1)), "their creation times differ by a second");
    assert!(accused(0, &started(0)), "the claims came after the start");
    assert!(accused(0, &started(5)), "the claims were served before the start");
    let other_written = passed("b", 0).judged_by(&started(1));
    assert!(
        !other_written.accusations.is_empty(),
        "claim a was not written since its creation, so its age is known"
    );
}

#[test]
fn two_claims_served_in_one_moment_are_no_overtaking_but_are_counted() {
    let history = served_second_first(0, 0, 100);
    history.is_innocent();
    assert_eq!(history.judged().figures.swapped, 1);
}

#[test]
fn a_claim_that_has_just_come_or_has_failed_is_not_overtaken() {
    let w1 = Pod::warm("w1");
    let pool = || History::default().pool(1, json!({})).warm(1);
    pool()
        .new_claim("a", 0)
        .later(3000)
        .claim("a", json!({"phase": "Failed"}))
        .new_claim("b", 0)
        .pod(&w1.held_by("b"))
        .later(3000)
        .bound("b", "w1")
        .is_innocent();
    pool()
        .new_claim("b", 0)
        .new_claim("a", 9)
        .pod(&w1.held_by("b"))
        .later(3000)
        .bound("b", "w1")
        .is_innocent();
}

#[test]
fn a_gap_in_the_history_is_accused_unless_declared() {
    let mut history = bound_once();
    history.events.iter_mut().skip(3).for_each(|e| e.gap = true);
    history.is_guilty("history", "has a gap");
    let verdict = history.judged_by(&Rules {
        gaps: true,
        ..Rules::default()
    });
    assert!(verdict.accusations.is_empty(), "{}", text(&verdict));
    assert_eq!(verdict.figures.gaps, 2);
}

#[test]
fn events_of_all_kinds_are_ordered_by_resource_version() {
    let mut history = bound_once().no_claim("a");
    history.events.reverse();
    check::sort(&mut history.events);
    history.is_innocent();
    let mut world_sizes = Vec::new();
    check::replay(&history.events, |world, _| {
        world_sizes.push(world.pods.len() + world.claims.len())
    });
    assert_eq!(world_sizes, [0, 1, 2, 2, 2, 1]);
}
