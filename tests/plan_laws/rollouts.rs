//! Checks rollouts: surge, partition, pause, the other strategies, and every small rollout to its end.

use crate::world::{World, lines};
use serde_json::{Value, json};
use warmpool::model::sandbox::Sandbox;
use warmpool::planner::{PlanPhase, Step};

fn strategy(fields: Value) -> Value {
    json!({"updateStrategy": fields})
}

fn rolling(replicas: usize, fields: Value) -> World {
    let mut world = World::full(replicas, strategy(fields));
    world.set_image("image:2");
    world
}

fn old(world: &World) -> usize {
    let update = world.update();
    world.unclaimed().filter(|s| s.revision != update).count()
}

fn progressing(world: &World) -> (String, String) {
    let conditions = world.plan().status.conditions;
    let condition = conditions.iter().find(|c| c.type_ == "Progressing").unwrap();
    (condition.status.clone(), condition.reason.clone())
}

/// Steps until nothing changes. Returns the fewest available sandboxes, the most unclaimed sandboxes, and the most
/// sandboxes of the update revision that were warming at one time.
fn walk(world: &mut World, ready: impl Fn(&str) -> bool) -> (usize, usize, usize) {
    let update = world.update();
    let (mut least, mut most, mut most_warming) = (world.available(), 0, 0);
    for _ in 0..80 {
        let nothing_to_do = world.step().actions.is_empty();
        let before = world.sandboxes.clone();
        let warming = world
            .unclaimed()
            .filter(|s| s.revision == update && s.ready_since.is_none())
            .count();
        least = least.min(world.available());
        most = most.max(world.unclaimed().count());
        most_warming = most_warming.max(warming);
        world.pass_second(|s| ready(&s.revision));
        if nothing_to_do && world.sandboxes == before {
            return (least, most, most_warming);
        }
    }
    let mut trace = String::new();
    for _ in 0..3 {
        let plan = world.step();
        trace += &format!(
            "{:?} {:?}\n",
            lines(&plan, PlanPhase::Recreate),
            lines(&plan, PlanPhase::Scale)
        );
        world.pass_second(|s| ready(&s.revision));
    }
    panic!("the rollout does not end: {}\n{trace}", world.spec)
}

#[test]
fn every_small_rollout_ends_within_its_budget_and_so_does_its_undo() {
    for replicas in 1..=6usize {
        for partition in 0..=replicas {
            for max_unavailable in 0..=replicas {
                for max_surge in 0..=replicas {
                    let fields = json!({
                        "partition": partition, "maxUnavailable": max_unavailable, "maxSurge": max_surge,
                    });
                    let at = format!("replicas {replicas}, {fields}");
                    // Both at 0 count as a surge of 1.
                    let surge = max_surge.max(usize::from(max_unavailable == 0));
                    let mut world = rolling(replicas, fields);
                    for image in ["image:2", "image:1"] {
                        world.set_image(image);
                        let (least, most, _) = walk(&mut world, |_| true);
                        assert!(least + max_unavailable >= replicas, "{at}: {least} available");
                        assert!(most <= replicas + surge, "{at}: {most} unclaimed");
                        assert!(old(&world) <= partition, "{at}: {} old", old(&world));
                        assert_eq!(world.available(), replicas, "{at}");
                    }
                }
            }
        }
    }
}

#[test]
fn of_a_revision_that_never_becomes_ready_no_more_exist_than_the_budget() {
    for replicas in 1..=6usize {
        for max_unavailable in 0..=replicas {
            for max_surge in 0..=replicas {
                let at =
                    format!("replicas {replicas}, maxUnavailable {max_unavailable}, maxSurge {max_surge}");
                let surge = max_surge.max(usize::from(max_unavailable == 0));
                let mut world = rolling(
                    replicas,
                    json!({"maxUnavailable": max_unavailable, "maxSurge": max_surge}),
                );
                let broken = world.update();
                let (least, _, warming) = walk(&mut world, |revision| revision != broken);
                assert!(warming <= max_unavailable + surge, "{at}: {warming} broken");
                assert!(least + max_unavailable >= replicas, "{at}: {least} available");
                world.set_image("image:1");
                walk(&mut world, |revision| revision != broken);
                assert_eq!((world.available(), old(&world)), (replicas, 0), "{at}: undone");
            }
        }
    }
}

#[test]
fn with_max_unavailable_zero_no_sandbox_goes_before_its_replacement_is_available() {
    let mut world = rolling(3, json!({"maxUnavailable": 0, "maxSurge": 1}));
    let plan = world.step();
    assert!(lines(&plan, PlanPhase::Recreate).is_empty());
    assert_eq!(lines(&plan, PlanPhase::Scale).len(), 1);
    assert!(world.step().actions.is_empty(), "the replacement is warming");
    world.pass_second(|_| true);
    assert_eq!(lines(&world.plan(), PlanPhase::Recreate).len(), 1);
}

