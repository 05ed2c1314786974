//! Writes and reads that fail: how often they are made again.

use crate::world::{Asked, Reply, World, owner, warm};
use serde_json::json;
use std::time::Duration;

/// How long the API server of these worlds throttles.
const WISHED: u64 = 30;

fn writes_a_claim(asked: &Asked) -> bool {
    asked.resource == "sandboxclaims/status"
}

#[tokio::test(start_paused = true)]
async fn a_status_that_cannot_be_written_is_retried_after_a_delay_however_often_its_claim_is_reconciled() {
    for (code, most) in [(500, 13), (429, 3)] {
        let mut world = World::new(move |a| {
            if writes_a_claim(a) {
                Reply::Code(code)
            } else {
                Reply::Done
            }
        });
        // The pool has no sandbox, so the claim must fail.
        world.pool("default", "python", 0);
        world.claim("default", "run", "python", &json!({"onEmpty": "Fail"}));
        for _ in 0..2 * WISHED - 1 {
            world.reconcile_all();
            world.run_for(Duration::from_secs(1)).await;
        }
        let tried = world.asked("default", "PUT", "sandboxclaims/status").len();
        assert!((2..=most).contains(&tried), "{tried} tries after {code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_sandbox_that_cannot_be_asked_for_is_asked_for_as_late_as_the_api_server_wishes() {
    let mut world = World::new(|a| {
        if a.verb == "GET" {
            Reply::Code(429)
        } else {
            Reply::Done
        }
    });
    world.pool("default", "python", 1);
    world.claim("default", "run", "python", &json!({}));
    world.run_for(Duration::from_secs(1)).await;
    let pod = world.asked("default", "PATCH", "pods")[0].name.clone();
    world.claim_is_seen_as_written("default", "run");
    world.pod_goes("default", &pod);
    world.run_for(Duration::from_secs(2 * WISHED - 1)).await;
    assert_eq!(
        world.asked("default", "GET", "pods").len(),
        2,
        "{:?}",
        world.tally()
    );
}

#[tokio::test(start_paused = true)]
async fn no_binding_waits_for_more_than_a_minute_however_long_the_api_server_asks_for() {
    let binds = |a: &Asked| a.verb == "PATCH" && a.resource == "pods";
    let mut world = World::new(move |a| {
        if binds(a) {
            Reply::Throttled(3600)
        } else {
            Reply::Done
        }
    });
    world.pool("default", "python", 1);
    world.claim("default", "run", "python", &json!({}));
    world.run_for(Duration::from_secs(130)).await;
    assert_eq!(world.asked("default", "PATCH", "pods").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn objects_whose_writes_fail_are_requeued_once() {
    let mut world = World::new(|a| {
        if a.resource == "pools/status" {
            Reply::Code(500)
        } else {
            Reply::Done
        }
    });
    world.pool("default", "python", 0);
    for _ in 0..10 {
        world.pool_is_scaled("default", "python", 0);
        world.set_clock(2);
        world.run_for(Duration::from_millis(100)).await;
    }
    world.set_clock(2);
    let before = world.asked("default", "PATCH", "pools/status").len();
    world.run_for(Duration::from_secs(6)).await;
    let after = world.asked("default", "PATCH", "pools/status").len();
    assert!(before >= 4, "{before} writes failed");
    assert!(after - before <= 2, "they were requeued {} times", after - before);
}

#[tokio::test(start_paused = true)]
async fn a_pool_whose_old_revisions_cannot_be_deleted_asks_for_that_once_in_a_while() {
    for (code, most) in [(500, 13), (429, 3)] {
        let mut world = World::new(move |a| {
            if a.verb == "DELETE" && a.resource == "controllerrevisions" {
                Reply::Code(code)
            } else {
                Reply::Done
            }
        });
        world.pool("default", "python", 1);
        for number in 1..=13 {
            world.revision("default", "python", number);
        }
        for _ in 0..2 * WISHED - 1 {
            world.reconcile_all();
            world.run_for(Duration::from_secs(1)).await;
        }
        let asked = world.asked("default", "DELETE", "controllerrevisions");
        let of_one = asked.iter().filter(|a| a.name == asked[0].name).count();
        assert!((2..=most).contains(&of_one), "{of_one} tries after {code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_learns_of_the_end_of_a_sandbox_that_left_the_watch() {
    let mut reads = 0;
    let mut world = World::new(move |a| {
        if a.verb != "GET" {
            return Reply::Done;
        }
        reads += 1;
        let mut pod = warm("default", "python", &a.name);
        pod["metadata"]["labels"] = json!({});
        pod["metadata"]["uid"] = json!(format!("uid-default-{}", a.name));
        pod["metadata"]["ownerReferences"] = owner("SandboxClaim", "run", "uid-default-run");
        if reads <= 3 {
            Reply::Object(pod)
        } else {
            Reply::Code(404)
        }
    });
    world.pool("default", "python", 1);
    world.claim("default", "run", "python", &json!({}));
    world.run_for(Duration::from_secs(1)).await;
    world.claim_is_seen_as_written("default", "run");
    world.pod_goes("default", "python-0");
    world.run_for(Duration::from_secs(10)).await;
    assert_eq!(
        world.phases("default", "run"),
        ["Bound Bound"],
        "it is still there"
    );
    world.run_for(Duration::from_secs(10)).await;
    assert_eq!(
        world.phases("default", "run").pop().as_deref(),
        Some("Failed SandboxLost")
    );
}
