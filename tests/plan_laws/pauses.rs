//! Checks that a paused rollout keeps its split of revisions, whatever claims, scaling, failures and edits do.

use crate::world::World;
use serde_json::{Value, json};

/// A pool of 20 whose rollout was paused when five sandboxes were new and available.
fn paused_at_five(fields: Value) -> World {
    let mut world = World::full(20, json!({"updateStrategy": {"maxUnavailable": 5}}));
    world.set(fields);
    world.set_image("image:2");
    while split(&world).0 < 5 {
        world.step();
        world.pass_second(|_| true);
    }
    world.set(json!({"updateStrategy": {"paused": true}})).converge();
    assert_eq!(split(&world), (5, 15));
    world
}

/// How many unclaimed sandboxes are new, and how many old.
fn split(world: &World) -> (usize, usize) {
    let update = world.update();
    let new = world.unclaimed().filter(|s| s.revision == update).count();
    (new, world.unclaimed().count() - new)
}

/// Serves one claim after the other; each ends before the next one comes.
fn serve(world: &mut World, claims: usize, fields: &Value) {
    for n in 0..claims {
        let name = format!("run-{n}");
        world.claim(&name, fields.clone()).converge();
        assert!(world.bound_to(&name).is_some(), "{name} waits");
        world.delete_claim(&name);
    }
}

#[test]
fn what_claims_take_in_a_paused_rollout_is_made_again_of_the_revision_that_they_took() {
    for policy in ["PreferLatest", "Any"] {
        let mut world = paused_at_five(json!({}));
        serve(&mut world, 30, &json!({"revisionPolicy": policy}));
        assert_eq!(split(&world), (5, 15), "{policy}");
        assert_eq!(world.written().expected_updated, 5, "{policy}");
        world.set(json!({"updateStrategy": {"paused": false}})).converge();
        assert_eq!(split(&world), (20, 0), "{policy}");
        assert_eq!(world.progressing().0, "RolloutComplete", "{policy}");
    }
}

#[test]
fn a_burst_of_claims_that_takes_more_than_all_new_sandboxes_leaves_the_split_of_a_paused_rollout() {
    let mut world = paused_at_five(json!({}));
    for burst in 0..3 {
        (0..9).for_each(|n| {
            world.claim(&format!("run-{burst}-{n}"), json!({}));
        });
        world.converge();
        assert_eq!(split(&world), (5, 15), "after burst {burst}");
    }
}

#[test]
fn claims_that_wait_do_not_shift_the_split_of_a_paused_rollout_for_good() {
    for (burst, late) in (15..30).flat_map(|burst| [(burst, 0), (burst, 1), (burst, 2)]) {
        let mut world = paused_at_five(json!({}));
        for second in 0..6 {
            let claims = if second % 3 == 0 { burst } else { 0 };
            for n in 0..claims {
                world.claim(&format!("run-{second}-{n}"), json!({}));
            }
            world.step();
            world.step();
            let third = |uid: &str| uid.bytes().map(usize::from).sum::<usize>() % 3;
            world.pass_second(|s| third(&s.uid) != (late + second) % 3);
        }
        world.converge();
        let told = world.written().expected_updated;
        serve(&mut world, 20, &json!({"revisionPolicy": "Any"}));
        assert_eq!(
            (told, split(&world)),
            (5, (5, 15)),
            "I5: a paused rollout stands still; after bursts of {burst} claims"
        );
    }
}

#[test]
fn a_paused_rollout_in_a_pool_above_its_replicas_keeps_its_new_sandboxes() {
    let mut world = paused_at_five(json!({}));
    world.set(json!({"replicas": 18, "capacity": {"maxWarm": 20}}));
    serve(&mut world, 12, &json!({}));
    assert_eq!(
        split(&world),
        (3, 15),
        "the first two taken were above the replicas"
    );
}

#[test]
fn a_rollout_that_is_paused_before_any_sandbox_is_new_keeps_all_old_under_claims() {
    let mut world = World::full(6, json!({"updateStrategy": {"paused": true}}));
    world.set_image("image:2");
    serve(&mut world, 12, &json!({}));
    assert_eq!(split(&world), (0, 6));
    assert_eq!(world.written().expected_updated, 0);
}

