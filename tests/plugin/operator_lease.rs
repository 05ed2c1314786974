//! Checks the hint that no operator is at work.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use serde_json::json;
use warmpool::cli::kubectl::operator_lease::hint_about;

fn now() -> Timestamp {
    "2026-01-31T12:00:00Z".parse().unwrap()
}

fn lease(holder: &str, renewed: &str) -> Lease {
    serde_json::from_value(json!({
        "metadata": {"namespace": "warmpool-system", "name": "warmpool"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed},
    }))
    .unwrap()
}

#[test]
fn a_lease_that_is_held_needs_no_hint() {
    let held = || lease("a", "2026-01-31T11:59:50.000000Z");
    let other = lease("", "2026-01-31T11:00:00.000000Z");
    assert_eq!(hint_about(&[held()], now()), None);
    assert_eq!(hint_about(&[other, held()], now()), None);
}

#[test]
fn a_lease_that_nobody_renews_or_holds_is_told() {
    for (holder, renewed) in [("a", "2026-01-31T11:59:45Z"), ("", "2026-01-31T11:59:59Z")] {
        let hint = hint_about(&[lease(holder, renewed)], now()).unwrap();
        assert_eq!(
            hint,
            format!(
                "No operator has held the lease warmpool-system/warmpool since {renewed}: nothing below happens until one does; \
                 see 'kubectl -n warmpool-system get pods'."
            )
        );
    }
}

#[test]
fn an_operator_without_election_is_not_taken_for_none() {
    assert_eq!(hint_about(&[], now()), None);
}
