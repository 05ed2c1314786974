//! What is written of a pool's `claimDefaults` when a claim ends without having been bound.

use crate::world::{Reply, World};
use serde_json::{Value, json};
use std::time::Duration;

/// The status that ends a claim with `more` in its spec on a pool of no sandboxes.
async fn ended(more: Value) -> Value {
    let mut world = World::new(|_| Reply::Done);
    let pool = json!({
        "metadata": {
            "namespace": "default", "name": "python", "uid": "uid-python", "resourceVersion": "1", "generation": 1,
            "labels": {"lang": "python"},
        },
        "spec": {
            "replicas": 0, "template": {"spec": {"containers": []}}, "updateStrategy": {"paused": true},
            "claimDefaults": {"ttlSecondsAfterFinished": 600, "onEmpty": "Fail"},
        },
    });
    let pool = serde_json::from_value(pool).unwrap();
    world.context.shared.lock().apply_pool(&pool);
    world.claim("default", "run", "python", &more);
    world.run_for(Duration::from_secs(1)).await;
    let written = world.asked("default", "PUT", "sandboxclaims/status");
    written.last().unwrap().body["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_fails_unbound_keeps_the_defaults_of_its_pool() {
    let any = json!({"poolRef": null, "poolSelector": {"matchLabels": {"lang": "python"}}});
    for claim in [json!({}), any] {
        let status = ended(claim).await;
        assert_eq!(
            (&status["phase"], &status["pool"]),
            (&json!("Failed"), &json!("python"))
        );
        assert_eq!(
            status["defaults"],
            json!({"ttlSecondsAfterFinished": 600, "onEmpty": "Fail"})
        );
    }
}
