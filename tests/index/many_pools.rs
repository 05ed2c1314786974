//! Among many pools, a change in one asks for no plan of another.

use super::NOW;
use serde_json::{Value, json};
use std::collections::HashSet;
use warmpool::cache::index::Index;
use warmpool::cache::reconcile_request::ReconcileRequest;
use warmpool::controllers;
use warmpool::model::Key;
use warmpool::model::stored::{StoredClaim, StoredPod, StoredPool};
use warmpool::telemetry::metrics::Metrics;

const POOLS: usize = 1000;

fn name(number: usize) -> String {
    format!("pool-{number:03}")
}

fn key(name: &str) -> Key {
    Key::new("default", name)
}

fn pool(name: &str, version: u32) -> StoredPool {
    let spec = json!({
        "replicas": version, "template": {"spec": {"containers": [{"name": "main", "image": "image"}]}},
    });
    let metadata = json!({
        "namespace": "default", "name": name, "uid": name, "resourceVersion": version.to_string(), "generation": version,
    });
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

/// A claim of the same name as the pool that it waits for.
fn claim(name: &str, version: u32) -> StoredClaim {
    let metadata = json!({
        "namespace": "default", "name": name, "uid": format!("claim-{name}"), "resourceVersion": version.to_string(),
    });
    let spec = json!({"poolRef": {"name": name}, "priority": version});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

fn pod(pool: &str, version: u32, ready: bool) -> StoredPod {
    let condition = json!({
        "type": "Ready", "status": if ready { "True" } else { "False" }, "lastTransitionTime": "1970-01-01T00:00:00Z",
    });
    let owner = json!({
        "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool", "name": pool, "uid": pool, "controller": true,
    });
    let pod: Value = json!({
        "metadata": {
            "namespace": "default", "name": format!("{pool}-pod"), "uid": format!("{pool}-pod"),
            "resourceVersion": version.to_string(), "ownerReferences": [owner],
            "labels": {"warmpool.dev/pool": pool, "warmpool.dev/state": "warm"},
        },
        "status": {"phase": "Running", "conditions": [condition]},
    });
    serde_json::from_value(pod).unwrap()
}

/// A thousand pools, each with a sandbox that is not ready and a claim that waits for it, and everything planned once.
fn many() -> Index {
    let mut index = Index::default();
    for name in (0..POOLS).map(name) {
        index.apply_pool(&pool(&name, 1));
        index.apply_pod(&pod(&name, 1, false));
        index.apply_claim(&claim(&name, 1), true, NOW);
    }
    for request in index.all() {
        plan(&mut index, &request);
    }
    index
}

/// Plans an object, and returns what the plan asks to plan next.
fn plan(index: &mut Index, request: &ReconcileRequest) -> Vec<ReconcileRequest> {
    match request {
        ReconcileRequest::Pool(key) => controllers::pool::decide(index, key, NOW, 1, &Metrics::default()),
        ReconcileRequest::Claim(key) => controllers::claim::decide(index, key, NOW),
        ReconcileRequest::FailedWrites => return Vec::new(),
    }
    .to_reconcile
}

/// Everything that is planned because of an event, each object once.
fn planned(index: &mut Index, event: Vec<ReconcileRequest>) -> HashSet<ReconcileRequest> {
    let mut planned = HashSet::new();
    let mut queue = event;
    while let Some(request) = queue.pop() {
        if planned.insert(request.clone()) {
            queue.extend(plan(index, &request));
        }
    }
    planned
}

#[test]
fn an_event_of_one_pool_among_a_thousand_plans_that_pool_and_its_claim_alone() {
    let mut index = many();
    let changed = name(500);
    let pool_alone = HashSet::from([ReconcileRequest::Pool(key(&changed))]);
    let both = &pool_alone | &HashSet::from([ReconcileRequest::Claim(key(&changed))]);
    let event = index.apply_pool(&pool(&changed, 2));
    assert_eq!(planned(&mut index, event), pool_alone, "a pool was scaled");
    let event = index.apply_claim(&claim(&changed, 2), true, NOW);
    assert_eq!(planned(&mut index, event), both, "a claim changed");
    // The answer to the binding plans the claim.
    let event = index.apply_pod(&pod(&changed, 2, true));
    assert_eq!(
        planned(&mut index, event),
        pool_alone,
        "a sandbox became available"
    );
    let event = index.delete_pod(&pod(&changed, 2, true));
    assert_eq!(planned(&mut index, event), both, "the sandbox is gone");
    let event = index.delete_claim(&claim(&changed, 2));
    assert_eq!(planned(&mut index, event), both, "the claim is gone");
}
