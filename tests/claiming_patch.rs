//! W1, the write that binds a pod to a claim: it binds only an available pod, whatever the cache of the operator had.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use jiff::Timestamp;
use serde_json::{Value, json};
use warmpool::executor::pod_patch::{PodPatchError, claiming_patch};
use warmpool::model::claim::Claim;
use warmpool::model::lifecycle_hook::Hook;
use warmpool::model::pool::Pool;
use warmpool::model::sandbox::Sandbox;
use warmpool::model::stored::{StoredClaim, StoredPod};

fn pod() -> Value {
    json!({
        "metadata": {
            "namespace": "default", "name": "python-abc-xyz", "uid": "pod-uid", "resourceVersion": "7",
            "labels": {"warmpool.dev/pool": "python", "warmpool.dev/revision": "abc", "warmpool.dev/state": "warm"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "other-uid"},
                {"apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool", "name": "python", "uid": "pool-uid", "controller": true},
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "True"}],
        },
    })
}

fn claim(metadata: Value) -> Claim {
    let stored: StoredClaim = serde_json::from_value(json!({
        "metadata": {"namespace": "default", "name": "run-42", "uid": "claim-uid"},
        "spec": {"poolRef": {"name": "python"}, "podMetadata": metadata},
    }))
    .unwrap();
    Claim::read(&stored, 1, Timestamp::UNIX_EPOCH)
}

fn gated_by(hook: &Hook) -> Pool {
    let mut pool = Pool::default();
    pool.spec.availability_rule.pre_normal = hook.clone();
    pool
}

/// The patch made from `cached`, applied to `stored` as the API server would.
fn bind(claim: &Claim, cached: &Value, stored: Value) -> Result<Value, String> {
    bind_gated(&Hook::default(), claim, cached, stored)
}

fn bind_gated(hook: &Hook, claim: &Claim, cached: &Value, mut stored: Value) -> Result<Value, String> {
    let cached: StoredPod = serde_json::from_value(cached.clone()).unwrap();
    let patch = claiming_patch(claim, &Sandbox::read(&cached).unwrap(), &gated_by(hook));
    let patch = patch.map_err(|error| error.to_string())?;
    // The API server holds a `test` of an absent member against null for true; the library does not.
    let (absent, rest): (Vec<_>, Vec<_>) = patch.0.into_iter().partition(|operation| {
        matches!(operation, json_patch::PatchOperation::Test(t) if t.value.is_null() && stored.pointer(t.path.as_str()).is_none())
    });
    assert!(!absent.is_empty() || stored.pointer("/metadata/deletionTimestamp").is_some());
    json_patch::patch(&mut stored, &json_patch::Patch(rest)).map_err(|error| error.to_string())?;
    Ok(stored)
}

