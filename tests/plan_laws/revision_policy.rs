//! Checks which revisions a claim accepts during a rollout.

use crate::world::{World, lines};
use serde_json::{Value, json};
use smol_str::SmolStr;
use warmpool::planner::PlanPhase;

/// Two old sandboxes and one of the update revision, all available. The order of removal has the old ones last.
fn mixed(fields: Value) -> World {
    let mut world = World::full(3, fields);
    world.set_image("image:2");
    world.step();
    let new = world.update();
    let names: Vec<_> = world.sandboxes.keys().cloned().collect();
    for (index, name) in names.iter().enumerate() {
        let sandbox = world.sandboxes.get_mut(name).unwrap();
        sandbox.deletion_cost = 5;
        if index == 0 {
            sandbox.revision = new.as_str().into();
            sandbox.deletion_cost = 0;
        }
    }
    world
}

fn paused() -> Value {
    json!({"updateStrategy": {"paused": true}})
}

fn reason(world: &World) -> Option<(&'static str, String)> {
    let waiting = world.plan().waiting;
    waiting
        .first()
        .map(|(_, why)| (why.reason, why.message.to_string()))
}

/// For each served claim, by name, whether its sandbox has the update revision.
fn served_from_update(world: &mut World) -> Vec<(SmolStr, bool)> {
    let update = world.update();
    world.step();
    let names: Vec<_> = world.claims.keys().cloned().collect();
    names
        .into_iter()
        .filter_map(|name| {
            world
                .bound_to(&name)
                .map(|s| (name.clone(), s.revision == update))
        })
        .collect()
}

#[test]
fn prefer_latest_gets_the_update_revision_and_then_the_old() {
    let mut world = mixed(paused());
    world.claim("a", json!({})).claim("b", json!({}));
    assert_eq!(
        served_from_update(&mut world),
        [("a".into(), true), ("b".into(), false)]
    );
}

#[test]
fn any_gets_the_sandbox_that_would_be_removed_last() {
    let mut world = mixed(paused());
    for claim in ["a", "b", "c"] {
        world.claim(claim, json!({"revisionPolicy": "Any"}));
    }
    assert_eq!(
        served_from_update(&mut world),
        [("a".into(), false), ("b".into(), false), ("c".into(), true)]
    );
}

#[test]
fn latest_waits_rather_than_bind_an_old_sandbox_and_delays_no_other_claim() {
    let mut world = mixed(json!({}));
    for (claim, policy) in [("a", "Latest"), ("b", "Latest"), ("c", "PreferLatest")] {
        world.claim(claim, json!({"revisionPolicy": policy}));
    }
    assert_eq!(
        served_from_update(&mut world),
        [("a".into(), true), ("c".into(), false)]
    );
    let (reason, message) = reason(&world).unwrap();
    assert_eq!(reason, "NoneAvailable");
    assert!(message.starts_with(&format!("no sandbox of revision {}", world.update())));
    world.converge();
    let update = world.update();
    assert!(world.bound_to("b").is_some_and(|s| s.revision == update));
}

#[test]
fn latest_shows_that_the_rollout_is_paused_and_no_sandbox_is_created_for_it() {
    let mut world = World::full(2, paused());
    world.set_image("image:2");
    world.claim("a", json!({"revisionPolicy": "Latest"}));
    let plan = world.step();
    assert_eq!(reason(&world).unwrap().0, "PoolPaused");
    assert!(lines(&plan, PlanPhase::Scale).is_empty());
    world.set(json!({"updateStrategy": {"paused": false}}));
    world.converge();
    assert!(world.bound_to("a").is_some());
}

#[test]
fn latest_at_a_partition_has_a_sandbox_created_for_it() {
    let mut world = World::full(2, json!({"updateStrategy": {"partition": "100%"}}));
    world.set_image("image:2");
    world.converge();
    world.claim("a", json!({"revisionPolicy": "Latest"}));
    world.converge();
    let update = world.update();
    assert!(world.bound_to("a").is_some_and(|s| s.revision == update));
    assert!(world.unclaimed().all(|s| s.revision != update));
}

#[test]
fn latest_that_must_not_wait_fails_beside_available_old_ones() {
    let mut world = World::full(2, paused());
    world.set_image("image:2");
    world.claim("a", json!({"revisionPolicy": "Latest", "onEmpty": "Fail"}));
    assert_eq!(
        lines(&world.plan(), PlanPhase::Scheduling),
        ["FailClaim a PoolEmpty"]
    );
}

