//! Checks that broken sandboxes are replaced even where no further sandbox may be created.

use crate::world::{World, lines};
use jiff::SignedDuration;
use serde_json::{Value, json};
use warmpool::cache::snapshot::Creation;
use warmpool::planner::PlanPhase;

/// A pool whose sandboxes never become available, a second after their warm-up deadline.
fn broken(replicas: usize, fields: Value) -> World {
    let mut world = World::new(replicas, json!({"warmUpDeadlineSeconds": 30}));
    world.set(fields);
    world.step();
    world.now += SignedDuration::from_secs(31);
    world
}

fn past_deadline(world: &World) -> usize {
    let lines = lines(&world.plan(), PlanPhase::Eviction);
    lines
        .iter()
        .filter(|line| line.ends_with("WarmUpDeadline"))
        .count()
}

#[test]
fn where_claims_have_filled_max_total_the_broken_ones_are_replaced() {
    let mut world = World::full(
        8,
        json!({"warmUpDeadlineSeconds": 30, "capacity": {"maxTotal": 10}}),
    );
    (0..8).for_each(|n| {
        world.claim(&format!("run-{n}"), json!({}));
    });
    world.step();
    world.set(json!({"replicas": 10}));
    world.step();
    assert_eq!(world.unclaimed().count(), 2, "maxTotal allows no more");
    world.now += SignedDuration::from_secs(31);
    assert_eq!(past_deadline(&world), 2);
    world.converge();
    assert_eq!(world.available(), 2);
}

#[test]
fn where_one_at_a_time_may_warm_the_broken_one_is_replaced() {
    let mut world = broken(10, json!({"scaleStrategy": {"maxUnavailable": 1}}));
    assert_eq!(past_deadline(&world), 1);
    world.converge();
    assert_eq!(world.available(), 10);
}

#[test]
fn where_a_claim_waits_the_only_sandbox_is_replaced_when_it_is_broken() {
    let mut world = broken(1, json!({}));
    world.claim("run", json!({}));
    assert_eq!(past_deadline(&world), 1);
}

#[test]
fn where_claims_wait_for_the_new_revision_the_first_of_it_is_replaced_when_it_is_broken() {
    let mut world = World::full(5, json!({"warmUpDeadlineSeconds": 30}));
    world.set(json!({"updateStrategy": {"maxUnavailable": 0, "maxSurge": 1}}));
    world.set_image("two");
    world.claim("run", json!({"replicas": 2, "revisionPolicy": "Latest"}));
    world.step();
    assert_eq!(
        world.unclaimed().count(),
        6,
        "one sandbox of the new revision is created"
    );
    world.now += SignedDuration::from_secs(31);
    assert_eq!(past_deadline(&world), 1);
    world.converge();
    assert!(world.bound_to("run").is_some());
}

#[test]
fn where_a_quota_rejects_the_others_the_broken_ones_are_replaced() {
    let mut world = broken(8, json!({}));
    world.set(json!({"replicas": 40}));
    world.creation = Creation::BackOff {
        until: world.now + SignedDuration::from_secs(60),
        message: "exceeded quota".into(),
    };
    assert_eq!(past_deadline(&world), 8);
}

#[test]
fn evicted_sandboxes_are_replaced_before_more_are_evicted() {
    let mut world = broken(8, json!({}));
    assert_eq!(past_deadline(&world), 2, "a quarter of eight sandboxes");
    world.step();
    assert_eq!(past_deadline(&world), 0);
}
