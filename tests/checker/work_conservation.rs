//! Checks rule I7 on claims that wait beside available sandboxes.

use crate::check::Rules;
use crate::check::event::{Change, Kind};
use crate::check::requests::Request;
use crate::history::{
    History, Pod, latest_claim, moment, of_revision, request, requests, text, waiting_for_a_processor,
};
use jiff::SignedDuration;
use serde_json::json;

fn held(pod: usize, claim: &str) -> Pod {
    Pod::warm(&format!("w{pod}")).held_by(claim)
}

/// A sandbox is available from 30 ms on, and claimed so many milliseconds later by a claim that waits.
fn claimed_after(ms: i64) -> History {
    History::default()
        .pool(1, json!({}))
        .new_claim("a", 0)
        .warm(1)
        .later(ms)
        .pod(&held(1, "a"))
}

fn waits(history: &History) -> Vec<i128> {
    let waits = history.judged().figures.waits;
    let percents = (1..=waits.count()).map(|n| n * 100 / waits.count());
    percents.map(|p| waits.percentile(p).as_millis()).collect()
}

#[test]
fn a_claim_that_waits_while_a_sandbox_is_available_is_accused() {
    let wait = |ms: i64| {
        let pool = History::default()
            .pool(1, json!({}))
            .new_claim("a", 0)
            .later(9000)
            .warm(1);
        pool.later(ms).pod(&held(1, "a"))
    };
    wait(1000).is_innocent();
    let longest = (SignedDuration::from_millis(1010), "a".to_string());
    assert_eq!(wait(1000).judged().figures.idle_wait, longest);
    wait(6000).is_guilty("I7", "for 6010 ms no claim on pool p was served, while a waited");
    let unchecked = Rules {
        idle: None,
        ..Rules::default()
    };
    assert!(wait(6000).judged_by(&unchecked).accusations.is_empty());
}

#[test]
fn a_binding_that_the_api_server_takes_long_for_is_no_idleness_and_the_time_before_it_is() {
    // The sandbox is available from 30 ms on. Something happens at 7 s, and the claim is bound at 9 s.
    let history = History::default()
        .pool(1, json!({}))
        .new_claim("a", 0)
        .warm(1)
        .later(6_960)
        .pool(1, json!({}))
        .later(1_990)
        .pod(&held(1, "a"));
    let accused = |at: i64, answered: i64, code: u16| {
        let sent = Request {
            answered: moment(answered),
            ..request("patch", "w1", at, code)
        };
        let rules = Rules {
            requests: requests([sent]),
            ..Rules::default()
        };
        text(&history.judged_by(&rules))
    };
    assert_eq!(accused(1_000, 9_000, 200), "");
    assert!(accused(8_000, 9_000, 200).contains("I7: for 6970 ms no claim"));
    assert!(accused(1_000, 9_000, 409).contains("I7: for 6970 ms no claim"));
    assert!(
        accused(1_000, 4_000, 200).contains("I7: for 6970 ms no claim"),
        "a patch that bound nothing was answered long before"
    );
}

#[test]
fn the_time_in_which_a_processor_was_waited_for_is_no_idleness_and_other_time_is() {
    // The sandbox is available from 30 ms on, and is claimed at 9 s.
    let history = claimed_after(8_960);
    let accused = |samples: &[(i64, i64, i64)]| text(&history.judged_by(&waiting_for_a_processor(samples)));
    assert_eq!(
        accused(&[(0, 1_000, 0), (1_000, 5_000, 4_000), (5_000, 9_000, 0)]),
        ""
    );
    let too_little = accused(&[(0, 1_000, 500), (1_000, 5_000, 3_000), (5_000, 9_000, 0)]);
    assert!(too_little.contains("I7: for 5470 ms no claim"), "{too_little}");
    let before_and_after = accused(&[(-9_000, 0, 9_000), (0, 9_000, 0), (9_000, 12_000, 3_000)]);
    assert!(
        before_and_after.contains("I7: for 8970 ms no claim"),
        "{before_and_after}"
    );
}

#[test]
fn the_time_in_which_no_operator_ran_is_no_idleness_and_other_time_is() {
    // The sandbox is available from 30 ms on, and is claimed at 12 s.
    let history = claimed_after(11_960);
    let down = |from: i64, to: i64| Rules {
        operator_down: vec![(moment(from), moment(to))],
        ..Rules::default()
    };
    let accused = |rules: &Rules| !history.judged_by(rules).accusations.is_empty();
    assert!(!accused(&down(0, 8000)));
    assert!(accused(&down(0, 4000)));
    assert!(
        !accused(&down(4000, 20_000)),
        "the first 4 s are within the limit"
    );
    assert!(
        accused(&down(13_000, 20_000)),
        "the operator was down only after the claim was served"
    );
}

