//! The API tells times in whole seconds; clocks and users tell more.

use crate::lifetimes::{bound, edit, expires, later, phase};
use crate::world::World;
use jiff::SignedDuration;
use serde_json::json;
use warmpool::api::SandboxClaimStatus;
use warmpool::api::claim::Phase;
use warmpool::cache::snapshot::PoolPresence;
use warmpool::planner::claim::plan;

/// What is left of a status once it has been stored.
fn stored(status: &SandboxClaimStatus) -> SandboxClaimStatus {
    serde_json::from_value(serde_json::to_value(status).unwrap()).unwrap()
}

#[test]
fn a_status_is_found_as_it_was_written() {
    let mut world = World::full(2, json!({}));
    world.now += SignedDuration::from_millis(345);
    world.claim("run", json!({"lifetimeSeconds": 60}));
    world.step();
    let status = world.claims["run"].status.clone();
    assert_eq!(status.phase, Some(Phase::Bound));
    assert_eq!(stored(&status), status);
    later(&mut world, 60);
    world.follow("run");
    let status = &world.claims["run"].status;
    assert_eq!(status.phase, Some(Phase::Expired));
    assert_eq!(stored(status), *status);
}

#[test]
fn a_shutdown_time_with_fractions_leaves_nothing_to_write_once_it_is_told() {
    let mut world = bound(json!({}), json!({}));
    let shutdown = world.now + SignedDuration::from_millis(5345);
    edit(&mut world, json!({"shutdownTime": shutdown.to_string()}));
    world.follow("run");
    assert!(expires(&world).is_some());
    let claim = world.claims.get_mut("run").unwrap();
    claim.status = stored(&claim.status);
    assert_eq!(plan(&world.claim_snapshot("run")).status, None);
    later(&mut world, 6);
    world.follow("run");
    assert_eq!(phase(&world), Phase::Expired);
}

#[test]
fn a_claim_whose_binding_is_open_is_looked_at_at_its_end_and_again_until_that_is_known() {
    let mut world = World::full(1, json!({}));
    let shutdown = world.now + SignedDuration::from_secs(20);
    world.claim("run", json!({"shutdownTime": shutdown.to_string()}));
    let at = |world: &World| {
        let mut snapshot = world.claim_snapshot("run");
        snapshot.binding = true;
        plan(&snapshot).next
    };
    assert_eq!(at(&world), Some(shutdown));
    world.now = shutdown + SignedDuration::from_secs(3);
    assert_eq!(at(&world), Some(world.now + SignedDuration::from_secs(5)));
    world.follow("run");
    assert_eq!(phase(&world), Phase::Expired);
}

#[test]
fn a_claim_whose_pool_went_while_its_binding_was_open_is_looked_at_for_its_deadline() {
    let mut world = World::full(1, json!({}));
    world.claim("run", json!({"waitTimeoutSeconds": 30}));
    let mut snapshot = world.claim_snapshot("run");
    snapshot.binding = true;
    assert_eq!(plan(&snapshot).next, None, "its pool sees to that");
    snapshot.pool_presence = PoolPresence::Absent;
    assert_eq!(
        plan(&snapshot).next,
        Some(world.now + SignedDuration::from_secs(30))
    );
}
