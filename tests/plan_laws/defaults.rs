//! What a pool's `claimDefaults` are to a claim: as they are while it waits for its first binding, and from that or its end
//! on as they were then.

use crate::lifetimes::{bound, edit, expires, later, lose, phase, pods};
use crate::world::World;
use jiff::SignedDuration;
use serde_json::{Value, json};
use warmpool::api::claim::Phase;
use warmpool::planner::claim::plan;

/// An edit that changes nothing about the claim's end.
fn unrelated(world: &mut World) {
    edit(world, json!({"ttlSecondsAfterFinished": 5_000}));
}

fn kept(world: &World) -> Value {
    let status = serde_json::to_value(&world.claims["run"].status).unwrap();
    status["defaults"].clone()
}

#[test]
fn new_defaults_end_no_claim_that_is_bound() {
    let mut world = bound(json!({}), json!({}));
    world.set(json!({"claimDefaults": {"lifetimeSeconds": 1}}));
    later(&mut world, 100);
    unrelated(&mut world);
    world.follow("run");
    assert_eq!((phase(&world), expires(&world)), (Phase::Bound, None));
    world.set(json!({"claimDefaults": {"onSandboxLost": "Replace"}}));
    lose(&mut world, "gone");
    world.follow("run");
    assert_eq!(phase(&world), Phase::Failed, "it was bound without that");
}

#[test]
fn new_defaults_take_no_sandbox_from_a_claim_that_retains_it() {
    for defaults in [
        json!({"releasePolicy": "Delete", "ttlSecondsAfterFinished": 0}),
        json!({"releasePolicy": "not understood"}),
    ] {
        let mut world = bound(
            json!({}),
            json!({"lifetimeSeconds": 60, "releasePolicy": "Retain"}),
        );
        later(&mut world, 60);
        world.follow("run");
        assert_eq!(phase(&world), Phase::Expired);
        world.set(json!({ "claimDefaults": defaults }));
        let plan = plan(&world.claim_snapshot("run"));
        assert!(plan.release.is_empty() && !plan.delete, "{plan:?}");
        world.follow("run");
        assert_eq!(pods(&world), 1);
    }
}

#[test]
fn a_claim_waits_for_a_replacement_on_the_terms_of_its_binding() {
    let defaults = json!({"waitTimeoutSeconds": 1000, "onSandboxLost": "Replace", "onEmpty": "Wait"});
    let mut world = bound(json!({}), defaults);
    world.set(json!({
        "replicas": 0, "claimDefaults": {"waitTimeoutSeconds": 5, "onEmpty": "Fail"},
    }));
    lose(&mut world, "gone");
    world.sandboxes.clear();
    world.follow("run");
    later(&mut world, 900);
    assert!(world.plan().actions.is_empty(), "it waits on");
    later(&mut world, 100);
    world.step();
    assert_eq!(phase(&world), Phase::Failed);
}

#[test]
fn a_claim_that_waits_for_its_first_binding_goes_by_what_the_pool_says_now() {
    let mut world = World::new(0, json!({"claimDefaults": {"waitTimeoutSeconds": 1000}}));
    world.claim("run", json!({"onEmpty": "Wait"}));
    world.set(json!({"claimDefaults": {"waitTimeoutSeconds": 5, "ttlSecondsAfterFinished": 7}}));
    later(&mut world, 5);
    world.step();
    assert_eq!(phase(&world), Phase::Failed);
    assert_eq!(kept(&world)["ttlSecondsAfterFinished"], 7);
    world.set(json!({"claimDefaults": {"ttlSecondsAfterFinished": 0}}));
    let next = plan(&world.claim_snapshot("run")).next;
    assert_eq!(next, Some(world.now + SignedDuration::from_secs(7)));
}

#[test]
fn what_the_pool_said_is_kept_also_where_it_said_nothing() {
    let mut world = bound(json!({"lifetimeSeconds": 60}), json!({}));
    assert_eq!(kept(&world), json!({}));
    later(&mut world, 60);
    world.follow("run");
    assert_eq!((phase(&world), kept(&world)), (Phase::Expired, json!({})));
    world.claim("unserved", json!({"shutdownTime": world.now.to_string()}));
    world.follow("unserved");
    assert!(world.claims["unserved"].status.phase == Some(Phase::Expired));
    let status = serde_json::to_value(&world.claims["unserved"].status).unwrap();
    assert_eq!(status["defaults"], json!({}));
    for claim in ["run", "unserved"] {
        world.follow(claim);
        assert_eq!(
            plan(&world.claim_snapshot(claim)).status,
            None,
            "nothing is written again"
        );
    }
}