#[test]
fn a_silence_up_to_the_end_is_judged() {
    let left_waiting = History::default().pool(1, json!({})).warm(1).new_claim("a", 0);
    let ended = |ms: i64| {
        let rules = Rules {
            ended: Some(moment(ms)),
            ..Rules::default()
        };
        left_waiting.judged_by(&rules)
    };
    assert!(ended(4000).accusations.is_empty(), "{}", text(&ended(4000)));
    assert!(text(&ended(6000)).contains("while a waited"));
    assert_eq!(ended(6000).figures.idle_wait.0.as_millis(), 5970);
}

#[test]
fn a_sandbox_that_becomes_available_by_time_alone_starts_the_clock() {
    // Ready since 0 s, it is available from 3 s on; nothing happens until 9 s.
    let history = History::default()
        .pool(1, json!({"minReadySeconds": 3}))
        .warm(1)
        .new_claim("a", 0)
        .later(8960)
        .pod(&held(1, "a"));
    history.is_guilty("I7", "for 6000 ms no claim on pool p was served, while a waited");
    assert_eq!(waits(&history), [6000]);
}

#[test]
fn a_long_queue_is_no_idleness_while_it_moves() {
    let mut history = History::default().pool(4, json!({})).warm(4);
    for name in ["a", "b", "c", "d"] {
        history = history.new_claim(name, 0);
    }
    for (n, name) in ["a", "b", "c", "d"].iter().enumerate() {
        history = history.later(3000).pod(&held(n + 1, name));
    }
    history.is_innocent();
    assert_eq!(waits(&history), [3040, 6040, 9040, 12_040]);
}

#[test]
fn a_claim_that_others_always_go_before_is_accused_though_claims_are_served() {
    // Two sandboxes are always available. Every later claim is served, and "a" never is.
    let mut history = History::default().pool(2, json!({})).warm(2).new_claim("a", 0);
    for n in 3..10 {
        let urgent = format!("urgent-{n}");
        history = history
            .new_claim(&urgent, 9)
            .later(950)
            .pod(&held(n - 2, &urgent));
        history = history.pod(&Pod::warm(&format!("w{n}")));
    }
    history.is_guilty("I7", "while a waited and a sandbox was available for it");
}

#[test]
fn a_claim_for_the_latest_is_accused_when_others_are_served_with_the_old() {
    let mut history =
        History::rolling(9).write(Change::Added, Kind::Pod, of_revision("new", &Pod::warm("w0")));
    for n in 1..9 {
        history = history.write(
            Change::Added,
            Kind::Pod,
            of_revision("old", &Pod::warm(&format!("w{n}"))),
        );
    }
    history = history.write(Change::Added, Kind::Claim, latest_claim("a"));
    for n in 1..9 {
        let other = format!("other-{n}");
        history = history.new_claim(&other, 0).later(900).write(
            Change::Modified,
            Kind::Pod,
            of_revision("old", &held(n, &other)),
        );
    }
    history.is_guilty("I7", "while a waited and a sandbox was available for it");
}

#[test]
fn a_claim_that_loses_its_sandbox_before_it_is_published_waits_again() {
    let w1 = held(1, "a");
    let lost = || {
        History::default()
            .pool(2, json!({}))
            .warm(2)
            .new_claim("a", 0)
            .pod(&w1)
            .pod(&w1.terminating())
            .no_pod(&w1)
    };
    lost()
        .later(6000)
        .pod(&Pod::pending("w3"))
        .is_guilty("I7", "while a waited");
    let published = lost().claim("a", json!({"phase": "Bound", "sandboxes": [{"uid": "uid-w1"}]}));
    published.later(6000).pod(&Pod::pending("w3")).is_innocent();
}

#[test]
fn only_the_time_in_which_a_sandbox_was_available_for_it_counts_as_a_claims_wait() {
    // One sandbox is available for claim a only. Claim b waits for the next one.
    let history = History::default()
        .pool(1, json!({}))
        .warm(1)
        .new_claim("a", 0)
        .new_claim("b", 0)
        .later(1000)
        .pod(&held(1, "a"))
        .later(2000)
        .pod(&Pod::warm("w2"))
        .later(40)
        .pod(&held(2, "b"));
    assert_eq!(waits(&history), [50, 1020]);
}

#[test]
fn every_wait_is_recorded_those_of_deleted_claims_included() {
    let mut history = History::default().pool(1, json!({})).warm(1);
    for n in 1..=20 {
        let name = format!("c{n}");
        history = history.new_claim(&name, 0).later(n * 10).no_claim(&name);
    }
    let figures = history.new_claim("left", 0).judged().figures;
    assert_eq!(figures.waits.count(), 21);
    assert_eq!(figures.waits.to_string(), "p50 110, p90 190, p99 210, max 210 ms");
}
