//! Checks rule I8: the status of a waiting claim has a reason.

use crate::check::Rules;
use crate::history::{History, Pod, text, waiting, waiting_for_a_processor};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// A claim that has no reason at first, and `status` a second later.
fn then_status(status: Value) -> History {
    let created = History::default().pool(0, json!({})).claim("a", without_reason());
    created.later(1000).claim("a", status)
}

fn without_reason() -> Value {
    json!({"phase": ""})
}

fn twenty_seconds_later(history: History) -> History {
    history.later(20_000).pool(0, json!({}))
}

#[test]
fn a_claim_that_waits_without_a_reason_is_accused() {
    let is_accused = |status: Value| {
        twenty_seconds_later(then_status(status)).is_guilty("I8", "claim a waited for longer than 10s");
    };
    is_accused(without_reason());
    is_accused(json!({"phase": "Pending"}));
    is_accused(waiting("", "none is available"));
    is_accused(waiting("NoneAvailable", ""));
    let mut without_phase = waiting("NoneAvailable", "none is available");
    without_phase["phase"] = json!("");
    is_accused(without_phase);
    twenty_seconds_later(then_status(waiting("NoneAvailable", "none is available"))).is_innocent();
    twenty_seconds_later(then_status(json!({"phase": "Failed"}))).is_innocent();
    twenty_seconds_later(then_status(without_reason()).no_claim("a")).is_innocent();
}

#[test]
fn a_missing_reason_is_judged_to_the_end_and_only_while_an_operator_runs() {
    let at = |seconds: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
    let accused = |rules: Rules| text(&then_status(without_reason()).judged_by(&rules));
    let ended = Rules {
        ended: Some(at(20)),
        ..Rules::default()
    };
    assert!(accused(ended.clone()).contains("I8"), "{}", accused(ended));
    let down = Rules {
        operator_down: vec![(at(0), at(15))],
        ended: Some(at(20)),
        ..Rules::default()
    };
    assert_eq!(accused(down), "");
}

#[test]
fn a_claim_may_get_its_reason_later_while_others_are_served() {
    let (w1, w2) = (Pod::warm("w1"), Pod::warm("w2"));
    let history = History::default()
        .pool(2, json!({}))
        .claim("b", without_reason())
        .claim("a", without_reason())
        .later(9000)
        .warm(1)
        .pod(&w1.held_by("b"))
        .bound("b", "w1")
        .later(9000)
        .pod(&w2);
    history.is_innocent();
    history.pod(&w2.held_by("a")).bound("a", "w2").is_innocent();
}

#[test]
fn a_reason_may_come_later_where_the_operator_waited_for_a_processor() {
    let late = then_status(without_reason()).later(11_000).pool(0, json!({}));
    assert_eq!(
        text(&late.judged_by(&waiting_for_a_processor(&[(0, 12_000, 4_000)]))),
        ""
    );
    let accused = text(&late.judged_by(&waiting_for_a_processor(&[(0, 12_000, 1_000)])));
    assert!(
        accused.contains("I8: claim a waited for longer than 10s"),
        "{accused}"
    );
}
