//! The shutdown of the operator waits for requests in flight and nothing else.

use crate::world::{Asked, Reply, World};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

/// A world with a pool of one sandbox and a claim for it. Every request for a pod is answered with `reply`.
fn answering(reply: Reply) -> World {
    let mut world = World::new(move |asked: &Asked| match asked.resource.as_str() {
        "pods" => reply.clone(),
        _ => Reply::Done,
    });
    world.pool("default", "python", 1);
    world.claim("default", "run", "python", &json!({}));
    world
}

async fn stops_in(mut world: World) -> Duration {
    world.run_for(Duration::from_secs(1)).await;
    let start = Instant::now();
    world.context.executor.finish().await;
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_again_and_again_holds_up_no_stop() {
    let took = stops_in(answering(Reply::Code(500))).await;
    assert!(took < Duration::from_millis(100), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_on_the_wire_is_waited_for_and_not_sent_again() {
    let took = stops_in(answering(Reply::Never)).await;
    assert!(
        took > Duration::from_secs(5) && took < Duration::from_secs(16),
        "{took:?}"
    );
}
