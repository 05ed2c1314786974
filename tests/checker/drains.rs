//! Checks rule I6 on nodes that have to go.

use crate::check::Drain;
use crate::check::Rules;
use crate::history::{History, Pod};
use jiff::Timestamp;
use serde_json::json;

/// Node `n1` has to go from the beginning.
fn draining(breaks: bool) -> Rules {
    Rules {
        drains: vec![Drain {
            node: "n1".into(),
            from: Timestamp::UNIX_EPOCH,
            to: None,
            breaks,
        }],
        ..Rules::default()
    }
}

/// A pool of two that may miss one, with one sandbox on each of two nodes.
fn on_two_nodes() -> (History, Pod, Pod) {
    let (going, staying) = (Pod::warm("w1").on("n1"), Pod::warm("w2").on("n2"));
    let history = History::default()
        .pool(2, json!({"updateStrategy": {"maxUnavailable": 1}}))
        .pod(&going)
        .pod(&staying);
    (history, going, staying)
}

fn accusations(history: &History, breaks: bool) -> Vec<String> {
    let verdict = history.judged_by(&draining(breaks));
    verdict.accusations.iter().map(ToString::to_string).collect()
}

#[test]
fn a_sandbox_that_leaves_its_node_before_it_is_replaced_is_accused() {
    let (history, going, _) = on_two_nodes();
    let accused = accusations(&history.no_pod(&going), false).concat();
    assert!(
        accused.starts_with("I6") && accused.contains("left 1 of 2 available"),
        "{accused}"
    );
    let (history, going, _) = on_two_nodes();
    let history = history.pod(&Pod::warm("w3").on("n2")).no_pod(&going);
    assert_eq!(accusations(&history, false), [""; 0]);
}

#[test]
fn a_sandbox_of_another_node_or_of_one_that_may_not_wait_needs_no_replacement() {
    let (history, _, staying) = on_two_nodes();
    assert_eq!(accusations(&history.no_pod(&staying), false), [""; 0]);
    let (history, going, staying) = on_two_nodes();
    let history = history.no_pod(&staying).no_pod(&going);
    assert_eq!(accusations(&history, true), [""; 0]);
    assert_eq!(accusations(&history, false).len(), 2, "I4 and I6");
}

#[test]
fn a_drain_surges_no_further_than_a_rollout_may_miss_and_exceed() {
    let (history, ..) = on_two_nodes();
    let history = history.pod(&Pod::pending("w3"));
    assert_eq!(accusations(&history, false), [""; 0]);
    let history = history.pod(&Pod::pending("w4"));
    assert!(accusations(&history, false).concat().starts_with("I4"));
}

#[test]
fn what_a_claim_took_may_be_missing_for_as_long_as_a_sandbox_takes_to_become_available_and_no_longer() {
    let went_after_a_claim = |warm_up: i64, ms: i64| {
        let [going, slow, taken] =
            [("w1", "n1"), ("w3", "n2"), ("w4", "n2")].map(|(name, node)| Pod::warm(name).on(node));
        let history = History::default().pool(3, json!({"updateStrategy": {"maxUnavailable": 2}}));
        let history = history.pod(&going).pod(&Pod::warm("w2").on("n2")).pod(&taken);
        let history = history.pod(&Pod::pending("w3")).later(warm_up).pod(&slow);
        let history = history.new_claim("a", 0).pod(&taken.held_by("a")).later(ms);
        accusations(&history.no_pod(&going), false).concat()
    };
    assert_eq!(went_after_a_claim(0, 2500), "");
    assert!(went_after_a_claim(0, 3500).contains("left 2 of 3 available"));
    assert_eq!(went_after_a_claim(2000, 3500), "");
    assert!(went_after_a_claim(2000, 5500).contains("left 2 of 3 available"));
}

#[test]
fn the_least_available_in_a_drain_is_measured() {
    let (history, going, _) = on_two_nodes();
    let history = history.pod(&going.unready()).pod(&going);
    let figures = history.judged_by(&draining(false)).figures;
    assert_eq!(
        figures.least_in_drain.get("p"),
        Some(&0),
        "before the first was there"
    );
}
