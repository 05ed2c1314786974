//! Bindings that the API server rejects because of the claim or of the sandbox.

use crate::world::{Asked, BEGIN, NOT_ADMITTED, Reply, World, warm};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::time::Duration;
use warmpool::model::Key;
use warmpool::planner::plan;

fn binds(asked: &Asked) -> bool {
    asked.verb == "PATCH" && asked.resource == "pods"
}

/// A world with this many sandboxes and the claim `bad`, whose label is rejected.
fn a_rejected_claim(sandboxes: usize) -> World {
    a_claim_that_meets(Reply::Code(403), sandboxes)
}

/// The same with another answer.
fn a_claim_that_meets(reply: Reply, sandboxes: usize) -> World {
    let mut world = World::new(move |asked| {
        if binds(asked) && asked.body.to_string().contains("forbidden") {
            reply.clone()
        } else {
            Reply::Done
        }
    });
    world.pool("default", "python", sandboxes);
    world.claim("default", "bad", "python", &forbidden(json!({})));
    world
}

/// The spec of a claim with the rejected label.
fn forbidden(mut spec: Value) -> Value {
    spec["podMetadata"] = json!({"labels": {"team": "forbidden"}});
    spec
}

#[tokio::test(start_paused = true)]
async fn a_rejected_claim_keeps_no_sandbox_from_younger_claims() {
    for after in [1, 4, 7, 9, 13] {
        let mut world = a_rejected_claim(1);
        world.run_for(Duration::from_secs(after)).await;
        world.claim("default", "good", "python", &json!({}));
        world.run_for(Duration::from_secs(1)).await;
        assert_eq!(world.bound("default"), ["good"], "after {after} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_webhook_fails_reports_it_and_keeps_no_sandbox_from_others() {
    let mut world = a_claim_that_meets(NOT_ADMITTED, 1);
    world.run_for(Duration::from_secs(2)).await;
    assert_eq!(world.phases("default", "bad"), ["Pending BindingRefused"]);
    world.claim("default", "good", "python", &json!({}));
    world.run_for(Duration::from_secs(1)).await;
    assert_eq!(world.bound("default"), ["good"]);
}

#[tokio::test(start_paused = true)]
async fn a_short_failure_of_a_webhook_delays_a_claim_only_as_long() {
    let mut tries = 0;
    let mut world = World::new(move |asked| {
        tries += u16::from(binds(asked));
        if binds(asked) && tries <= 3 {
            NOT_ADMITTED
        } else {
            Reply::Done
        }
    });
    world.pool("default", "python", 2);
    world.claim("default", "run", "python", &json!({}));
    world.run_for(Duration::from_secs(1)).await;
    assert_eq!(world.phases("default", "run"), ["Bound Bound"]);
    let tried = world.asked("default", "PATCH", "pods");
    assert!(tried.iter().all(|a| a.name == tried[0].name), "{tried:?}");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_claim_is_retried_after_a_delay() {
    let mut world = a_rejected_claim(4);
    world.run_for(Duration::from_secs(61)).await;
    let tried = world.asked("default", "PATCH", "pods").len();
    assert!((8..=14).contains(&tried), "{tried} tries in a minute");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_claim_always_counts_as_waiting() {
    let mut world = a_rejected_claim(1);
    world.run_for(Duration::from_secs(7)).await;
    let key = Key::new("default", "python");
    for _ in 0..60 {
        world.run_for(Duration::from_millis(990)).await;
        let index = world.context.shared.lock();
        let view = warmpool::planner::pool_snapshot(&index, &key, BEGIN, 0).unwrap();
        drop(index);
        assert_eq!(plan(&view).status.pending_claims, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejected_binding_does_not_count_as_a_sandbox_that_a_claim_took() {
    let mut world = a_rejected_claim(4);
    world.run_for(Duration::from_secs(1)).await;
    assert!(!world.asked("default", "PATCH", "pods").is_empty());
    assert_eq!(recently_claimed(&world), 0, "I6: no claim took a sandbox");
    world.claim("default", "good", "python", &json!({}));
    world.run_for(Duration::from_secs(1)).await;
    assert_eq!(recently_claimed(&world), 1);
}

/// What the next plan knows of sandboxes that claims took lately: a drain does not wait for their replacements.
fn recently_claimed(world: &World) -> usize {
    let (index, key) = (world.context.shared.lock(), Key::new("default", "python"));
    let snapshot = warmpool::planner::pool_snapshot(&index, &key, BEGIN, 0).unwrap();
    snapshot.recent_claims.len()
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_not_bound_to_sandboxes_that_reject_all_claims() {
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
    world.run_for(Duration::from_secs(12)).await;
    assert_eq!(world.bound("default"), ["run"], "{:?}", world.tally());
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_bound_to_the_last_sandbox_when_all_others_reject_it() {
    let mut bad = BTreeSet::new();
    let rule = move |asked: &Asked| {
        if binds(asked) && (bad.len() < 11 || bad.contains(&asked.name)) {
            bad.insert(asked.name.clone());
            return Reply::Code(403);
        }
        Reply::Done
    };
    let mut world = World::new(rule);
    world.pool("default", "python", 12);
    world.claim("default", "run", "python", &json!({}));
    world.run_for(Duration::from_secs(75)).await;
    assert_eq!(world.bound("default"), ["run"], "{:?}", world.tally());
}

#[tokio::test(start_paused = true)]
async fn a_rejected_claim_does_not_try_a_sandbox_marked_for_eviction() {
    for (evict, all_tried) in [("true", 1), ("false", 2)] {
        let mut world = a_rejected_claim(1);
        let mut other = warm("default", "python", "python-7");
        other["metadata"]["labels"]["warmpool.dev/evict"] = json!(evict);
        world.pod_comes(other);
        world.run_for(Duration::from_secs(21)).await;
        let tried = world.asked("default", "PATCH", "pods");
        assert!(tried.len() >= 4, "{tried:?}");
        let names: BTreeSet<_> = tried.iter().map(|asked| &asked.name).collect();
        assert_eq!(names.len(), all_tried, "{tried:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn sandboxes_of_a_rejected_binding_stay_available_to_other_claims() {
    for tenths in [1, 51, 53, 101, 103, 105] {
        let mut world = a_rejected_claim(3);
        world.run_for(Duration::from_millis(tenths * 100)).await;
        for n in 0..3 {
            world.claim("default", &format!("good-{n}"), "python", &json!({}));
        }
        world.run_for(Duration::from_millis(50)).await;
        assert_eq!(world.bound("default").len(), 3, "after {tenths} tenths");
    }
}

#[tokio::test(start_paused = true)]
async fn only_labels_and_annotations_that_no_pod_can_have_fail_their_claim() {
    for (field, phase) in [
        ("", "Pending BindingRefused"),
        ("spec", "Pending BindingRefused"),
        ("metadata.labels", "Failed InvalidSpec"),
        ("metadata.annotations[a/b/c]", "Failed InvalidSpec"),
    ] {
        let reply = move |asked: &Asked| {
            if binds(asked) {
                Reply::Invalid(field)
            } else {
                Reply::Done
            }
        };
        let mut world = World::new(reply);
        world.pool("default", "python", 1);
        world.claim("default", "run", "python", &json!({}));
        world.run_for(Duration::from_secs(1)).await;
        assert_eq!(world.phases("default", "run"), [phase], "{field:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejected_claim_reports_it_once_and_fails_with_the_message_of_the_api_server() {
    let mut world = a_rejected_claim(0);
    world.claim(
        "default",
        "bad",
        "python",
        &forbidden(json!({"waitTimeoutSeconds": 27})),
    );
    world.pass(1).await;
    world.reconcile_all();
    world.pass(1).await;
    world.claim_is_seen_as_written("default", "bad");
    assert_eq!(world.phases("default", "bad"), ["Pending NoneAvailable"]);
    world.pool_is_scaled("default", "python", 2);
    world.pod_comes(warm("default", "python", "python-7"));
    world.pass(1).await;
    let refused = ["Pending NoneAvailable", "Pending BindingRefused"];
    assert_eq!(world.phases("default", "bad"), refused);
    world.claim_is_seen_as_written("default", "bad");
    world.pass(14).await;
    // For a moment there is nothing to try.
    world.pod_goes("default", "python-7");
    world.pass(6).await;
    assert_eq!(world.phases("default", "bad"), refused);
    world.pod_comes(warm("default", "python", "python-8"));
    world.pass(6).await;
    let written = world.asked("default", "PUT", "sandboxclaims/status");
    let last = &written.last().unwrap().body["status"];
    assert_eq!(world.phases("default", "bad")[2..], ["Failed WaitTimeout"]);
    let message = last["conditions"][0]["message"].as_str().unwrap();
    assert!(
        message.contains("waitTimeoutSeconds") && message.contains("answered with 403"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_paused_claim_counts_as_waiting_and_a_claim_in_flight_does_not() {
    for (reply, count) in [(Reply::Code(403), 1), (Reply::Never, 0)] {
        let rule = move |asked: &Asked| if binds(asked) { reply.clone() } else { Reply::Done };
        let mut world = World::new(rule);
        world.pool("default", "python", 1);
        world.claim("default", "run", "python", &json!({}));
        world.run_for(Duration::from_secs(1)).await;
        let census = world.context.shared.lock().stats(BEGIN, &BTreeMap::new());
        assert_eq!(census[&Key::new("default", "python")].waiting, count);
    }
}
