//! Checks how often the log names requests that fail alike.

use crate::log::Log;
use crate::world::{Asked, Reply, World};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use warmpool::cache::expectations::EXPECTATION_TIMEOUT;
use warmpool::controllers::resync::read_overdue;

const CLAIMS: usize = 300;

/// The lines at this level that begin with these words, while the API server rejects every write on a resource and so many
/// claims come to a pool of so many sandboxes. Other tests of this program fail requests, too, and may share a line with these.
async fn logged(resource: &'static str, sandboxes: usize, level: &str, words: &str) -> Vec<Value> {
    let (log, _guard) = Log::of_this_thread();
    let mut world = World::new(move |asked: &Asked| {
        let is_write = ["PUT", "PATCH"].contains(&asked.verb.as_str());
        if is_write && asked.resource == resource {
            Reply::Code(418)
        } else {
            Reply::Done
        }
    });
    world.pool("default", "python", sandboxes);
    for n in 0..CLAIMS {
        world.claim(
            "default",
            &format!("run-{n:03}"),
            "python",
            &json!({"onEmpty": "Wait"}),
        );
    }
    world.run_for(Duration::from_secs(3)).await;
    log.lines(level, words)
}

#[tokio::test(start_paused = true)]
async fn three_hundred_statuses_that_are_rejected_share_a_line() {
    let lines = logged(
        "sandboxclaims/status",
        0,
        "WARN",
        "the status could not be written",
    )
    .await;
    assert!(lines.len() <= 2, "{} lines: {:#?}", lines.len(), lines.first());
    for line in lines {
        assert_eq!(
            ["verb", "resource"].map(|field| &line[field]),
            [&json!("update"), &json!("sandboxclaims/status")]
        );
        assert!(line["object"].is_string() && line["error"].is_string(), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn three_hundred_bindings_that_are_rejected_share_a_line_that_names_a_claim_and_a_pod() {
    let lines = logged("pods", CLAIMS, "ERROR", "the API server rejects the binding").await;
    assert!(lines.len() <= 2, "{} lines: {:#?}", lines.len(), lines.first());
    for line in lines {
        let named = ["claim", "pod", "error"]
            .iter()
            .all(|field| line[*field].is_string());
        assert!(named && line["object"].is_null(), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn thirty_creations_that_the_watch_does_not_show_share_a_line() {
    let (log, _guard) = Log::of_this_thread();
    let mut world = World::new(|_: &Asked| Reply::Done);
    world.pool("default", "python", 0);
    world.pool_is_scaled("default", "python", 30);
    world.run_for(Duration::from_secs(3)).await;
    let created = world.asked("default", "POST", "pods").len();
    assert_eq!(created, 30, "the pool is filled");

    read_overdue(&world.context, Instant::now() + 2 * EXPECTATION_TIMEOUT);
    world.run_for(Duration::from_secs(1)).await;

    let read = world.asked("default", "GET", "pods").len();
    assert_eq!(read, created, "each pod is read");
    let lines = log.lines("WARN", "the watch did not show a write in time");
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines.iter().all(|line| line["object"].is_string()), "{lines:#?}");
}
