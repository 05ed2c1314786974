//! The merge patch of a status: it replaces the stored status, whatever that was.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use warmpool::api::claim::{BoundSandbox, Phase};
use warmpool::api::{PoolStatus, SandboxClaimStatus};
use warmpool::executor::status_patch::changed;

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
fn an_empty_list_is_removed() {
    let sandbox = json!({"name": "a", "uid": "a", "boundTime": "2026-01-31T12:00:00Z"});
    let sandbox: BoundSandbox = serde_json::from_value(sandbox).unwrap();
    let before = SandboxClaimStatus {
        phase: Some(Phase::Bound),
        sandboxes: vec![sandbox],
        ..SandboxClaimStatus::default()
    };
    let after = SandboxClaimStatus {
        phase: Some(Phase::Failed),
        ..SandboxClaimStatus::default()
    };
    assert_eq!(merged(json!(before), &changed(&before, &after)), json!(after));
}
