//! The API server says that a sandbox is gone, and the watch has yet to show it.

use crate::world::{Asked, Reply, World, warm};
use serde_json::json;
use std::time::Duration;

/// Longer than the hold after a conflict, shorter than the timeout of an expectation.
const A_WHILE: Duration = Duration::from_secs(20);

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_was_gone_when_it_was_to_be_bound_counts_for_nothing() {
    let mut first = None;
    let mut world = World::new(
        move |asked: &Asked| match (asked.verb.as_str(), asked.resource.as_str()) {
            ("PATCH", "pods") if *first.get_or_insert(asked.name.clone()) == asked.name => Reply::Code(404),
            _ => Reply::Done,
        },
    );
    world.pool("default", "python", 3);
    world.claim("default", "run", "python", &json!({}));
    world.run_for(A_WHILE).await;
    assert_eq!(world.bound("default"), ["run"]);
    assert_eq!(world.asked("default", "PATCH", "pods").len(), 2);
    // One for the sandbox that is gone, one for the claim's.
    assert_eq!(world.asked("default", "POST", "pods").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_is_gone_is_not_drained_again() {
    let mut world = World::new(
        move |asked: &Asked| match (asked.verb.as_str(), asked.resource.as_str()) {
            ("PATCH", "pods") => Reply::Code(404),
            _ => Reply::Done,
        },
    );
    let pool = json!({
        "metadata": {
            "namespace": "default", "name": "python", "uid": "uid-default-python", "resourceVersion": "1",
        },
        "spec": {
            "replicas": 0, "template": {"spec": {"containers": []}},
            "lifecycle": {"preDelete": {"labelsHandler": {"logs": "kept"}}},
        },
    });
    let mut pod = warm("default", "python", "python-0");
    pod["metadata"]["labels"]["logs"] = json!("kept");
    let pool = serde_json::from_value(pool).unwrap();
    world.context.shared.lock().apply_pool(&pool);
    world.pod_comes(pod);
    world.run_for(A_WHILE).await;
    assert_eq!(world.asked("default", "PATCH", "pods").len(), 1);
}
