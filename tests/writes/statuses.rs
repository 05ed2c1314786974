//! When the status of a pool is written, and how often.

use crate::world::{Asked, Reply, World};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// The least time between two writes.
const SECOND: Duration = Duration::from_secs(1);
/// What a claim or an answer takes to be reconciled in these worlds.
const SOON: Duration = Duration::from_millis(50);

/// When the status was written.
type Writes = Arc<Mutex<Vec<Instant>>>;

/// A pool whose status was written for the last time long ago, and the writes from then on.
async fn at_rest(sandboxes: usize) -> (World, Writes) {
    let writes = Writes::default();
    let log = Arc::clone(&writes);
    let mut world = World::new(move |asked: &Asked| {
        if asked.resource == "pools/status" {
            log.lock().unwrap().push(Instant::now());
        }
        Reply::Done
    });
    world.pool("default", "python", sandboxes);
    world.reconcile_all();
    world.pass(10).await;
    assert_eq!(status(&world)["available"], sandboxes);
    writes.lock().unwrap().clear();
    (world, writes)
}

fn status(world: &World) -> Value {
    world.stored("pools")[0]["status"].clone()
}

/// So many claims come and are bound, one in each pause.
async fn claims(world: &mut World, count: usize, pause: Duration) {
    for n in 0..count {
        world.claim("default", &format!("run-{n}"), "python", &json!({}));
        world.run_for(pause).await;
    }
}

fn expect_pauses(writes: &[Instant]) {
    for (one, next) in writes.iter().zip(writes.iter().skip(1)) {
        let pause = *next - *one;
        assert!(pause >= SECOND, "two statuses within {pause:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_is_in_the_status_at_once_where_the_last_write_is_a_second_ago() {
    let (mut world, writes) = at_rest(3).await;
    for (claimed, claim) in ["one", "two"].into_iter().enumerate() {
        world.claim("default", claim, "python", &json!({}));
        world.run_for(SOON).await;
        assert_eq!(status(&world)["claimed"], claimed + 1, "after claim {claim}");
        assert_eq!(writes.lock().unwrap().drain(..).count(), 1, "after claim {claim}");
        world.pass(2).await;
        writes.lock().unwrap().clear();
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_one_second_are_written_once_and_the_last_state_always_is() {
    for last in 1..=12 {
        let (mut world, writes) = at_rest(12).await;
        let begin = Instant::now();
        claims(&mut world, last, Duration::from_millis(130)).await;
        world.run_for(SECOND + SOON).await;
        assert_eq!(status(&world)["claimed"], last);
        let written = writes.lock().unwrap().clone();
        expect_pauses(&written);
        assert!(written.first().is_some_and(|first| *first - begin <= SOON));
        world.pass(10).await;
        assert_eq!(
            writes.lock().unwrap().len(),
            written.len(),
            "the state is written once"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn in_a_steady_load_one_status_is_written_for_the_claims_of_a_second() {
    let (mut world, writes) = at_rest(200).await;
    claims(&mut world, 200, Duration::from_millis(50)).await;
    let written = writes.lock().unwrap().clone();
    expect_pauses(&written);
    assert!(
        (9..=11).contains(&written.len()),
        "{} writes in 10 s",
        written.len()
    );
    assert_eq!(world.bound("default").len(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_status_of_a_claim_that_the_api_server_does_not_keep_is_written_again_after_a_pause() {
    let mut world = World::new(|asked: &Asked| match asked.resource.as_str() {
        "sandboxclaims/status" => {
            let mut unchanged = asked.body.clone();
            unchanged["status"] = json!({});
            Reply::Object(unchanged)
        }
        _ => Reply::Done,
    });
    world.pool("default", "python", 1);
    world.claim("default", "run", "python", &json!({}));
    world.pass(12).await;
    let written = world.asked("default", "PUT", "sandboxclaims/status").len();
    assert_eq!(
        written, 3,
        "I8: a status is written at once, after 5 s and after 10 s"
    );
}

#[tokio::test(start_paused = true)]
async fn a_status_of_a_pool_that_the_api_server_does_not_keep_is_written_again_after_a_pause() {
    let mut world = World::new(|asked: &Asked| match asked.resource.as_str() {
        "pools/status" => {
            let mut unchanged = asked.body.clone();
            unchanged["metadata"] = json!({
                "namespace": "default", "name": "python", "uid": "uid-default-python", "resourceVersion": "1",
            });
            Reply::Object(unchanged)
        }
        _ => Reply::Done,
    });
    world.pool("default", "python", 1);
    world.reconcile_all();
    world.pass(12).await;
    let written = world.asked("default", "PATCH", "pools/status").len();
    assert_eq!(
        written, 3,
        "I8: a status is written at once, after 5 s and after 10 s"
    );
}
