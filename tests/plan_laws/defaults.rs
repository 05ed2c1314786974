//! Checks which `claimDefaults` of a pool apply to a claim.
//!
//! Until its first binding or its end a claim uses the pool's current defaults; from then on it keeps those of that moment.

use crate::lifetimes::{bound, edit, expires, later, lose, phase, pods};
use crate::world::World;
use jiff::SignedDuration;
use serde_json::{Value, json};
use warmpool::api::claim::Phase;
use warmpool::planner::claim::plan;

/// Edits the claim without changing when it ends.
fn edit_unrelated_field(world: &mut World) {
    edit(world, json!({"ttlSecondsAfterFinished": 5_000}));
}

fn stored_defaults(world: &World) -> Value {
    let status = serde_json::to_value(&world.claims["run"].status).unwrap();
    status["defaults"].clone()
}

#[test]
fn new_defaults_end_no_claim_that_is_bound() {
    let mut world = bound(json!({}), json!({}));
    world.set(json!({"claimDefaults": {"lifetimeSeconds": 1}}));
    later(&mut world, 100);
    edit_unrelated_field(&mut world);
    world.reconcile_claim("run");
    assert_eq!((phase(&world), expires(&world)), (Phase::Bound, None));
    world.set(json!({"claimDefaults": {"onSandboxLost": "Replace"}}));
    lose(&mut world, "gone");
    world.reconcile_claim("run");
    assert_eq!(
        phase(&world),
        Phase::Failed,
        "the claim was bound without this default"
    );
}

#[test]
fn new_defaults_release_no_sandbox_that_a_claim_retains() {
    for defaults in [
        json!({"releasePolicy": "Delete", "ttlSecondsAfterFinished": 0}),
        json!({"releasePolicy": "not understood"}),
    ] {
        let mut world = bound(
            json!({}),
            json!({"lifetimeSeconds": 60, "releasePolicy": "Retain"}),
        );
        later(&mut world, 60);
        world.reconcile_claim("run");
        assert_eq!(phase(&world), Phase::Expired);
        world.set(json!({ "claimDefaults": defaults }));
        let plan = plan(&world.claim_snapshot("run"));
        assert!(plan.release.is_empty() && !plan.delete, "{plan:?}");
        world.reconcile_claim("run");
        assert_eq!(pods(&world), 1);
    }
}

#[test]
fn a_claim_waits_for_a_replacement_with_the_defaults_of_its_binding() {
    let defaults = json!({"waitTimeoutSeconds": 1000, "onSandboxLost": "Replace", "onEmpty": "Wait"});
    let mut world = bound(json!({}), defaults);
    world.set(json!({
        "replicas": 0, "claimDefaults": {"waitTimeoutSeconds": 5, "onEmpty": "Fail"},
    }));
    lose(&mut world, "gone");
    world.sandboxes.clear();
    world.reconcile_claim("run");
    later(&mut world, 900);
    assert!(world.plan().actions.is_empty(), "the claim still waits");
    later(&mut world, 101);
    world.step();
    assert_eq!(phase(&world), Phase::Failed);
}

#[test]
fn a_claim_that_waits_for_its_first_binding_uses_the_current_defaults() {
    let mut world = World::new(0, json!({"claimDefaults": {"waitTimeoutSeconds": 1000}}));
    world.claim("run", json!({"onEmpty": "Wait"}));
    world.set(json!({"claimDefaults": {"waitTimeoutSeconds": 5, "ttlSecondsAfterFinished": 7}}));
    later(&mut world, 6);
    world.step();
    assert_eq!(phase(&world), Phase::Failed);
    assert_eq!(stored_defaults(&world)["ttlSecondsAfterFinished"], 7);
    world.set(json!({"claimDefaults": {"ttlSecondsAfterFinished": 0}}));
    let next = plan(&world.claim_snapshot("run")).next;
    assert_eq!(next, Some(world.now + SignedDuration::from_secs(8)));
}

#[test]
fn defaults_are_stored_even_where_the_pool_has_none() {
    let mut world = bound(json!({"lifetimeSeconds": 60}), json!({}));
    assert_eq!(stored_defaults(&world), json!({}));
    later(&mut world, 60);
    world.reconcile_claim("run");
    assert_eq!(
        (phase(&world), stored_defaults(&world)),
        (Phase::Expired, json!({}))
    );
    world.claim("unserved", json!({"shutdownTime": world.now.to_string()}));
    world.reconcile_claim("unserved");
    assert!(world.claims["unserved"].status.phase == Some(Phase::Expired));
    let status = serde_json::to_value(&world.claims["unserved"].status).unwrap();
    assert_eq!(status["defaults"], json!({}));
    for claim in ["run", "unserved"] {
        world.reconcile_claim(claim);
        assert_eq!(
            plan(&world.claim_snapshot(claim)).status,
            None,
            "nothing is written again"
        );
    }
}
