//! Checks the hint that no operator is at work.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use serde_json::json;
use std::collections::BTreeMap;
use warmpool::cli::kubectl::operator_lease::hint_about;

fn now() -> Timestamp {
    "2026-01-31T12:00:00Z".parse().unwrap()
}

fn lease(holder: &str, renewed: &str) -> Lease {
    shard_lease("warmpool", None, holder, renewed)
}

/// The lease of the operator that serves the pools of `selector`.
fn shard_lease(name: &str, selector: Option<&str>, holder: &str, renewed: &str) -> Lease {
    let annotations = selector.map(|selector| json!({"warmpool.dev/pool-selector": selector}));
    serde_json::from_value(json!({
        "metadata": {"namespace": "warmpool-system", "name": name, "annotations": annotations},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed},
    }))
    .unwrap()
}

#[test]
fn a_lease_that_is_held_needs_no_hint() {
    let held = || lease("a", "2026-01-31T11:59:50.000000Z");
    let other = lease("", "2026-01-31T11:00:00.000000Z");
    assert_eq!(hint_about(&[held()], None, now()), None);
    assert_eq!(hint_about(&[other, held()], None, now()), None);
}

#[test]
fn a_lease_that_nobody_renews_or_holds_is_told() {
    for (holder, renewed) in [("a", "2026-01-31T11:59:45Z"), ("", "2026-01-31T11:59:59Z")] {
        let hint = hint_about(&[lease(holder, renewed)], None, now()).unwrap();
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
    assert_eq!(hint_about(&[], None, now()), None);
}

#[test]
fn only_the_lease_of_the_shard_of_a_pool_counts() {
    let (fresh, old) = ("2026-01-31T11:59:50Z", "2026-01-31T11:00:00Z");
    let leases = [
        shard_lease("warmpool-one", Some("shard=one"), "a", fresh),
        shard_lease("warmpool-rest", Some("shard!=one"), "b", old),
    ];
    let labels = |shard: &str| BTreeMap::from([("shard".to_string(), shard.to_string())]);
    assert_eq!(hint_about(&leases, Some(&labels("one")), now()), None);
    let hint = hint_about(&leases, Some(&labels("two")), now()).unwrap();
    let start = "No operator has held the lease warmpool-system/warmpool-rest since 2026-01-31T11:00:00Z:";
    assert!(hint.starts_with(start), "{hint}");
    assert_eq!(hint_about(&leases, None, now()), None, "some operator is at work");
}
