//! The API tells times in whole seconds; clocks and users tell more.

use crate::lifetimes::{bound, edit, expires, later, phase};
use crate::world::World;
use jiff::SignedDuration;
use serde_json::json;
use warmpool::api::SandboxClaimStatus;
use warmpool::api::claim::Phase;
use warmpool::plan::claim::plan;

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
    assert_eq!(plan(&world.claim_view("run")).status, None);
    later(&mut world, 6);
    world.follow("run");
    assert_eq!(phase(&world), Phase::Expired);
}
