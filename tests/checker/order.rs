//! I7: whose turn it is; and the history itself.

use crate::check;
use crate::check::Rules;
use crate::history::{History, Pod, bound_once, text};
use jiff::SignedDuration;
use serde_json::json;

/// Claims a and b wait; b is served, and a that long after it.
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
fn an_overtaken_claim_is_an_accusation() {
    served_second_first(0, 0, 3000)
        .is_guilty("I7", "was served while claim a (priority 0), which goes first");
    served_second_first(5, 0, 3000).is_guilty("I7", "claim a (priority 5)");
    served_second_first(0, 5, 3000).is_innocent();
}

#[test]
fn two_claims_served_in_one_moment_are_no_overtaking_but_are_counted() {
    let history = served_second_first(0, 0, 100);
    history.is_innocent();
    assert_eq!(history.judged().figures.swapped, 1);
}

#[test]
fn a_claim_that_has_just_come_or_gave_up_is_not_overtaken() {
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
fn a_claim_that_waits_while_a_sandbox_is_available_is_accused() {
    let wait = |ms: i64| {
        let pool = History::default()
            .pool(1, json!({}))
            .new_claim("a", 0)
            .later(9000)
            .warm(1);
        pool.later(ms).pod(&Pod::warm("w1").held_by("a"))
    };
    wait(1000).is_innocent();
    let longest = (SignedDuration::from_millis(1010), "a".to_string());
    assert_eq!(wait(1000).judged().figures.idle_wait, longest);
    wait(6000).is_guilty("I7", "for 6010 ms no claim on pool p was served, while a waited");
    let down = Rules {
        idle: None,
        ..Rules::default()
    };
    assert!(wait(6000).judged_by(&down).accusations.is_empty());
}

#[test]
fn a_long_queue_is_no_idleness_while_it_moves() {
    let mut history = History::default().pool(4, json!({})).warm(4);
    for name in ["a", "b", "c", "d"] {
        history = history.new_claim(name, 0);
    }
    for (n, name) in ["a", "b", "c", "d"].iter().enumerate() {
        history = history
            .later(3000)
            .pod(&Pod::warm(&format!("w{}", n + 1)).held_by(name));
    }
    history.is_innocent();
    assert!(history.judged().figures.idle_wait.0 > SignedDuration::from_secs(11));
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
