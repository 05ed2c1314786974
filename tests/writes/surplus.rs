//! A claim is seen to hold more sandboxes than the snapshot of its plan had.

use crate::world::{BEGIN, Reply, World, owner, warm};
use serde_json::json;
use std::time::Duration;
use warmpool::cache::snapshot::{Creation, PoolSnapshot};
use warmpool::model::Key;
use warmpool::planner;

/// A world with a claim for so many, and the view of its pool.
fn a_claim_for(replicas: usize) -> (World, PoolSnapshot) {
    let mut world = World::new(|_| Reply::Done);
    world.pool("default", "python", 2);
    world
        .context
        .shared
        .lock()
        .expectations
        .in_flight("uid-default-run");
    world.claim("default", "run", "python", &json!({"replicas": replicas}));
    world
        .context
        .shared
        .lock()
        .expectations
        .end_in_flight("uid-default-run");
    let key = Key::new("default", "python");
    let view = world
        .context
        .shared
        .lock()
        .pool_snapshot(&key, BEGIN, 0, Creation::Open);
    (world, view.unwrap())
}

/// The pod is seen to be the claim's.
fn is_seen_to_hold(world: &World, pod: &str) {
    let mut held = warm("default", "python", pod);
    held["metadata"]["resourceVersion"] = json!("2");
    held["metadata"]["labels"]["warmpool.dev/state"] = json!("claimed");
    held["metadata"]["ownerReferences"] = owner("SandboxClaim", "run", "uid-default-run");
    let held = serde_json::from_value(held).unwrap();
    world.context.shared.lock().apply_pod(&held);
}

#[tokio::test(start_paused = true)]
async fn a_claim_seen_to_hold_a_sandbox_is_bound_to_no_other() {
    let (mut world, view) = a_claim_for(1);
    let planned = planner::plan(&view);
    is_seen_to_hold(&world, "python-7");
    world.context.executor.dispatch(&view, &planned);
    world.run_for(Duration::from_secs(1)).await;
    assert!(world.asked("default", "PATCH", "pods").is_empty());
    let published = world.asked("default", "PATCH", "sandboxclaims/status");
    let listed = &published[0].body["status"]["sandboxes"];
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["name"], "python-7");
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_seen_to_be_the_claims_is_not_bound_again() {
    let (mut world, view) = a_claim_for(2);
    let planned = planner::plan(&view);
    let first = planned.bindings()[0].1[0].key.name.clone();
    is_seen_to_hold(&world, &first);
    world.context.executor.dispatch(&view, &planned);
    world.run_for(Duration::from_secs(1)).await;
    let bound = world.asked("default", "PATCH", "pods");
    assert_eq!(bound.len(), 1);
    assert_ne!(bound[0].name, first);
    assert_eq!(world.bound("default"), ["run"]);
}

#[tokio::test(start_paused = true)]
async fn a_plan_for_a_claim_is_not_dispatched_for_a_new_claim_of_its_name() {
    let (mut world, view) = a_claim_for(1);
    let planned = planner::plan(&view);
    let another = json!({
        "metadata": {"namespace": "default", "name": "run", "uid": "another", "resourceVersion": "3"},
        "spec": {"poolRef": {"name": "python"}},
    });
    let another = serde_json::from_value(another).unwrap();
    world.context.shared.lock().apply_claim(&another, true, BEGIN);
    world.context.executor.dispatch(&view, &planned);
    world.run_for(Duration::from_secs(1)).await;
    let tried = world.asked("default", "PATCH", "pods");
    assert!(tried.is_empty(), "{tried:?}");
}
