//! Checks times with fractions of a second, which the API stores as whole seconds.

use crate::claims::half_bind;
use crate::lifetimes::{bound, edit, expires, later, phase};
use crate::world::World;
use jiff::SignedDuration;
use serde_json::json;
use warmpool::api::SandboxClaimStatus;
use warmpool::api::claim::Phase;
use warmpool::cache::snapshot::PoolPresence;
use warmpool::planner::claim::plan;

/// The status as the API server returns it after a write.
fn stored(status: &SandboxClaimStatus) -> SandboxClaimStatus {
    serde_json::from_value(serde_json::to_value(status).unwrap()).unwrap()
}

#[test]
fn a_status_reads_back_as_it_was_written() {
    let mut world = World::full(2, json!({}));
    world.now += SignedDuration::from_millis(345);
    world.claim("run", json!({"lifetimeSeconds": 60}));
    world.step();
    let status = world.claims["run"].status.clone();
    assert_eq!(status.phase, Some(Phase::Bound));
    assert_eq!(stored(&status), status);
    later(&mut world, 61);
    world.reconcile_claim("run");
    let status = &world.claims["run"].status;
    assert_eq!(status.phase, Some(Phase::Expired));
    assert_eq!(stored(status), *status);
}

#[test]
fn a_sandbox_that_warmed_up_between_the_creation_of_a_claim_and_its_arrival_was_not_warm() {
    for bound_at_once in [true, false] {
        for (warmed_up, warm) in [(-1, true), (0, bound_at_once), (1, false)] {
            let mut world = World::full(1, json!({}));
            world.claim("run", json!({}));
            let created = world.claims["run"].created;
            let arrived = created + SignedDuration::from_secs(3);
            world.claims.get_mut("run").unwrap().arrived = arrived;
            world.now = arrived;
            let sandbox = half_bind(&mut world, "run");
            let since = created + SignedDuration::from_secs(warmed_up);
            let sandbox = world.sandboxes.get_mut(&sandbox).unwrap();
            (sandbox.ready_since, sandbox.ready_changed) = (Some(since), Some(since));
            let mut snapshot = world.claim_snapshot("run");
            snapshot.bound_at_once = bound_at_once;
            let status = plan(&snapshot).status.unwrap();
            assert_eq!(status.phase, Some(Phase::Bound));
            assert_eq!(
                status.sandboxes[0].warm, warm,
                "I9: the sandbox warmed up {warmed_up} s after the claim came, bound at once: {bound_at_once}"
            );
        }
    }
}

#[test]
fn a_shutdown_time_with_fractions_leaves_nothing_to_write_once_it_is_published() {
    let mut world = bound(json!({}), json!({}));
    let shutdown = world.now + SignedDuration::from_millis(5345);
    edit(&mut world, json!({"shutdownTime": shutdown.to_string()}));
    world.reconcile_claim("run");
    assert!(expires(&world).is_some());
    let claim = world.claims.get_mut("run").unwrap();
    claim.status = stored(&claim.status);
    assert_eq!(plan(&world.claim_snapshot("run")).status, None);
    later(&mut world, 6);
    world.reconcile_claim("run");
    assert_eq!(phase(&world), Phase::Expired);
}

#[test]
fn a_claim_with_a_binding_in_flight_is_requeued_at_its_end_and_until_the_binding_is_answered() {
    let mut world = World::full(1, json!({}));
    let shutdown = world.now + SignedDuration::from_secs(20);
    world.claim("run", json!({"shutdownTime": shutdown.to_string()}));
    let requeue_at = |world: &World| {
        let mut snapshot = world.claim_snapshot("run");
        snapshot.binding = true;
        plan(&snapshot).next
    };
    assert_eq!(requeue_at(&world), Some(shutdown));
    world.now = shutdown + SignedDuration::from_secs(3);
    assert_eq!(requeue_at(&world), Some(world.now + SignedDuration::from_secs(5)));
    world.reconcile_claim("run");
    assert_eq!(phase(&world), Phase::Expired);
}

#[test]
fn a_claim_with_a_binding_in_flight_is_requeued_at_its_deadline_once_its_pool_is_deleted() {
    let mut world = World::full(1, json!({}));
    world.claim("run", json!({"waitTimeoutSeconds": 30}));
    let mut snapshot = world.claim_snapshot("run");
    snapshot.binding = true;
    assert_eq!(
        plan(&snapshot).next,
        None,
        "the plan of the pool covers the deadline"
    );
    snapshot.pool_presence = PoolPresence::Absent;
    assert_eq!(
        plan(&snapshot).next,
        Some(world.now + SignedDuration::from_secs(31))
    );
}
