//! An answer is lost and a later try is rejected: a live read finds out whether the first try happened.

use crate::world::{Asked, Reply, World, owner, warm};
use jiff::Timestamp;
use serde_json::json;
use std::collections::{BTreeSet, HashSet};
use std::time::Duration;
use warmpool::cache::watch::Indexed;
use warmpool::model::Key;
use warmpool::model::request::{Answer, Request};
use warmpool::model::stored::StoredPod;

fn is_of_pods(asked: &Asked, verb: &str) -> bool {
    asked.verb == verb && asked.resource == "pods"
}

#[tokio::test(start_paused = true)]
async fn a_binding_rejected_after_a_lost_answer_is_read_until_its_outcome_is_known() {
    let (mut tries, mut reads) = (0, 0);
    let mut world = World::new(move |asked| match asked.verb.as_str() {
        // The first is carried out and its answer lost.
        "PATCH" if asked.resource == "pods" => {
            tries += 1;
            Reply::Code(if tries == 1 { 504 } else { 403 })
        }
        "GET" => {
            reads += 1;
            if reads <= 3 {
                return Reply::Code(403);
            }
            let mut pod = warm("default", "python", &asked.name);
            pod["metadata"]["resourceVersion"] = json!("2");
            pod["metadata"]["labels"]["warmpool.dev/state"] = json!("claimed");
            pod["metadata"]["ownerReferences"] = owner("SandboxClaim", "run", "uid-default-run");
            Reply::Object(pod)
        }
        _ => Reply::Done,
    });
    world.pool("default", "python", 3);
    world.claim("default", "run", "python", &json!({}));
    world.run_for(Duration::from_secs(20)).await;
    let tried = world.asked("default", "PATCH", "pods");
    let first = &tried[0].name;
    assert!(tried.iter().all(|a| a.name == *first), "one sandbox and no other");
    assert_eq!(world.bound("default"), ["run"]);
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_cannot_be_read_after_a_lost_answer_is_not_made_again() {
    let mut tries = 0;
    let mut world = World::new(move |asked| match asked.verb.as_str() {
        "POST" if is_of_pods(asked, "POST") => {
            tries += 1;
            Reply::Code(if tries == 1 { 504 } else { 403 })
        }
        "GET" => Reply::Code(403),
        _ => Reply::Done,
    });
    world.pool("default", "python", 0);
    world.pool_is_scaled("default", "python", 1);
    world.run_for(Duration::from_secs(20)).await;
    let made = world.asked("default", "POST", "pods");
    assert!(!made.is_empty());
    assert!(made.iter().all(|a| a.name == made[0].name), "{made:?}");
    let pending = world.pending().join("; ");
    assert!(
        pending.contains(&made[0].name),
        "nobody knows whether it happened: {pending}"
    );
}

/// A world in which a creation without an answer waits for a slot to be repeated, and the name of its pod.
async fn a_creation_that_waits() -> (World, String) {
    let (mut deleted, mut made) = (BTreeSet::new(), false);
    let mut world = World::new(
        move |asked| match (asked.verb.as_str(), asked.namespace.as_str()) {
            // The retries hold their slots until their deadline.
            ("DELETE", "sick") if deleted.insert(asked.name.clone()) => Reply::Code(503),
            ("DELETE", "sick") => Reply::Never,
            ("POST", "default") if asked.resource == "pods" && !std::mem::replace(&mut made, true) => {
                Reply::Code(504)
            }
            ("GET", "default") => Reply::Code(404),
            _ => Reply::Done,
        },
    );
    for pool in (0..40).map(|n| format!("python-{n}")) {
        world.pool("sick", &pool, 1);
        world.pool_is_scaled("sick", &pool, 0);
    }
    world.run_for(Duration::from_secs(2)).await;
    world.pool("default", "python", 0);
    world.pool_is_scaled("default", "python", 1);
    world.run_for(Duration::from_secs(3)).await;
    let pod = world.asked("default", "POST", "pods")[0].name.clone();
    (world, pod)
}

#[tokio::test(start_paused = true)]
async fn a_creation_whose_pod_appears_while_it_waits_for_a_slot_is_not_repeated() {
    let (mut world, pod) = a_creation_that_waits().await;
    world.pool_is_scaled("default", "python", 0);
    world.pod_comes(warm("default", "python", &pod));
    world.pod_goes("default", &pod);
    world.run_for(Duration::from_secs(20)).await;
    assert_eq!(world.asked("default", "POST", "pods").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_waits_too_long_for_a_slot_is_read_before_it_is_repeated() {
    let (mut world, _) = a_creation_that_waits().await;
    world.run_for(Duration::from_secs(20)).await;
    assert_eq!(world.asked("default", "GET", "pods").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_read_before_a_new_list_says_nothing_of_a_creation() {
    let mut is_first = true;
    let mut world = World::new(move |asked| match asked.verb.as_str() {
        "POST" if asked.resource == "pods" => {
            Reply::Code(if std::mem::take(&mut is_first) { 504 } else { 409 })
        }
        "GET" => Reply::Never,
        _ => Reply::Done,
    });
    world.pool("default", "python", 0);
    world.pool_is_scaled("default", "python", 1);
    world.run_for(Duration::from_secs(1)).await;
    let made = world.asked("default", "POST", "pods").len();
    let pod = world.asked("default", "POST", "pods")[0].name.clone();
    assert_eq!(world.asked("default", "GET", "pods").len(), 1);
    let to_reconcile = {
        let mut index = world.context.shared.lock();
        let before = index.watch_progress();
        StoredPod::retain(&mut index, &HashSet::new());
        let live = serde_json::from_value(warm("default", "python", &pod)).unwrap();
        let read = Request::ReadPod(Key::new("default", &pod));
        index.take_over(&read, Ok(Answer::Pod(live)), before, Timestamp::now())
    };
    world.trigger(to_reconcile);
    world.reconcile_all();
    world.run_for(Duration::from_secs(8)).await;
    assert_eq!(
        world.asked("default", "POST", "pods").len(),
        made,
        "I4: what may have been created is created again"
    );
    assert!(world.pending().join("; ").contains(&pod), "{:?}", world.pending());
}
