//! How long a decision to take a sandbox away stands while the API server does not carry it out.

use crate::world::{Asked, Reply, World, warm};
use serde_json::json;
use std::time::Duration;

/// A world with one sandbox that is to go and is needed again a second later. Its deletions meet `reply`.
async fn changes_its_mind(reply: Reply) -> World {
    let mut world = World::new(
        move |asked: &Asked| match (asked.verb.as_str(), asked.what.as_str()) {
            ("DELETE", "pods") => reply.clone(),
            ("GET", "pods") => Reply::Object(warm("default", "python", &asked.name)),
            _ => Reply::Done,
        },
    );
    world.pool("default", "python", 1);
    world.pool_is_scaled("default", "python", 0);
    world.go_on(Duration::from_secs(1)).await;
    world.pool_is_scaled("default", "python", 1);
    world
}

fn deletions(world: &World) -> usize {
    world.asked("default", "DELETE", "pods").len()
}

#[tokio::test(start_paused = true)]
async fn what_the_api_server_asks_to_wait_with_is_not_done_when_it_is_wanted_no_more() {
    let mut world = changes_its_mind(Reply::Throttled(30)).await;
    world.go_on(Duration::from_secs(120)).await;
    assert_eq!(deletions(&world), 1);
    assert_eq!(world.pending().len(), 0, "{:?}", world.pending());
}

#[tokio::test(start_paused = true)]
async fn what_has_failed_for_a_while_is_not_done_when_it_is_wanted_no_more() {
    let mut world = changes_its_mind(Reply::Code(503)).await;
    world.go_on(Duration::from_secs(2)).await;
    let tried = deletions(&world);
    world.go_on(Duration::from_secs(120)).await;
    assert_eq!(deletions(&world), tried);
    assert_eq!(world.pending().len(), 0, "{:?}", world.pending());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_taken_away_now_is_not_made_up_for_by_others() {
    for reply in [Reply::Throttled(30), Reply::Code(503), Reply::NotAdmitted] {
        let told = format!("{reply:?}");
        let mut world = World::new(
            move |asked: &Asked| match (asked.verb.as_str(), asked.what.as_str()) {
                ("DELETE", "pods") => reply.clone(),
                ("GET", "pods") => Reply::Object(warm("default", "python", &asked.name)),
                _ => Reply::Done,
            },
        );
        world.pool("default", "python", 11);
        world.pool_is_scaled("default", "python", 10);
        world.go_on(Duration::from_secs(120)).await;
        let asked = world.asked("default", "DELETE", "pods");
        let of_one = asked.iter().filter(|a| a.name == asked[0].name).count();
        assert!(of_one > 2, "{told}");
        assert_eq!(asked.len(), of_one, "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_wanted_still_is_done_after_all() {
    for reply in [Reply::Throttled(30), Reply::Code(503)] {
        let told = format!("{reply:?}");
        let mut tries = 0;
        let rule = move |asked: &Asked| match (asked.verb.as_str(), asked.what.as_str()) {
            ("DELETE", "pods") if tries < 8 => {
                tries += 1;
                reply.clone()
            }
            ("GET", "pods") => Reply::Object(warm("default", "python", &asked.name)),
            _ => Reply::Done,
        };
        let mut world = World::new(rule);
        world.pool("default", "python", 1);
        world.pool_is_scaled("default", "python", 0);
        world.go_on(Duration::from_secs(400)).await;
        assert_eq!(deletions(&world), 9, "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_done_is_not_done_again() {
    let mut world = World::new(|asked: &Asked| match (asked.verb.as_str(), asked.what.as_str()) {
        ("DELETE", "pods") => Reply::Code(504),
        ("GET", "pods") => {
            let mut going = warm("default", "python", &asked.name);
            going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            Reply::Object(going)
        }
        _ => Reply::Done,
    });
    world.pool("default", "python", 1);
    world.pool_is_scaled("default", "python", 0);
    world.go_on(Duration::from_secs(10)).await;
    let tried = deletions(&world);
    world.go_on(Duration::from_secs(10)).await;
    assert_eq!(deletions(&world), tried);
    let pending = world.pending().join("; ");
    assert!(
        pending.contains("Deleted"),
        "the watch is still to show it: {pending}"
    );
}
