//! Checks the rule that no write of an operator on a claim, a sandbox or the status of a pool is one too many.

use crate::check::Rules;
use crate::check::requests::Request;
use crate::history::{History, bound_once, moment, request, requests, text, waiting};
use serde_json::json;

/// Claim a waits, and its status says first the one and then the other.
fn said(first: (&str, &str), then: (&str, &str)) -> History {
    let history = History::default().pool(1, json!({}));
    let history = history.claim("a", waiting(first.0, first.1));
    history.later(1000).claim("a", waiting(then.0, then.1))
}

#[test]
fn a_status_that_is_written_again_has_to_say_something_new() {
    let none = ("NoneAvailable", "none is available");
    let moved = |ahead: &str| format!("none is available; the claim had {ahead} claims ahead at 10:00:00");
    said(none, ("PoolNotFound", "pool p does not exist")).is_innocent();
    said(none, ("NoneAvailable", "2 sandboxes warm up")).is_innocent();
    let (two, one) = (moved("2"), moved("1"));
    let queue = said(("NoneAvailable", &two), ("NoneAvailable", &one));
    queue.is_guilty(
        "writes",
        "the status of claim a was written and says the same as before",
    );
    let forged = Rules {
        forged: ["a".to_string()].into(),
        ..Rules::default()
    };
    assert!(queue.judged_by(&forged).accusations.is_empty());
}

/// The status of claim a is written so often, the last time with this answer; its sandbox is bound once.
fn written(times: i64, code: u16) -> String {
    let status = |number: i64| Request {
        verb: "update".into(),
        resource: "sandboxclaims/status".into(),
        code: if number == times { code } else { 200 },
        ..request("update", "a", 30 + number, 200)
    };
    let rules = Rules {
        requests: requests((1..=times).map(status).chain([request("patch", "w1", 30, 200)])),
        ..Rules::default()
    };
    text(&bound_once().judged_by(&rules))
}

#[test]
fn a_write_that_was_carried_out_has_to_be_a_version() {
    // That it waits, and that it is bound.
    assert_eq!(written(2, 200), "");
    assert_eq!(written(3, 409), "");
    assert!(written(3, 200).contains("SandboxClaim a was written 3 times, and only 2 changed something"));
}

#[test]
fn a_write_that_is_answered_after_the_last_look_is_in_no_history() {
    let last_look = |ms: i64| Rules {
        ended: Some(moment(ms)),
        requests: requests([30, 40].map(|ms| request("patch", "w1", ms, 200))),
        ..Rules::default()
    };
    assert_eq!(text(&bound_once().judged_by(&last_look(35))), "");
    assert!(text(&bound_once().judged_by(&last_look(40))).contains("only 1 changed something"));
}

#[test]
fn a_sandbox_is_patched_once_for_each_change() {
    let patched = |times: i64| {
        let rules = Rules {
            requests: requests((0..times).map(|number| request("patch", "w1", 30 + number, 200))),
            ..Rules::default()
        };
        text(&bound_once().judged_by(&rules))
    };
    assert_eq!(patched(1), "");
    assert!(patched(2).contains("Pod w1 was written 2 times, and only 1 changed something"));
}

#[test]
fn a_status_of_a_pool_is_written_once_for_each_change() {
    let written = |times: i64| {
        let status = |number: i64| Request {
            resource: "pools/status".into(),
            ..request("patch", "p", 30 + number, 200)
        };
        let rules = Rules {
            requests: requests((0..times).map(status)),
            ..Rules::default()
        };
        let says = |history: History, available: i64| {
            history.pool_that_says(1, json!({}), json!({"available": available}))
        };
        text(&says(says(History::default(), 0), 1).judged_by(&rules))
    };
    assert_eq!(written(2), "");
    assert!(written(3).contains("Pool p was written 3 times, and only 2 changed something"));
}
