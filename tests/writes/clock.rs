//! The clock is set back, so that remembered times lie in the future.

use crate::world::{BEGIN, Reply, World};
use jiff::SignedDuration;
use std::collections::BTreeMap;
use std::time::Duration;
use warmpool::cache::snapshot::WarmUpFailures;
use warmpool::model::Key;

const HOUR: i64 = 3600;

#[tokio::test(start_paused = true)]
async fn a_pool_in_creation_backoff_creates_at_once_when_the_clock_is_set_back() {
    let mut refuses = true;
    let mut world = World::new(move |asked| {
        if asked.verb == "POST" && asked.resource == "pods" && std::mem::take(&mut refuses) {
            return Reply::Code(403);
        }
        Reply::Done
    });
    world.pool("default", "python", 0);
    world.pool_is_scaled("default", "python", 1);
    world.run_for(Duration::from_secs(1)).await;
    assert_eq!(world.asked("default", "POST", "pods").len(), 1);
    world.set_clock(-HOUR);
    world.run_for(Duration::from_secs(1)).await;
    assert_eq!(world.asked("default", "POST", "pods").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn failures_and_recent_claims_are_forgotten_only_when_the_clock_is_set_back() {
    let world = World::new(|_| Reply::Done);
    world.pool("default", "python", 0);
    let key = Key::new("default", "python");
    let failures = WarmUpFailures {
        count: 5,
        last: BEGIN,
        not_running_reason: None,
    };
    let pool = world.context.shared.lock().pool(&key).unwrap();
    let mut index = world.context.shared.lock();
    let memory = index.pool_memory_mut(&pool).unwrap();
    memory.warm_up_failures = BTreeMap::from([("1".to_string(), failures)]);
    memory.recent_claims.note(BEGIN);
    drop(index);
    let known = |seconds| {
        let now = BEGIN + SignedDuration::from_secs(seconds);
        let view = warmpool::planner::pool_snapshot(&world.context.shared.lock(), &key, now, 0);
        let view = view.unwrap();
        (view.failures.len(), view.recent_claims.len())
    };
    world.set_clock(5);
    assert_eq!(known(5), (1, 1));
    world.set_clock(-HOUR);
    assert_eq!(known(5 - HOUR), (0, 0));
}
