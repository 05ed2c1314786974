//! Sandboxes that fail as soon as they are created, and an operator that restarts.

use crate::world::{Reply, World};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(100);

/// Each pod fails at once, and a deleted pod is gone.
fn pods_fail(world: &mut World, known: &mut BTreeSet<String>) {
    let stored = world.stored("pods");
    let name = |pod: &serde_json::Value| pod["metadata"]["name"].as_str().unwrap().to_string();
    for gone in known
        .iter()
        .filter(|known| stored.iter().all(|pod| name(pod) != **known))
    {
        world.pod_goes("default", gone);
    }
    *known = stored.iter().map(name).collect();
    for mut pod in stored
        .into_iter()
        .filter(|pod| pod["status"]["phase"] != "Failed")
    {
        pod["status"] = json!({"phase": "Failed"});
        world.pod_comes(pod);
    }
}

/// How many pods are created in ten minutes by an operator that is restarted every so often.
async fn creations(restarted_every: Duration) -> usize {
    let mut world = World::new(|_| Reply::Done);
    world.pool("default", "python", 0);
    world.pool_is_scaled("default", "python", 1);
    let (mut known, mut up) = (BTreeSet::new(), Duration::ZERO);
    for _ in 0..6_000 {
        world.run_for(POLL).await;
        pods_fail(&mut world, &mut known);
        up += POLL;
        if up >= restarted_every {
            world.restart();
            up = Duration::ZERO;
        }
    }
    world.asked("default", "POST", "pods").len()
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_restarts_again_and_again_tries_a_broken_template_no_more_often() {
    // 1 s, 2 s, 4 s and so on, up to 5 min: at most ten tries in ten minutes.
    let undisturbed = creations(Duration::MAX).await;
    assert!((9..=10).contains(&undisturbed), "{undisturbed}");
    for seconds in [2, 5, 30] {
        let restarted = creations(Duration::from_secs(seconds)).await;
        assert!(
            (8..=undisturbed).contains(&restarted),
            "{restarted} with a restart every {seconds} s"
        );
    }
}
