//! Bindings that the API server will not have, for the sake of the claim or of the sandbox.

use crate::world::{Asked, Reply, World};
use serde_json::json;
use std::time::Duration;

fn binds(asked: &Asked) -> bool {
    asked.verb == "PATCH" && asked.what == "pods"
}

/// A world of that many sandboxes and the claim `bad`, whose label is refused.
fn a_refused_claim(sandboxes: usize) -> World {
    let mut world = World::new(|asked| {
        if binds(asked) && asked.body.to_string().contains("forbidden") {
            Reply::Code(403)
        } else {
            Reply::Done
        }
    });
    world.pool("default", "python", sandboxes);
    let label = json!({"podMetadata": {"labels": {"team": "forbidden"}}});
    world.claim("default", "bad", "python", &label);
    world
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_refused_keeps_no_sandbox_from_the_younger_ones() {
    for after in [1, 4, 7, 9, 13] {
        let mut world = a_refused_claim(1);
        world.go_on(Duration::from_secs(after)).await;
        world.claim("default", "good", "python", &json!({}));
        world.go_on(Duration::from_secs(1)).await;
        assert_eq!(world.bound("default"), ["good"], "after {after} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_refused_is_tried_once_in_a_while() {
    let mut world = a_refused_claim(4);
    world.go_on(Duration::from_secs(61)).await;
    let tried = world.asked("default", "PATCH", "pods").len();
    assert!((8..=14).contains(&tried), "{tried} tries in a minute");
}

#[tokio::test(start_paused = true)]
async fn a_claim_gets_another_sandbox_than_those_that_refuse_all_claims() {
    let bad = |asked: &Asked| asked.name.ends_with('0') || asked.name.ends_with('1');
    let rule = move |asked: &Asked| {
        if binds(asked) && bad(asked) {
            Reply::Code(403)
        } else {
            Reply::Done
        }
    };
    let mut world = World::new(rule);
    world.pool("default", "python", 3);
    world.claim("default", "run", "python", &json!({}));
    world.go_on(Duration::from_secs(12)).await;
    assert_eq!(world.bound("default"), ["run"], "{:?}", world.tally());
}