#[test]
fn a_rollout_that_is_paused_when_all_sandboxes_are_new_keeps_all_new_under_claims() {
    let mut world = World::full(6, json!({"updateStrategy": {"maxUnavailable": 3}}));
    world.set_image("image:2");
    while split(&world) != (6, 0) {
        world.step();
        world.pass_second(|_| true);
    }
    world.set(json!({"updateStrategy": {"paused": true}})).converge();
    assert_eq!(world.progressing().0, "Paused");
    for n in 0..4 {
        (0..4).for_each(|k| {
            world.claim(&format!("run-{n}-{k}"), json!({}));
        });
        world.step();
        world.step();
        world.pass_second(|_| true);
    }
    world.converge();
    assert_eq!((split(&world), world.written().expected_updated), ((6, 0), 6));
}

#[test]
fn scaling_a_paused_rollout_adds_and_takes_old_sandboxes_and_new_ones_only_when_no_old_one_is_left() {
    let mut world = paused_at_five(json!({}));
    for (replicas, expected) in [
        (30, (5, 25)),
        (10, (5, 5)),
        (3, (3, 0)),
        (10, (3, 7)),
        (0, (0, 0)),
        (4, (0, 4)),
    ] {
        world.set(json!({"replicas": replicas})).converge();
        assert_eq!(split(&world), expected, "{replicas} replicas");
        serve(&mut world, replicas.min(8), &json!({}));
        assert_eq!(split(&world), expected, "{replicas} replicas, after claims");
    }
}

#[test]
fn a_new_sandbox_that_is_lost_or_evicted_in_a_paused_rollout_is_made_again_new() {
    let mut world = paused_at_five(json!({}));
    let update = world.update();
    let new = |world: &World| {
        let mut new = world.unclaimed().filter(|s| s.revision == update);
        new.next().map(|s| s.key.name.clone()).unwrap()
    };
    world.sandboxes.remove(&new(&world));
    world.converge();
    assert_eq!(split(&world), (5, 15));
    let evicted = new(&world);
    world.sandboxes.get_mut(&evicted).unwrap().evict = true;
    world.converge();
    assert!(!world.sandboxes.contains_key(&evicted));
    assert_eq!(split(&world), (5, 15));
}

#[test]
fn new_sandboxes_that_fail_again_and_again_in_a_paused_rollout_are_made_again_old() {
    let mut world = paused_at_five(json!({"warmUpDeadlineSeconds": 5}));
    let update = world.update();
    (0..3).for_each(|n| {
        world.claim(&format!("run-{n}"), json!({}));
    });
    let mut created = 0;
    for _ in 0..600 {
        let plan = world.step();
        let creates = |a: &&warmpool::planner::Action| matches!(&a.step, warmpool::planner::Step::CreatePod { revision, .. } if *revision == update);
        created += plan.actions.iter().filter(creates).count();
        world.pass_second(|s| s.revision != update);
    }
    assert_eq!(split(&world), (2, 18), "{created} new were tried");
    assert_eq!((world.available(), world.written().expected_updated), (20, 2));
    assert!(created <= 6, "{created} new sandboxes were tried in ten minutes");
}

#[test]
fn a_template_rolled_back_in_a_paused_rollout_replaces_only_what_claims_take() {
    let mut world = paused_at_five(json!({}));
    world.set_image("image:1").converge();
    assert_eq!(
        (split(&world), world.progressing().0.as_str()),
        ((15, 5), "Paused")
    );
    // No other revision is known to work, so the refill is of the template.
    serve(&mut world, 3, &json!({"revisionPolicy": "PreferLatest"}));
    assert_eq!(split(&world), (15, 5));
    world.set(json!({"updateStrategy": {"paused": false}})).converge();
    assert_eq!(
        (split(&world), world.progressing().0.as_str()),
        ((20, 0), "RolloutComplete")
    );
}

#[test]
fn a_third_template_in_a_paused_rollout_keeps_what_is_there_and_is_not_made() {
    let mut world = paused_at_five(json!({}));
    let first = world.written().current_revision;
    world.set_image("image:3").converge();
    serve(&mut world, 5, &json!({"revisionPolicy": "Any"}));
    assert_eq!(split(&world), (0, 20));
    assert!(world.unclaimed().filter(|s| s.revision == first).count() >= 15);
}

#[test]
fn the_status_of_an_operator_that_did_not_hold_the_split_does_not_let_a_paused_rollout_go_on() {
    let mut world = paused_at_five(json!({}));
    world.status["expectedUpdated"] = json!(20);
    world.step();
    serve(&mut world, 10, &json!({"revisionPolicy": "Any"}));
    assert_eq!(split(&world), (5, 15));
}
