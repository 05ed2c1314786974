//! Checks when a rollout that is undone counts as complete.

use crate::world::World;
use jiff::SignedDuration;
use serde_json::json;

fn reason(world: &World) -> String {
    world.progressing().0
}

#[test]
fn an_undo_in_mid_rollout_is_not_complete_while_something_else_runs() {
    let mut world = World::full(4, json!({}));
    world.set_image("image:2").step();
    world.pass_second(|_| true);
    world.step();
    assert!(world.unclaimed().any(|s| s.revision == world.update()));
    world.set_image("image:1").step();
    assert_eq!(reason(&world), "Progressing");
    world.converge();
    assert_eq!(reason(&world), "RolloutComplete");
    assert!(world.unclaimed().all(|s| s.revision == world.update()));
}

#[test]
fn an_undone_recreate_is_complete_only_when_the_pool_is_full_again() {
    let mut world = World::full(4, json!({"updateStrategy": {"type": "Recreate"}}));
    (0..4).for_each(|n| {
        world.claim(&format!("run-{n}"), json!({}));
    });
    world.converge();
    world.set_image("image:2");
    world.converge();
    world.set_image("image:1").step();
    world.step();
    assert_eq!(world.available(), 0);
    assert_ne!(
        reason(&world),
        "RolloutComplete",
        "sandboxes claimed earlier do not count"
    );
    world.converge();
    assert_eq!(
        (world.available(), reason(&world).as_str()),
        (4, "RolloutComplete")
    );
}

#[test]
fn an_undo_to_a_template_that_no_longer_starts_exceeds_its_deadline() {
    let mut world = World::full(2, json!({"updateStrategy": {"type": "Recreate"}}));
    world.set_image("image:2").step();
    world.set_image("image:1").step();
    world.converge_where(|_| false);
    world.now += SignedDuration::from_secs(601);
    world.step();
    assert_eq!(reason(&world), "ProgressDeadlineExceeded");
}

#[test]
fn the_status_counts_the_sandboxes_that_a_partition_keeps_after_an_undo() {
    let mut world = World::full(8, json!({"updateStrategy": {"partition": 4}}));
    world.set_image("image:2");
    world.converge();
    world.set_image("image:1");
    world.converge();
    assert_eq!(
        (
            world.status["updated"].as_u64(),
            world.status["expectedUpdated"].as_u64()
        ),
        (Some(4), Some(4))
    );
    assert_eq!(reason(&world), "PartitionComplete");
}

#[test]
fn a_template_changed_before_the_first_fill_reaches_its_partition() {
    let mut world = World::new(4, json!({"updateStrategy": {"partition": 2}}));
    world.step();
    world.pass_second(|_| true);
    let first = world.update();
    world
        .sandboxes
        .values_mut()
        .skip(3)
        .for_each(|s| s.ready_since = None);
    world.set_image("image:2");
    world.converge();
    assert_eq!(world.unclaimed().filter(|s| s.revision == first).count(), 2);
    assert_eq!(reason(&world), "PartitionComplete");
}

#[test]
fn a_complete_pool_stays_complete_while_it_is_emptied_and_after_an_invalid_spec() {
    let mut world = World::full(4, json!({}));
    world.sandboxes.clear();
    world.step();
    assert_eq!(reason(&world), "RolloutComplete");
    world.set(json!({"replicas": -1})).step();
    assert_eq!(reason(&world), "InvalidSpec");
    world.set(json!({"replicas": 4})).step();
    assert_eq!(reason(&world), "RolloutComplete");
}

#[test]
fn an_undone_rollout_is_not_complete_after_an_invalid_spec_is_corrected() {
    let mut world = World::full(4, json!({"updateStrategy": {"type": "Recreate"}}));
    world.set_image("image:2").step();
    world.step();
    world.set_image("image:1").step();
    world.sandboxes.clear();
    world.set(json!({"replicas": -1})).step();
    assert_eq!(reason(&world), "InvalidSpec");
    world.set(json!({"replicas": 4})).step();
    assert_ne!(reason(&world), "RolloutComplete", "none is available");
    world.converge();
    assert_eq!(
        (world.available(), reason(&world).as_str()),
        (4, "RolloutComplete")
    );
}

#[test]
fn a_paused_rollout_is_not_complete_where_claims_use_up_max_total() {
    let mut world = World::full(2, json!({"capacity": {"maxTotal": 2}}));
    (0..2).for_each(|n| {
        world.claim(&format!("run-{n}"), json!({}));
    });
    world.converge();
    let old = world.update();
    world.set(json!({"updateStrategy": {"paused": true}}));
    world.set_image("image:2").step();
    assert_eq!(reason(&world), "Paused");
    world.sandboxes.clear();
    world.converge();
    let mut revisions = world.unclaimed().map(|sandbox| sandbox.revision.as_str());
    assert!(revisions.all(|revision| revision == old));
}
