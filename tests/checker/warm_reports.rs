//! Checks that a wrong report of a warm sandbox is found.

use crate::check::warm_reports::judge;
use crate::history::{History, Pod};
use serde_json::json;
use std::collections::BTreeMap;

/// Judges claims of which each is bound to a sandbox that becomes Ready so many milliseconds after the claim came, or before
/// it where the number is negative, and that says whether the sandbox was warm.
fn judged(services: &[(i64, bool)]) -> Result<(), String> {
    let (mut history, mut pod_of_claim, mut warm) = (History::default(), BTreeMap::new(), 0);
    for (n, (ready_later, says_warm)) in services.iter().enumerate() {
        let (claim, pod) = (format!("claim-{n}"), format!("pod-{n}"));
        let ready = Pod::warm(&pod);
        // Each write takes 10 ms.
        let between = ready_later.abs() - 10;
        history = match ready_later {
            0.. => history.new_claim(&claim, 0).later(between).pod(&ready),
            _ => history.pod(&ready).later(between).new_claim(&claim, 0),
        };
        warm += i64::from(*ready_later < 0);
        let uid = format!("uid-{pod}");
        let sandbox = json!({"name": pod, "uid": uid, "warm": says_warm});
        history = history.claim(&claim, json!({"phase": "Bound", "sandboxes": [sandbox]}));
        pod_of_claim.insert(format!("uid-{claim}"), uid);
    }
    judge(&history.events, &pod_of_claim, warm)
}

#[test]
fn true_reports_are_accepted() {
    assert_eq!(
        judged(&[(-5000, true), (-400, true), (400, false), (5000, false)]),
        Ok(())
    );
}

#[test]
fn a_wrong_report_is_found_half_a_second_before_and_after() {
    for apart in [400, 1000, 1900, 5000] {
        let wrong = judged(&[(-5000, true), (apart, true)]).unwrap_err();
        assert!(
            wrong.contains("claim-1 says of its sandbox that it was warm: true"),
            "{wrong}"
        );
        let wrong = judged(&[(-5000, true), (-apart, false)]).unwrap_err();
        assert!(
            wrong.contains("claim-1 says of its sandbox that it was warm: false"),
            "{wrong}"
        );
    }
}

#[test]
fn a_report_of_the_same_moment_may_say_either_unless_most_are_of_that_kind() {
    for says_warm in [true, false] {
        assert_eq!(judged(&[(-5000, true), (5000, false), (100, says_warm)]), Ok(()));
        assert_eq!(judged(&[(-5000, true), (5000, false), (-100, says_warm)]), Ok(()));
        let unknown = judged(&[(-5000, true), (100, says_warm), (200, says_warm)]).unwrap_err();
        assert!(
            unknown.contains("2 of the claims with a new sandbox came within"),
            "{unknown}"
        );
    }
}