#[test]
fn a_replacement_is_created_at_once_where_the_surge_allows_it() {
    let mut world = rolling(1, json!({"maxUnavailable": 1, "maxSurge": 1}));
    let plan = world.plan();
    let planned = (
        lines(&plan, PlanPhase::Recreate).len(),
        lines(&plan, PlanPhase::Scale).len(),
    );
    assert_eq!(planned, (1, 1), "the replacement does not wait for the deletion");
    let (_, most, _) = walk(&mut world, |_| true);
    assert!(most <= 2, "{most} unclaimed");
}

#[test]
fn an_eviction_surges_when_the_budget_is_used_up() {
    let mut world = World::full(3, strategy(json!({"maxUnavailable": 0, "maxSurge": 1})));
    world.sandboxes.values_mut().next().unwrap().evict = true;
    let plan = world.step();
    assert!(lines(&plan, PlanPhase::Eviction).is_empty());
    assert_eq!(lines(&plan, PlanPhase::Scale).len(), 1);
    world.pass_second(|_| true);
    assert_eq!(lines(&world.plan(), PlanPhase::Eviction).len(), 1);
    world.converge();
    assert_eq!(world.unclaimed().count(), 3);
}

/// A pool of five with `maxTotal` six, three of which a claim holds.
fn half_claimed(update_strategy: &Value) -> World {
    let fields = json!({"capacity": {"maxTotal": 6}, "updateStrategy": update_strategy});
    let mut world = World::full(5, fields);
    world.claim("tenant", json!({"replicas": 3}));
    world.converge();
    world.reconcile_claim("tenant");
    world.converge();
    assert_eq!((world.sandboxes.len(), world.available()), (6, 3));
    world
}

#[test]
fn a_rollout_goes_one_at_a_time_where_max_total_does_not_allow_all_replicas() {
    let mut world = half_claimed(&json!({"maxUnavailable": 2}));
    world.set_image("image:2");
    while old(&world) > 0 {
        assert!(world.available() >= 2);
        world.step();
        world.pass_second(|_| true);
    }
    world.converge();
    assert_eq!(progressing(&world), ("True".into(), "RolloutComplete".into()));
}

#[test]
fn sandboxes_to_be_evicted_make_way_for_a_claim_where_max_total_is_reached() {
    let mut world = half_claimed(&json!({"maxUnavailable": 1}));
    world.sandboxes.values_mut().for_each(|s| s.evict = true);
    world.claim("late", json!({}));
    world.converge();
    assert!(world.bound_to("late").is_some());
}

#[test]
fn no_old_sandbox_is_deleted_where_none_may_be_unavailable_and_max_total_is_reached() {
    let mut world = half_claimed(&json!({"maxUnavailable": 0, "maxSurge": 1}));
    world.set_image("image:2");
    world.converge();
    assert_eq!((old(&world), world.available()), (3, 3));
    let conditions = world.plan().status.conditions;
    assert!(conditions.iter().any(|c| c.message.contains("held back")));
}

#[test]
fn a_partition_keeps_exactly_that_many_and_lost_old_ones_are_created_again_from_the_old_template() {
    let mut world = rolling(5, json!({"partition": 3, "maxUnavailable": 1}));
    world.converge();
    assert_eq!(old(&world), 3);
    assert_eq!(progressing(&world), ("True".into(), "PartitionComplete".into()));
    assert_eq!(world.plan().status.expected_updated, 2);
    let update = world.update();
    let lost = world
        .unclaimed()
        .find(|s| s.revision != update)
        .unwrap()
        .key
        .name
        .clone();
    world.sandboxes.remove(&lost);
    world.converge();
    assert_eq!((old(&world), world.available()), (3, 5));
    world.set(strategy(json!({"partition": 0}))).converge();
    assert_eq!(old(&world), 0);
}

#[test]
fn a_percentage_below_100_as_partition_leaves_one_to_the_new_revision() {
    let mut world = rolling(5, json!({"partition": "99%"}));
    world.converge();
    assert_eq!(old(&world), 4);
    world.set(strategy(json!({"partition": "100%"}))).converge();
    assert_eq!(old(&world), 4, "a sandbox of the new revision is not moved back");
}

#[test]
fn a_paused_rollout_stops_while_the_pool_is_kept_full_from_the_old_revision() {
    let mut world = rolling(6, json!({"maxUnavailable": 2}));
    world.step();
    world.step();
    world.pass_second(|_| true);
    world.set(strategy(json!({"paused": true})));
    let before = old(&world);
    let lost = world
        .unclaimed()
        .find(|s| s.revision != world.update())
        .unwrap()
        .key
        .name
        .clone();
    world.sandboxes.remove(&lost);
    world.claim("one", json!({})).converge();
    assert_eq!((world.available(), world.bound_to("one").is_some()), (6, true));
    assert!(old(&world) >= before, "no new sandbox was created");
    assert_eq!(progressing(&world), ("Unknown".into(), "Paused".into()));
    world.set(json!({"replicas": 4})).converge();
    assert_eq!(world.available(), 4);
    world.set(strategy(json!({"paused": false}))).converge();
    assert_eq!(old(&world), 0);
}