#[test]
fn an_available_pod_becomes_the_claims_in_one_write() {
    let metadata = json!({"labels": {"team": "red"}, "annotations": {"example.com/run": "42"}});
    let bound = bind(&claim(metadata), &pod(), pod()).unwrap();
    let labels = &bound["metadata"]["labels"];
    assert_eq!(labels["warmpool.dev/state"], "claimed");
    assert_eq!(labels["warmpool.dev/claim"], "run-42");
    assert_eq!(labels["warmpool.dev/claim-uid"], "claim-uid");
    assert_eq!(labels["team"], "red");
    assert_eq!(bound["metadata"]["annotations"], json!({"example.com/run": "42"}));
    let owners = bound["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!(owners[0]["uid"], "other-uid");
    assert_eq!(
        (&owners[1]["kind"], &owners[1]["uid"]),
        (&"SandboxClaim".into(), &"claim-uid".into())
    );
    assert_eq!(owners[1]["controller"], true);
    assert_eq!(owners.len(), 2);
}

#[test]
fn annotations_that_are_there_already_are_kept() {
    let mut annotated = pod();
    annotated["metadata"]["annotations"] = json!({"cni": "set by the network"});
    let metadata = json!({"annotations": {"run": "42"}});
    let bound = bind(&claim(metadata.clone()), &annotated, annotated.clone()).unwrap();
    assert_eq!(
        bound["metadata"]["annotations"],
        json!({"cni": "set by the network", "run": "42"})
    );
    let refused = bind(&claim(metadata), &pod(), annotated);
    assert!(
        refused.is_err(),
        "they came after the cache was read, and would be lost"
    );
}

#[test]
fn a_pod_that_has_changed_is_a_conflict() {
    let change = |path: &str, value: Value| {
        let mut changed = pod();
        *changed.pointer_mut(path).unwrap() = value;
        changed
    };
    let mut terminating = pod();
    terminating["metadata"]["deletionTimestamp"] = json!("2026-01-31T12:00:00Z");
    let mut swapped = pod();
    swapped["status"]["conditions"].as_array_mut().unwrap().reverse();
    for (what, stored) in [
        ("terminating", terminating),
        (
            "claimed by another",
            change("/metadata/labels/warmpool.dev~1state", json!("claimed")),
        ),
        (
            "draining",
            change("/metadata/labels/warmpool.dev~1state", json!("draining")),
        ),
        (
            "another pod of this name",
            change("/metadata/uid", json!("another")),
        ),
        (
            "owned by another",
            change("/metadata/ownerReferences/1/uid", json!("another")),
        ),
        ("not ready", change("/status/conditions/1/status", json!("False"))),
        (
            "failed, and Ready as it was",
            change("/status/phase", json!("Failed")),
        ),
        (
            "ready is unknown",
            change("/status/conditions/1/status", json!("Unknown")),
        ),
        ("conditions in another order", swapped),
    ] {
        assert!(bind(&claim(json!({})), &pod(), stored).is_err(), "{what}");
    }
}

#[test]
fn a_pod_without_its_pre_normal_handler_is_a_conflict() {
    let hook = Hook {
        labels: [("example.com/checked".to_string(), "yes".to_string())].into(),
        finalizers: vec!["example.com/registered".into()],
    };
    let mut open = pod();
    open["metadata"]["labels"]["example.com/checked"] = json!("yes");
    open["metadata"]["finalizers"] = json!(["example.com/other", "example.com/registered"]);
    let claim = claim(json!({}));
    assert!(bind_gated(&hook, &claim, &open, open.clone()).is_ok());
    let mut relabelled = open.clone();
    relabelled["metadata"]["labels"]["example.com/checked"] = json!("no");
    let mut unlabelled = open.clone();
    unlabelled["metadata"]["labels"]
        .as_object_mut()
        .unwrap()
        .remove("example.com/checked");
    let mut unregistered = open.clone();
    unregistered["metadata"]["finalizers"] = json!(["example.com/other"]);
    for stored in [relabelled, unlabelled, unregistered] {
        assert!(bind_gated(&hook, &claim, &open, stored).is_err());
    }
    assert!(
        bind_gated(&hook, &claim, &pod(), open).is_err(),
        "a cache that never saw the handlers binds nothing"
    );
}

#[test]
fn labels_of_the_operator_in_pod_metadata_are_never_written() {
    let metadata = json!({"labels": {"warmpool.dev/state": "warm", "warmpool.dev/claim-uid": "forged"}});
    let bound = bind(&claim(metadata), &pod(), pod()).unwrap();
    assert_eq!(bound["metadata"]["labels"]["warmpool.dev/state"], "claimed");
    assert_eq!(bound["metadata"]["labels"]["warmpool.dev/claim-uid"], "claim-uid");
}

#[test]
fn a_pod_of_another_claim_is_never_patched() {
    let owner = json!({
        "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaim", "name": "a", "uid": "a", "controller": true,
    });
    let mut held = pod();
    held["metadata"]["ownerReferences"] = json!([owner]);
    let cached: StoredPod = serde_json::from_value(held.clone()).unwrap();
    let sandbox = Sandbox::read(&cached).unwrap();
    let patch = claiming_patch(&claim(json!({})), &sandbox, &Pool::default());
    assert_eq!(patch, Err(PodPatchError::Owner(sandbox.key)));
}

#[test]
fn a_pod_without_a_condition_ready_is_never_patched() {
    let mut starting = pod();
    starting["status"]["conditions"] = json!([]);
    let cached: StoredPod = serde_json::from_value(starting).unwrap();
    let sandbox = Sandbox::read(&cached).unwrap();
    let patch = claiming_patch(&claim(json!({})), &sandbox, &Pool::default());
    assert_eq!(patch, Err(PodPatchError::NotReady(sandbox.key)));
}

#[test]
fn a_replacement_says_on_which_version_of_its_claim_it_was_chosen() {
    let first = claim(json!({}));
    let bound = bind(&first, &pod(), pod()).unwrap();
    assert_eq!(bound["metadata"].get("annotations"), None, "nothing was lost yet");
    let mut again = claim(json!({}));
    again.status.wait_seconds = Some(0.5);
    again.resource_version = "42".into();
    let bound = bind(&again, &pod(), pod()).unwrap();
    assert_eq!(
        bound["metadata"]["annotations"],
        json!({"warmpool.dev/chosen-on": "42"})
    );
}
