//! Bindings that the API server will not have, for the sake of the claim or of the sandbox.

use crate::world::{Asked, BEGIN, NOT_ADMITTED, Reply, World, warm};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use warmpool::cache::snapshot::Creation;
use warmpool::model::Key;
use warmpool::planner::plan;

fn binds(asked: &Asked) -> bool {
    asked.verb == "PATCH" && asked.resource == "pods"
}

/// A world of that many sandboxes and the claim `bad`, whose label is refused.
fn a_refused_claim(sandboxes: usize) -> World {
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

/// The spec of a claim with the label that is refused.
fn forbidden(mut spec: Value) -> Value {
    spec["podMetadata"] = json!({"labels": {"team": "forbidden"}});
    spec
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_refused_keeps_no_sandbox_from_the_younger_ones() {
    for after in [1, 4, 7, 9, 13] {
        let mut world = a_refused_claim(1);
        world.run_for(Duration::from_secs(after)).await;
        world.claim("default", "good", "python", &json!({}));
        world.run_for(Duration::from_secs(1)).await;
        assert_eq!(world.bound("default"), ["good"], "after {after} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_webhook_cannot_be_asked_is_told_so_and_keeps_no_sandbox_from_others() {
    let mut world = a_claim_that_meets(NOT_ADMITTED, 1);
    world.run_for(Duration::from_secs(2)).await;
    assert_eq!(world.phases("default", "bad"), ["Pending BindingRefused"]);
    world.claim("default", "good", "python", &json!({}));
    world.run_for(Duration::from_secs(1)).await;
    assert_eq!(world.bound("default"), ["good"]);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_is_back_in_a_moment_costs_no_more_than_that() {
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
async fn a_claim_that_is_refused_is_tried_once_in_a_while() {
    let mut world = a_refused_claim(4);
    world.run_for(Duration::from_secs(61)).await;
    let tried = world.asked("default", "PATCH", "pods").len();
    assert!((8..=14).contains(&tried), "{tried} tries in a minute");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_refused_is_counted_as_waiting_all_the_time() {
    let mut world = a_refused_claim(1);
    world.run_for(Duration::from_secs(7)).await;
    let key = Key::new("default", "python");
    for _ in 0..60 {
        world.run_for(Duration::from_millis(990)).await;
        let index = world.context.shared.lock();
        let view = index.pool_snapshot(&key, BEGIN, 0, Creation::Open).unwrap();
        drop(index);
        assert_eq!(plan(&view).status.pending_claims, 1);
    }
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
    world.run_for(Duration::from_secs(12)).await;
    assert_eq!(world.bound("default"), ["run"], "{:?}", world.tally());
}

#[tokio::test(start_paused = true)]
async fn a_claim_gets_the_last_of_many_sandboxes_when_all_others_refuse_it() {
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
async fn a_sandbox_that_a_claim_may_not_take_is_no_other_to_try() {
    for (evict, all_tried) in [("true", 1), ("false", 2)] {
        let mut world = a_refused_claim(1);
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
async fn what_was_refused_to_a_claim_is_there_for_all_others_at_every_moment() {
    for tenths in [1, 51, 53, 101, 103, 105] {
        let mut world = a_refused_claim(3);
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
    for (field, told) in [
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
        assert_eq!(world.phases("default", "run"), [told], "{field:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_refused_is_told_so_once_and_fails_in_its_time_in_the_words_of_the_api_server() {
    let mut world = a_refused_claim(0);
    world.claim(
        "default",
        "bad",
        "python",
        &forbidden(json!({"waitTimeoutSeconds": 28})),
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
    let written = world.asked("default", "PATCH", "sandboxclaims/status");
    let last = &written.last().unwrap().body["status"];
    assert_eq!(world.phases("default", "bad")[2..], ["Failed WaitTimeout"]);
    let message = last["conditions"][0]["message"].as_str().unwrap();
    assert!(
        message.contains("waitTimeoutSeconds") && message.contains("answered with 403"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_pauses_counts_as_waiting_and_one_that_is_being_bound_does_not() {
    for (reply, count) in [(Reply::Code(403), 1), (Reply::Never, 0)] {
        let rule = move |asked: &Asked| if binds(asked) { reply.clone() } else { Reply::Done };
        let mut world = World::new(rule);
        world.pool("default", "python", 1);
        world.claim("default", "run", "python", &json!({}));
        world.run_for(Duration::from_secs(1)).await;
        let census = world.context.shared.lock().stats(BEGIN);
        assert_eq!(census[&Key::new("default", "python")].waiting, count);
    }
}
