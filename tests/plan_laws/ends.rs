//! Checks when a rollout completes, and which revision fills the pool until then.

use crate::world::World;
use jiff::SignedDuration;
use serde_json::{Value, json};
use warmpool::model::sandbox::Sandbox;
use warmpool::planner::Step;

fn strategy(fields: Value) -> Value {
    json!({"updateStrategy": fields})
}

/// Creates `count` claims, `run-0` and so on, and lets the pool bind them.
fn claims(world: &mut World, count: usize) {
    for n in 0..count {
        world.claim(&format!("run-{n}"), json!({}));
    }
    world.converge();
}

fn of_revision(revision: &str) -> impl Fn(&&Sandbox) -> bool {
    move |sandbox| sandbox.revision == revision
}

fn held_back(allowed: usize, needed: usize) -> String {
    format!(
        "; held back: replacements need {needed} sandboxes beside the claimed sandboxes, and capacity.maxTotal allows {allowed}"
    )
}

/// A pool whose `maxTotal` is used up by four claims, after a change of its template.
fn full_of_claims() -> (World, String) {
    let mut world = World::full(4, json!({"capacity": {"maxTotal": 4}}));
    let first = world.update();
    claims(&mut world, 4);
    assert_eq!((world.unclaimed().count(), world.sandboxes.len()), (0, 4));
    world.set_image("image:2").converge();
    (world, first)
}

#[test]
fn a_rollout_is_not_complete_before_claims_leave_capacity_for_a_sandbox() {
    let (mut world, first) = full_of_claims();
    let (reason, message) = world.progressing();
    assert_eq!(reason, "NewRevision");
    assert!(message.ends_with(&held_back(0, 1)), "{message}");
    assert_eq!(world.written().current_revision, first);
    world.now += SignedDuration::from_hours(1);
    world.converge();
    assert_eq!(
        world.progressing().0,
        "NewRevision",
        "the rollout waits for claims to end"
    );
    world.delete_claim("run-0");
    world.converge();
    assert_eq!(world.progressing().0, "RolloutComplete");
    assert_eq!(world.written().current_revision, world.update());
}

#[test]
fn a_rollout_is_not_at_its_partition_before_claims_leave_capacity_for_a_sandbox() {
    for (partition, reason) in [(2, "NewRevision"), (4, "PartitionComplete")] {
        let fields = json!({"capacity": {"maxTotal": 4}, "updateStrategy": {"partition": partition}});
        let mut world = World::full(4, fields);
        claims(&mut world, 4);
        world.set_image("image:2").converge();
        assert_eq!(world.progressing().0, reason, "partition {partition}");
    }
}

#[test]
fn capacity_that_claims_release_is_filled_from_the_old_revision_while_the_new_one_fails() {
    let (mut world, first) = full_of_claims();
    (0..4).for_each(|n| world.delete_claim(&format!("run-{n}")));
    world.converge_where(|sandbox| sandbox.revision == first);
    let new = world.unclaimed().filter(|s| s.revision != first).count();
    assert!((1..=2).contains(&new), "{new} sandboxes of the broken revision");
    assert_eq!(world.unclaimed().filter(of_revision(&first)).count(), 4 - new);
}

#[test]
fn a_rollout_is_not_complete_while_sandboxes_that_claims_took_are_missing() {
    for (replicas, taken) in [(10, 1), (40, 10), (4, 4)] {
        let mut world = World::full(replicas, strategy(json!({"type": "Recreate"})));
        world.set_image("image:2").step();
        world.step();
        // The claims take the first that come up.
        for n in 0..taken {
            world.claim(&format!("run-{n}"), json!({}));
        }
        let first: Vec<_> = world.sandboxes.keys().take(taken).cloned().collect();
        world.pass_second(|s| first.contains(&s.key.name));
        world.step();
        world.pass_second(|s| !first.contains(&s.key.name));
        world.step();
        world.step();
        let status = world.written();
        assert_eq!(status.updated, status.replicas, "none is old");
        let (reason, message) = world.progressing();
        assert_eq!(reason, "Progressing", "{taken} of {replicas} are claimed");
        let missing = format!("; {taken} more must become available");
        assert!(message.ends_with(&missing), "{message}");
        world.converge();
        assert_eq!(world.progressing().0, "RolloutComplete");
        // Claims do not take that back.
        world.claim("later", json!({})).step();
        world.step();
        assert_eq!(world.progressing().0, "RolloutComplete");
    }
}

#[test]
fn a_paused_rollout_is_not_completed_by_scaling_or_claims() {
    for by_claims in [true, false] {
        let fields = json!({"updateStrategy": {"maxUnavailable": 2}, "capacity": {"maxTotal": 6}});
        let mut world = World::full(4, fields);
        let first = world.update();
        world.set_image("image:2").step();
        world.pass_second(|_| true);
        world.step();
        world.pass_second(|_| true);
        world.set(strategy(json!({"paused": true}))).converge();
        let new = world.unclaimed().filter(|s| s.revision != first).count();
        assert!(
            (1..4).contains(&new),
            "in the middle of the rollout, with {new} new sandboxes"
        );
        if by_claims {
            claims(&mut world, 6);
            assert_eq!(world.unclaimed().count(), 0);
            (0..6).for_each(|n| world.delete_claim(&format!("run-{n}")));
        } else {
            world.set(json!({"replicas": new})).converge();
            world.set(json!({"replicas": 4}));
        }
        world.converge();
        assert_eq!(world.progressing().0, "Paused");
        assert_eq!(world.written().current_revision, first);
        assert!(world.unclaimed().filter(of_revision(&first)).count() >= 4 - new);
        assert_eq!(world.unclaimed().count(), 4);
    }
}

#[test]
fn a_pool_that_never_was_complete_is_filled_from_its_working_revision_while_its_next_template_fails() {
    let mut world = World::new(6, strategy(json!({"maxUnavailable": 1, "maxSurge": 0})));
    let first = world.update();
    for n in 0..4 {
        world.sandbox(&format!("works-{n}"), &first, |_| {});
    }
    world.converge_where(|_| false);
    assert_eq!(
        (world.available(), world.progressing().0.as_str()),
        (4, "Progressing")
    );
    world.set_image("broken");
    for n in 0..8 {
        world.claim(&format!("run-{n}"), json!({}));
        world.converge_where(|sandbox| sandbox.revision == first);
        assert!(world.bound_to(&format!("run-{n}")).is_some(), "claim {n} waits");
        world.delete_claim(&format!("run-{n}"));
    }
}

#[test]
fn the_status_says_that_an_eviction_waits_for_capacity() {
    let fields = json!({"updateStrategy": {"maxUnavailable": 0, "maxSurge": 1}, "capacity": {"maxTotal": 3}});
    let mut world = World::full(3, fields);
    world.sandboxes.values_mut().next().unwrap().evict = true;
    world.converge();
    let (reason, message) = world.progressing();
    assert_eq!(reason, "RolloutComplete");
    assert!(message.ends_with(&held_back(3, 4)), "{message}");
}

#[test]
fn a_pool_that_wants_millions_creates_a_bounded_number_at_a_time() {
    let by_total = json!({
        "capacity": {"minTotal": i32::MAX}, "scaleStrategy": {"maxUnavailable": i32::MAX},
    });
    for spec in [json!({"replicas": i32::MAX}), by_total] {
        let mut world = World::new(1, json!({}));
        world.set(spec);
        let plan = world.plan();
        assert!(
            plan.actions
                .iter()
                .all(|a| matches!(a.step, Step::CreatePod { .. }))
        );
        assert_eq!(plan.actions.len(), 500);
    }
}
