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
fn a_lease_that_nobody_renews_or_holds_or_that_is_not_there_is_told() {
    let expired = lease("a", "2026-01-31T11:59:45.000000Z");
    let released = lease("", "2026-01-31T11:59:59.000000Z");
    for (leases, why) in [
        (
            vec![expired],
            "the lease warmpool-system/warmpool was last renewed at 2026-01-31T11:59:45Z",
        ),
        (
            vec![released],
            "the lease warmpool-system/warmpool was last renewed at 2026-01-31T11:59:59Z",
        ),
        (vec![], "there is no lease named warmpool"),
    ] {
        let hint = hint_about(&leases, now()).unwrap();
        let start = format!("No operator seems to be at work: {why}. Nothing below happens until one is");
        assert!(hint.starts_with(&start), "{hint}");
    }
}
