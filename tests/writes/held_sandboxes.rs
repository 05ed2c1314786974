//! Sandboxes on hold after a conflict or a rejected write.

use crate::world::{Asked, NOT_ADMITTED, Reply, World, warm};
use serde_json::json;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use warmpool::cache::synced_cache::SharedCache;
use warmpool::model::stored::StoredPod;

/// The only sandbox of the pool, as changed `version - 1` times.
fn at(version: u32) -> serde_json::Value {
    let mut stored = warm("default", "python", "python-0");
    stored["metadata"]["resourceVersion"] = json!(version.to_string());
    stored
}

fn shown(shared: &SharedCache, version: u32) {
    let stored: StoredPod = serde_json::from_value(at(version)).unwrap();
    shared.lock().apply_pod(&stored);
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_changed_before_the_conflict_is_retried_at_once() {
    let shared: Arc<OnceLock<SharedCache>> = Arc::default();
    let known = Arc::clone(&shared);
    let mut tries = 0;
    let rule = move |asked: &Asked| match (asked.verb.as_str(), asked.resource.as_str()) {
        ("DELETE", "pods") => {
            tries += 1;
            if tries == 1 { Reply::Code(409) } else { Reply::Done }
        }
        ("GET", "pods") => {
            shown(known.get().unwrap(), 2);
            Reply::Object(at(2))
        }
        _ => Reply::Done,
    };
    let mut world = World::new(rule);
    shared.set(world.context.shared.clone()).ok().unwrap();
    world.pool("default", "python", 1);
    world.pool_is_scaled("default", "python", 0);
    world.run_for(Duration::from_secs(1)).await;
    assert_eq!(world.asked("default", "DELETE", "pods").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_change_during_the_hold_adds_no_tries() {
    let mut world = World::new(
        |asked: &Asked| match (asked.verb.as_str(), asked.resource.as_str()) {
            ("DELETE", "pods") => Reply::Code(403),
            _ => Reply::Done,
        },
    );
    world.pool("default", "python", 1);
    world.pool_is_scaled("default", "python", 0);
    for version in 2..12 {
        world.run_for(Duration::from_secs(1)).await;
        shown(&world.context.shared, version);
        world.reconcile_all();
    }
    world.run_for(Duration::from_secs(1)).await;
    let before = world.asked("default", "DELETE", "pods").len();
    world.run_for(Duration::from_secs(20)).await;
    let after = world.asked("default", "DELETE", "pods").len();
    assert!(
        (3..=5).contains(&(after - before)),
        "{} tries in 20 s",
        after - before
    );
}

#[tokio::test(start_paused = true)]
async fn no_other_sandbox_is_deleted_for_a_sandbox_that_cannot_be() {
    for reply in [Reply::Throttled(30), Reply::Code(503), NOT_ADMITTED] {
        let case = format!("{reply:?}");
        let mut world =
            World::new(
                move |asked: &Asked| match (asked.verb.as_str(), asked.resource.as_str()) {
                    ("DELETE", "pods") => reply.clone(),
                    ("GET", "pods") => Reply::Object(warm("default", "python", &asked.name)),
                    _ => Reply::Done,
                },
            );
        world.pool("default", "python", 11);
        world.pool_is_scaled("default", "python", 10);
        world.run_for(Duration::from_secs(120)).await;
        let asked = world.asked("default", "DELETE", "pods");
        let of_one = asked.iter().filter(|a| a.name == asked[0].name).count();
        assert!(of_one > 2, "{case}");
        assert_eq!(asked.len(), of_one, "{case}");
    }
}
