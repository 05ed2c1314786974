//! Checks that a wrong report of a warm sandbox is found.

use crate::check::event::{Change, Kind};
use crate::check::warm_reports::judge;
use crate::history::{History, Pod, claim, moment};
use serde_json::json;
use std::collections::BTreeMap;

/// Judges claims that each come at 10 s and are bound to a sandbox that becomes Ready at that second, and that say whether the
/// sandbox was warm.
fn judged(services: &[(i64, bool)]) -> Result<(), String> {
    let (mut history, mut pod_of_claim, mut warm) = (History::default(), BTreeMap::new(), 0);
    for (n, (ready, says_warm)) in services.iter().enumerate() {
        let (name, pod) = (format!("claim-{n}"), format!("pod-{n}"));
        let mut object = Pod::warm(&pod).object();
        object["status"]["conditions"][0]["lastTransitionTime"] = json!(moment(ready * 1000).to_string());
        history = history.write(Change::Modified, Kind::Pod, object);
        warm += i64::from(*ready < 10);
        let uid = format!("uid-{pod}");
        let sandbox = json!({"name": pod, "uid": uid, "warm": says_warm});
        let mut object = claim(&name, 0, json!({"phase": "Bound", "sandboxes": [sandbox]}));
        object["metadata"]["creationTimestamp"] = json!(moment(10_000).to_string());
        history = history.write(Change::Modified, Kind::Claim, object);
        pod_of_claim.insert(format!("uid-{name}"), uid);
    }
    judge(&history.events, &pod_of_claim, warm)
}

#[test]
fn true_reports_are_accepted() {
    assert_eq!(judged(&[(5, true), (9, true), (11, false), (15, false)]), Ok(()));
}

#[test]
fn a_wrong_report_is_found_a_second_before_and_after() {
    for (ready, says_warm) in [(5, false), (9, false), (11, true), (15, true)] {
        let wrong = judged(&[(5, true), (ready, says_warm), (15, false)]).unwrap_err();
        let accused = format!("claim-1 says of its sandbox that it was warm: {says_warm}");
        assert!(wrong.contains(&accused), "{wrong}");
    }
}

#[test]
fn a_report_of_the_same_second_may_say_either_unless_most_are_of_that_kind() {
    for says_warm in [true, false] {
        assert_eq!(judged(&[(5, true), (15, false), (10, says_warm)]), Ok(()));
        let unknown = judged(&[(5, true), (15, false), (10, says_warm), (10, says_warm)]).unwrap_err();
        assert!(unknown.contains("2 claims came in the second"), "{unknown}");
    }
}

#[test]
fn a_warm_sandbox_that_no_claim_has_taken_is_missed() {
    let missed = judge(&[], &BTreeMap::new(), 1).unwrap_err();
    assert!(missed.contains("0 of 1 warm sandboxes"), "{missed}");
}
