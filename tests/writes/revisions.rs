//! Writes of stored revisions that a webhook or another controller takes back.

use crate::world::{Asked, Reply, World};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const RESOURCE: &str = "controllerrevisions";

/// The answers to the writes of the pool's revision.
#[derive(Clone, Copy, PartialEq)]
enum Answers {
    /// As it was stored first: a webhook takes each patch back.
    AsStored,
    /// As it was written.
    AsWritten,
    /// Without labels: a webhook removes them.
    WithoutLabels,
}

/// A pool of one sandbox whose revision is stored under these answers, and the revision as it was stored first.
async fn world(answers: Answers) -> (World, Arc<Mutex<Value>>) {
    let first: Arc<Mutex<Value>> = Arc::default();
    let kept = Arc::clone(&first);
    let mut world = World::new(move |asked: &Asked| {
        let mut first = kept.lock().unwrap();
        if asked.resource != RESOURCE || (asked.verb == "PATCH" && answers == Answers::AsWritten) {
            return Reply::Done;
        }
        if asked.verb == "POST" {
            if first.is_object() {
                return Reply::Code(409);
            }
            *first = asked.body.clone();
            let metadata = first["metadata"].as_object_mut().unwrap();
            let given = json!({"namespace": "default", "uid": "revision", "resourceVersion": "7"});
            metadata.extend(given.as_object().unwrap().clone());
            if answers == Answers::WithoutLabels {
                metadata.remove("labels");
            }
        }
        Reply::Object(first.clone())
    });
    world.pool("default", "python", 1);
    world.reconcile_all();
    world.pass(1).await;
    (world, first)
}

/// A user says why the template was changed.
fn says_why(world: &mut World) {
    let mut pool = world.stored("pools").remove(0);
    pool["metadata"]["annotations"] = json!({"kubernetes.io/change-cause": "a fix"});
    pool["metadata"]["resourceVersion"] = json!("90000");
    let pool = serde_json::from_value(pool).unwrap();
    let to_reconcile = world.context.shared.lock().apply_pool(&pool);
    world.trigger(to_reconcile);
}

#[tokio::test(start_paused = true)]
async fn a_change_cause_that_a_webhook_takes_back_is_written_again_after_a_pause() {
    let (mut world, _) = world(Answers::AsStored).await;
    says_why(&mut world);
    world.claim("default", "run", "python", &json!({}));
    world.pass(4).await;
    assert!(
        !world.asked("default", "POST", "pods").is_empty(),
        "I8: the sandbox that the claim took is replaced meanwhile"
    );
    world.pass(8).await;
    let written = world.asked("default", "PATCH", RESOURCE).len();
    assert_eq!(
        written, 3,
        "I8: a change-cause is written at once, after 5 s and after 10 s"
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_cause_that_another_controller_takes_back_is_written_again_after_a_pause() {
    let (mut world, first) = world(Answers::AsWritten).await;
    let first = first.lock().unwrap().clone();
    says_why(&mut world);
    let mut known = 0;
    for tenths in 0..120 {
        world.run_for(Duration::from_millis(100)).await;
        let now = world.asked("default", "PATCH", RESOURCE).len();
        if std::mem::replace(&mut known, now) < now {
            let mut again = first.clone();
            again["metadata"]["resourceVersion"] = json!((100_000 + tenths).to_string());
            let again = serde_json::from_value(again).unwrap();
            let to_reconcile = world.context.shared.lock().apply_revision(&again);
            world.trigger(to_reconcile);
        }
    }
    assert_eq!(
        known, 3,
        "I8: a change-cause is written at once, after 5 s and after 10 s"
    );
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_is_stored_without_its_labels_is_written_again_after_growing_pauses() {
    let (mut world, _) = world(Answers::WithoutLabels).await;
    world.pass(12).await;
    let requests = ["POST", "GET", "PATCH"].map(|verb| world.asked("default", verb, RESOURCE).len());
    assert!(
        requests.iter().all(|count| (1..=6).contains(count)),
        "I8: in 12 s the API server is asked for POST, GET, PATCH {requests:?}"
    );
}
