//! A claim holds more, or is another one, than the watch had shown while a write on it was in flight.

use crate::world::{Asked, BEGIN, Reply, World, owner, warm};
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use warmpool::cache::synced_cache::SharedCache;
use warmpool::model::stored::StoredPod;

/// A world with a claim for so many sandboxes that has not been reconciled yet.
fn a_claim_for(replicas: usize) -> World {
    let mut world = World::new(|_| Reply::Done);
    world.pool("default", "python", 2);
    _ = world.claim_arrives("default", "run", "python", &json!({"replicas": replicas}));
    world
}

/// Everything is reconciled.
async fn is_decided_on(world: &mut World) {
    world.reconcile_all();
    world.run_for(Duration::from_secs(1)).await;
}

/// The watch shows that the claim owns the pod.
fn is_seen_to_hold(world: &World, pod: &str) {
    world.context.shared.lock().apply_pod(&held(pod));
}

/// The pod as the claim owns it.
fn held(pod: &str) -> StoredPod {
    let mut held = warm("default", "python", pod);
    held["metadata"]["resourceVersion"] = json!("2");
    held["metadata"]["labels"]["warmpool.dev/state"] = json!("claimed");
    held["metadata"]["ownerReferences"] = owner("SandboxClaim", "run", "uid-default-run");
    serde_json::from_value(held).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_claim_seen_to_hold_a_sandbox_is_bound_to_no_other() {
    let mut world = a_claim_for(1);
    is_seen_to_hold(&world, "python-7");
    is_decided_on(&mut world).await;
    assert!(world.asked("default", "PATCH", "pods").is_empty());
    let published = world.asked("default", "PUT", "sandboxclaims/status");
    let listed = &published[0].body["status"]["sandboxes"];
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["name"], "python-7");
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_seen_to_be_the_claims_is_not_bound_again() {
    let mut world = a_claim_for(2);
    is_seen_to_hold(&world, "python-1");
    is_decided_on(&mut world).await;
    let bound = world.asked("default", "PATCH", "pods");
    assert_eq!(bound.len(), 1);
    assert_eq!(bound[0].name, "python-0");
    assert_eq!(world.bound("default"), ["run"]);
}

#[tokio::test(start_paused = true)]
async fn a_plan_for_a_claim_is_not_carried_out_for_a_new_claim_of_its_name() {
    let mut world = a_claim_for(1);
    let another = json!({
        "metadata": {
            "namespace": "default", "name": "run", "uid": "another", "resourceVersion": "3",
            "creationTimestamp": BEGIN,
        },
        "spec": {"poolRef": {"name": "python"}},
    });
    let another = serde_json::from_value(another).unwrap();
    world.context.shared.lock().apply_claim(&another, true, BEGIN);
    is_decided_on(&mut world).await;
    let bound = world.asked("default", "PATCH", "pods");
    assert_eq!(bound.len(), 1, "{bound:?}");
    let operations = bound[0].body.as_array().unwrap();
    let owners: Vec<&Value> = operations
        .iter()
        .filter(|operation| operation["op"] == "replace")
        .map(|operation| &operation["value"]["uid"])
        .collect();
    assert_eq!(owners, ["another"]);
}

/// A claim that is bound, and that is then seen to hold `python-7` as well, because a second leader bound that to it.
/// `answer` is called when the claim is read for the first time, and says how.
async fn with_a_surplus_sandbox(answer: impl Fn(&SharedCache) -> Reply + Send + 'static) -> World {
    let shared: Arc<OnceLock<SharedCache>> = Arc::default();
    let known = Arc::clone(&shared);
    let mut reads = 0;
    let rule = move |asked: &Asked| {
        let is_read = asked.verb == "GET" && asked.resource == "sandboxclaims";
        reads += usize::from(is_read);
        match known.get().filter(|_| is_read && reads == 1) {
            Some(shared) => answer(shared),
            None => Reply::Done,
        }
    };
    let mut world = World::new(rule);
    shared.set(world.context.shared.clone()).ok().unwrap();
    world.pool("default", "python", 1);
    world.claim("default", "run", "python", &json!({}));
    world.run_for(Duration::from_secs(1)).await;
    world.claim_is_seen_as_written("default", "run");
    is_seen_to_hold(&world, "python-7");
    is_decided_on(&mut world).await;
    world
}

fn deleted(world: &World) -> Vec<String> {
    let deleted = world.asked("default", "DELETE", "pods").into_iter();
    deleted.map(|asked| asked.name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_surplus_sandbox_that_goes_while_the_claim_is_read_keeps_no_other_from_being_released() {
    let mut world = with_a_surplus_sandbox(|shared| {
        shared.lock().delete_pod(&held("python-7"));
        Reply::Done
    })
    .await;
    is_seen_to_hold(&world, "python-8");
    is_decided_on(&mut world).await;
    assert_eq!(
        deleted(&world),
        ["python-8"],
        "I8: the claim keeps what its status does not list"
    );
}

#[tokio::test(start_paused = true)]
async fn a_surplus_sandbox_that_changes_while_the_claim_is_read_is_released_after_another_read() {
    let world = with_a_surplus_sandbox(|shared| {
        let mut chosen = held("python-7");
        chosen.metadata.resource_version = Some("3".into());
        shared.lock().apply_pod(&chosen);
        Reply::Done
    })
    .await;
    let requests = world.requests();
    let before_deletion = requests.iter().take_while(|asked| asked.verb != "DELETE");
    let is_read = |asked: &&Asked| asked.verb == "GET" && asked.resource == "sandboxclaims";
    assert_eq!(
        before_deletion.filter(is_read).count(),
        2,
        "I2: another leader may have chosen the sandbox after the read"
    );
    assert_eq!(deleted(&world), ["python-7"]);
}

#[tokio::test(start_paused = true)]
async fn no_surplus_sandbox_is_released_when_the_claim_could_not_be_read() {
    let mut world = with_a_surplus_sandbox(|_| Reply::Code(500)).await;
    assert!(
        deleted(&world).is_empty(),
        "I2: another leader may have published the sandbox"
    );
    world.run_for(Duration::from_secs(30)).await;
    assert_eq!(deleted(&world), ["python-7"]);
}

/// Another leader has seen the loss and bound the next sandbox. It publishes that in a moment.
#[tokio::test(start_paused = true)]
async fn what_replaces_a_lost_sandbox_is_never_released_as_surplus() {
    let mut world = World::new(|asked| match (asked.verb.as_str(), asked.name.as_str()) {
        ("GET", "python-0") => Reply::Code(404),
        _ => Reply::Done,
    });
    world.pool("default", "python", 1);
    world.claim("default", "run", "python", &json!({"onSandboxLost": "Replace"}));
    world.run_for(Duration::from_secs(1)).await;
    world.claim_is_seen_as_written("default", "run");
    world.run_for(Duration::from_secs(1)).await;
    world.pod_goes("default", "python-0");
    is_seen_to_hold(&world, "python-7");
    is_decided_on(&mut world).await;
    world.run_for(Duration::from_secs(30)).await;
    let deleted = deleted(&world);
    assert!(!deleted.contains(&"python-7".to_string()), "I2: {deleted:?}");
}
