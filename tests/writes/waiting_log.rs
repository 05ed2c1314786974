//! Checks what the log says of claims that wait.

use crate::log::Log;
use crate::world::{Reply, World};
use serde_json::{Value, json};
use std::time::Duration;

/// What the log says while so many claims come to an empty pool.
async fn logged(namespace: &str, claims: usize, fields: &Value) -> Log {
    let (log, _guard) = Log::of_this_thread();
    let mut world = World::new(|_| Reply::Done);
    world.pool(namespace, "python", 0);
    for n in 0..claims {
        world.claim(namespace, &format!("run-{n:03}"), "python", fields);
    }
    world.run_for(Duration::from_secs(3)).await;
    log
}

#[tokio::test(start_paused = true)]
async fn three_hundred_claims_that_wait_are_one_line_with_their_number_and_the_oldest() {
    let log = logged("burst", 300, &json!({"onEmpty": "Wait"})).await;
    let lines = log.lines("INFO", "claim");
    assert_eq!(lines.len(), 1, "{lines:#?}");
    let line = &lines[0];
    let message = line["message"].as_str().unwrap();
    assert!(
        message.starts_with("claims wait: no sandbox is available, and none will come"),
        "{message}"
    );
    assert!(
        !message.contains("in line") && !message.contains("ahead"),
        "{message}"
    );
    let fields = ["pool", "reason", "waiting", "oldest"].map(|field| line[field].clone());
    assert_eq!(
        fields,
        [
            json!("burst/python"),
            json!("NoneAvailable"),
            json!(300),
            json!("burst/run-000")
        ]
    );
    assert!(line["oldest_waits_seconds"].is_number(), "{line}");
    assert_eq!(
        log.lines("DEBUG", "claim").len(),
        300,
        "each claim has a line of its own for those who ask"
    );
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_spec_is_invalid_has_a_line_of_its_own() {
    let log = logged("invalid", 3, &json!({"priority": "high"})).await;
    assert_eq!(log.lines("WARN", "claim").len(), 3);
}