#[test]
fn recreate_deletes_all_old_sandboxes_at_once_and_no_claimed_one() {
    let mut world = World::full(5, strategy(json!({"type": "Recreate"})));
    world.claim("one", json!({})).converge();
    let held = world.bound_to("one").unwrap().uid.clone();
    world.set_image("image:2");
    assert_eq!(lines(&world.plan(), PlanPhase::Recreate).len(), 5);
    world.converge();
    assert_eq!((old(&world), world.available()), (0, 5));
    assert_eq!(world.bound_to("one").unwrap().uid, held);
}

#[test]
fn on_replenish_replaces_only_claimed_and_failed_sandboxes() {
    let mut world = rolling(4, json!({"type": "OnReplenish"}));
    world.converge();
    assert_eq!(old(&world), 4);
    world.claim("one", json!({})).converge();
    assert_eq!((old(&world), world.available()), (3, 4));
}

#[test]
fn a_rollback_in_mid_rollout_keeps_the_sandboxes_of_its_revision() {
    let mut world = rolling(6, json!({"maxUnavailable": 2}));
    world.step();
    world.step();
    world.pass_second(|_| true);
    let first = world
        .unclaimed()
        .filter(|s| s.revision != world.update())
        .map(|s| s.uid.clone())
        .collect::<Vec<_>>();
    world.set_image("image:1").converge();
    assert!(first.iter().all(|uid| world.unclaimed().any(|s| s.uid == *uid)));
    assert_eq!(old(&world), 0);
}

/// Selects sandboxes that were created at least `seconds` ago.
fn warmed_for(world: &World, seconds: i64) -> impl Fn(&Sandbox) -> bool + use<> {
    let now = world.now;
    move |s| now.duration_since(s.created).as_secs() >= seconds
}

#[test]
fn a_rollout_without_claims_creates_and_deletes_no_sandbox_in_vain() {
    for replicas in 1..=6usize {
        for max_unavailable in 0..=replicas {
            for max_surge in 0..=replicas {
                for partition in [0, replicas / 2] {
                    let fields = json!({
                        "maxUnavailable": max_unavailable, "maxSurge": max_surge, "partition": partition,
                    });
                    let mut world = rolling(replicas, fields.clone());
                    let (mut created, mut deleted) = (0, 0);
                    for tick in 0..50i64 {
                        for action in world.step().actions {
                            match action.step {
                                Step::CreatePod { .. } => created += 1,
                                Step::DeletePod { .. } => deleted += 1,
                                other => panic!("{other:?}"),
                            }
                        }
                        // Warm-up times differ.
                        world.pass_second(warmed_for(&world, tick % 3));
                    }
                    let replaced = replicas - partition;
                    assert_eq!(
                        (created, deleted),
                        (replaced, replaced),
                        "{replicas} with {fields}"
                    );
                }
            }
        }
    }
}

#[test]
fn an_evicted_sandbox_in_a_paused_rollout_is_replaced_and_its_replacement_stays() {
    let mut world = rolling(5, json!({"maxUnavailable": 0, "maxSurge": 1, "paused": true}));
    world.sandboxes.values_mut().next().unwrap().evict = true;
    world.step();
    assert_eq!(world.unclaimed().count(), 6);
    assert!(world.step().actions.is_empty(), "the replacement is warming");
    world.converge();
    assert_eq!((world.unclaimed().count(), old(&world)), (5, 5));
}

#[test]
fn an_evicted_sandbox_that_a_partition_keeps_comes_back_from_the_old_template() {
    let mut world = rolling(5, json!({"maxUnavailable": 0, "maxSurge": 1, "partition": 3}));
    world.converge();
    let update = world.update();
    let victim = world
        .sandboxes
        .values_mut()
        .find(|s| s.revision != update)
        .unwrap();
    victim.evict = true;
    world.converge();
    assert_eq!((world.unclaimed().count(), old(&world)), (5, 3));
}

#[test]
fn the_replacement_of_an_evicted_sandbox_of_the_partition_stays() {
    for kind in ["RollingUpdate", "Recreate"] {
        let mut world = rolling(
            4,
            json!({"type": kind, "partition": 1, "maxUnavailable": 0, "maxSurge": 1}),
        );
        world.converge();
        let kept = |world: &World| {
            let update = world.update();
            let old = world.unclaimed().find(|s| s.revision != update);
            old.map(|s| s.key.name.clone()).unwrap()
        };
        let evicted = kept(&world);
        world.sandboxes.get_mut(&evicted).unwrap().evict = true;
        world.claim("one", json!({}));
        world.converge();
        assert_eq!((old(&world), world.unclaimed().count()), (1, 4), "{kind}");
        assert_ne!(kept(&world), evicted, "{kind}");
    }
}
