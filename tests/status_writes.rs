//! What is sent to write a status: it replaces the stored one.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use warmpool::api::claim::Phase;
use warmpool::api::{PoolStatus, SandboxClaimStatus};
use warmpool::executor::claim_status_body::claim_status_body;
use warmpool::executor::pool_status_patch::changed;
use warmpool::model::claim::Claim;
use warmpool::model::stored::StoredClaim;

/// `patch` applied as RFC 7386 has it.
fn merged(mut stored: Value, patch: &Value) -> Value {
    json_patch::merge(&mut stored, patch);
    stored
}

#[test]
fn an_omitted_field_is_removed() {
    let before = PoolStatus {
        last_progress_time: Some(Time("2026-01-31T12:00:00Z".parse().unwrap())),
        collision_count: Some(1),
        replicas: 3,
        ..PoolStatus::default()
    };
    let after = PoolStatus {
        replicas: 4,
        ..PoolStatus::default()
    };
    assert_eq!(merged(json!(before), &changed(&before, &after)), json!(after));
}

#[test]
fn the_status_of_a_claim_replaces_that_of_the_version_that_it_was_decided_on() {
    let stored: StoredClaim = serde_json::from_value(json!({
        "metadata": {
            "namespace": "default", "name": "run", "uid": "u", "resourceVersion": "7",
            "creationTimestamp": "2026-01-31T12:00:00Z", "labels": {"team": "a"},
        },
        "spec": {"poolRef": {"name": "python"}},
        "status": {"phase": "Pending", "wait": "3s"},
    }))
    .unwrap();
    let claim = Claim::read(&stored, 0, "2026-01-31T12:00:00Z".parse().unwrap());
    let status = SandboxClaimStatus {
        phase: Some(Phase::Failed),
        ..SandboxClaimStatus::default()
    };
    let expected = json!({
        "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaim",
        "metadata": {"namespace": "default", "name": "run", "uid": "u", "resourceVersion": "7"},
        "status": status,
    });
    assert_eq!(json!(claim_status_body(&claim, &status)), expected);
}
