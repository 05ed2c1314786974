//! Checks that a deletion counts for the user whose request came first.

use crate::check::Rules;
use crate::check::deletions::{Deletion, deleted_by_others, not_deleted};
use crate::history::{History, Pod, bound_once, moment, text};
use serde_json::json;

fn by(operator: bool, ms: i64) -> Deletion {
    Deletion {
        at: moment(ms),
        pod: "w1".into(),
        by_operator: operator,
    }
}

/// The sandbox of a claim is deleted, and its kubelet removes it.
fn lost() -> History {
    let w1 = Pod::warm("w1").held_by("a");
    bound_once().pod(&w1.terminating()).no_pod(&w1.terminating())
}

fn judged(history: &History, deletions: &[Deletion]) -> String {
    let rules = Rules {
        deleted_by_others: deleted_by_others(&history.events, deletions),
        ..Rules::default()
    };
    text(&history.judged_by(&rules))
}

#[test]
fn a_deletion_counts_for_the_user_who_requested_it_first() {
    let (operator, kubelet) = (by(true, 55), by(false, 65));
    let accused = judged(&lost(), &[kubelet.clone(), operator.clone()]);
    assert!(
        accused.contains("I2: pod w1 was deleted while claim a has it"),
        "{accused}"
    );
    let user = by(false, 45);
    assert_eq!(judged(&lost(), &[operator, user, kubelet]), "");
}

#[test]
fn a_pod_that_stays_or_is_about_to_go_is_not_deleted() {
    let names = ["w1", "w2", "w3"].map(String::from);
    let history = lost().pod(&Pod::warm("w2")).pod(&Pod::warm("w2").terminating());
    assert_eq!(not_deleted(&history.events, &names), ["w2", "w3"]);
    assert_eq!(not_deleted(&history.events, &names[..1]), [""; 0]);
}

#[test]
fn a_deletion_that_a_kubelet_completes_counts_against_the_budget_of_the_operator() {
    let (w1, w2) = (Pod::warm("w1"), Pod::warm("w2"));
    let history = History::default()
        .pool(2, json!({"updateStrategy": {"maxUnavailable": 1}}))
        .warm(2)
        .pod(&w2.terminating())
        .pod(&w1.terminating())
        .no_pod(&w1.terminating());
    let accused = judged(&history, &[by(true, 45), by(false, 55)]);
    assert!(
        accused.contains("I4: pod w1 was deleted while available"),
        "{accused}"
    );
    assert_eq!(judged(&history, &[by(false, 45), by(true, 55)]), "");
}

#[test]
fn a_deletion_of_another_pod_of_the_same_name_is_no_excuse() {
    let mut history = lost();
    for event in &mut history.events {
        event.object["metadata"]["creationTimestamp"] = json!("1970-01-01T00:00:00Z");
    }
    let before = Deletion {
        at: moment(-500),
        ..by(false, 0)
    };
    let later = by(false, 5000);
    let other = Deletion {
        pod: "w2".into(),
        ..by(false, 45)
    };
    let accused = judged(&history, &[before, other, by(true, 45), later]);
    assert!(accused.contains("I2: "), "{accused}");
}
