//! Checks rule I8: a waiting claim says why.

use crate::check::Rules;
use crate::history::{History, Pod, text, waiting};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// A claim that said nothing when it came, and now says that.
fn says(status: Value) -> History {
    let came = History::default().pool(0, json!({})).claim("a", silent());
    came.later(1000).claim("a", status)
}

fn silent() -> Value {
    json!({"phase": ""})
}

fn for_long(history: History) -> History {
    history.later(20_000).pool(0, json!({}))
}

#[test]
fn a_claim_that_waits_without_a_word_is_accused() {
    let is_accused = |status: Value| {
        for_long(says(status)).is_guilty("I8", "claim a waited for longer than 10s");
    };
    is_accused(silent());
    is_accused(json!({"phase": "Pending"}));
    is_accused(waiting("", "none is available"));
    is_accused(waiting("NoneAvailable", ""));
    let mut nowhere = waiting("NoneAvailable", "none is available");
    nowhere["phase"] = json!("");
    is_accused(nowhere);
    for_long(says(waiting("NoneAvailable", "none is available"))).is_innocent();
    for_long(says(json!({"phase": "Failed"}))).is_innocent();
    for_long(says(silent()).no_claim("a")).is_innocent();
}

#[test]
fn a_silence_is_judged_to_the_end_and_only_while_somebody_is_at_work() {
    let at = |seconds: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
    let accused = |rules: Rules| text(&says(silent()).judged_by(&rules));
    let ended = Rules {
        ended: Some(at(20)),
        ..Rules::default()
    };
    assert!(accused(ended.clone()).contains("I8"), "{}", accused(ended));
    let away = Rules {
        operator_down: vec![(at(0), at(15))],
        ended: Some(at(20)),
        ..Rules::default()
    };
    assert_eq!(accused(away), "");
}

#[test]
fn a_claim_is_told_later_while_others_are_served() {
    let (w1, w2) = (Pod::warm("w1"), Pod::warm("w2"));
    let line = History::default()
        .pool(2, json!({}))
        .claim("b", silent())
        .claim("a", silent())
        .later(9000)
        .warm(1)
        .pod(&w1.held_by("b"))
        .bound("b", "w1")
        .later(9000)
        .pod(&w2);
    line.is_innocent();
    line.pod(&w2.held_by("a")).bound("a", "w2").is_innocent();
}