#[test]
fn no_old_sandbox_is_created_for_a_claim_that_accepts_only_the_latest() {
    let mut world = World::full(4, json!({"updateStrategy": {"maxUnavailable": 1}}));
    world.set_image("broken");
    let broken = world.update();
    for claim in ["a", "b", "c"] {
        world.claim(claim, json!({"revisionPolicy": "Latest"}));
    }
    for _ in 0..30 {
        world.step();
        world.pass_second(|s| s.revision != broken);
    }
    assert!(world.unclaimed().filter(|s| s.revision != broken).count() <= 4);
    assert_eq!(world.available(), 4);
}

#[test]
fn an_old_sandbox_that_nothing_replaces_does_not_delay_a_claim_for_the_latest() {
    let capacities = [
        json!({"replicas": 0, "capacity": {"maxWarm": 1}}),
        json!({"replicas": 0, "capacity": {"minTotal": 1}}),
        json!({"replicas": 0}),
    ];
    for fields in capacities {
        let mut world = World::full(1, json!({"updateStrategy": {"type": "OnReplenish"}}));
        world.set(fields.clone());
        world.set_image("image:2");
        world.claim("latest", json!({"revisionPolicy": "Latest"}));
        world.converge();
        let bound = world.bound_to("latest").map(|s| s.revision.to_string());
        assert_eq!(bound, Some(world.update()), "{fields}");
    }
}

#[test]
fn latest_has_a_sandbox_created_for_it_in_a_paused_rollout_whose_old_template_is_gone() {
    let mut world = World::full(2, json!({"updateStrategy": {"paused": true}}));
    world.set_image("image:2").step();
    let update = world.update();
    world.revisions.retain(|revision| revision.hash == update);
    world.claim("run", json!({"revisionPolicy": "Latest"}));
    let created = lines(&world.plan(), PlanPhase::Scale);
    assert_eq!(created.len(), 1);
    assert!(created[0].contains(&update), "{created:?}");
}

/// Serves claims one after the other, each of which ends, until no old sandbox is left. Returns how many.
fn claims_to_the_end(world: &mut World, fields: &Value) -> usize {
    for count in 0..30 {
        let update = world.update();
        if world.unclaimed().all(|s| s.revision == update) {
            return count;
        }
        world.claim("run", fields.clone()).converge();
        assert!(world.bound_to("run").is_some());
        world.delete_claim("run");
    }
    panic!("claims leave old sandboxes for ever");
}

#[test]
fn on_replenish_is_complete_after_as_many_claims_without_a_policy_as_there_are_old_sandboxes() {
    let mut world = World::full(6, json!({"updateStrategy": {"type": "OnReplenish"}}));
    world.set_image("image:2").converge();
    assert_eq!(claims_to_the_end(&mut world, &json!({})), 6);
    world.converge();
    assert_eq!(world.progressing().0, "RolloutComplete");
}

#[test]
fn with_on_replenish_a_policy_of_the_claim_or_of_the_pools_defaults_holds() {
    let policy = json!({"revisionPolicy": "PreferLatest"});
    for (own, defaults) in [(policy.clone(), json!({})), (json!({}), policy)] {
        let mut world = mixed(json!({"updateStrategy": {"type": "OnReplenish"}, "claimDefaults": defaults}));
        world.claim("a", own.clone());
        assert_eq!(
            served_from_update(&mut world),
            [("a".into(), true)],
            "{own} {defaults}"
        );
    }
    let mut world = mixed(json!({"updateStrategy": {"type": "OnReplenish"}}));
    world.claim("a", json!({}));
    assert_eq!(served_from_update(&mut world), [("a".into(), false)]);
}

#[test]
fn with_on_replenish_claims_take_only_as_many_old_sandboxes_first_as_the_partition_lets_go() {
    let mut world = mixed(json!({"updateStrategy": {"type": "OnReplenish", "partition": 1}}));
    world.claim("a", json!({})).claim("b", json!({}));
    assert_eq!(
        served_from_update(&mut world),
        [("a".into(), false), ("b".into(), true)],
        "one of the two old sandboxes stays"
    );
}
