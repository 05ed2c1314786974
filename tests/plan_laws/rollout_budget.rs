//! Checks pools whose `maxUnavailable` and `maxSurge` both resolve to 0.

use crate::world::World;
use serde_json::{Value, json};
use warmpool::planner::Step;

/// Strategies whose two budgets both resolve to 0 for up to three replicas. The first is the default.
fn both_zero() -> [Value; 5] {
    [
        json!({}),
        json!({"maxUnavailable": 0}),
        json!({"maxUnavailable": "0%"}),
        json!({"maxUnavailable": "10%", "maxSurge": 0}),
        json!({"maxUnavailable": 0, "maxSurge": "0%"}),
    ]
}

fn pool(replicas: usize, strategy: &Value, max_total: Option<usize>) -> World {
    let capacity = max_total.map_or(json!({}), |max| json!({"maxTotal": max}));
    World::full(
        replicas,
        json!({"updateStrategy": strategy, "capacity": capacity}),
    )
}

/// What [`course`] counted: deleted sandboxes, the fewest available and the most existing sandboxes.
#[derive(Debug, PartialEq, Eq)]
struct Course {
    deleted: usize,
    fewest_available: usize,
    most: usize,
}

/// Steps until nothing changes. Each plan is applied at once, and created sandboxes become Ready after it.
fn course(world: &mut World) -> Course {
    let mut course = Course {
        deleted: 0,
        fewest_available: world.available(),
        most: world.sandboxes.len(),
    };
    for _ in 0..60 {
        let plan = world.step();
        let deletes = |step: &Step| matches!(step, Step::DeletePod { .. });
        course.deleted += plan.actions.iter().filter(|a| deletes(&a.step)).count();
        course.fewest_available = course.fewest_available.min(world.available());
        course.most = course.most.max(world.sandboxes.len());
        if plan.actions.is_empty() && world.unclaimed().all(|s| s.ready_since.is_some()) {
            return course;
        }
        world.pass_second(|_| true);
    }
    panic!("the pool does not converge: {}", world.spec);
}

fn old(world: &World) -> usize {
    let update = world.update();
    world.unclaimed().filter(|s| s.revision != update).count()
}

fn evict_all(world: &mut World) {
    world.sandboxes.values_mut().for_each(|s| s.evict = true);
}

#[test]
fn max_unavailable_0_written_by_hand_counts_as_0_with_a_surge_of_1_while_max_total_has_room() {
    // maxSurge, maxTotal, claimed sandboxes, and what maxUnavailable and maxSurge come to.
    for (max_surge, max_total, claimed, expected) in [
        (0, None, 0, (0, 1)),
        (0, Some(5), 1, (0, 1)),
        (0, Some(5), 2, (1, 0)),
        (0, Some(3), 0, (1, 0)),
        (2, None, 0, (0, 2)),
        (2, Some(3), 0, (0, 2)),
    ] {
        let strategy = json!({"maxUnavailable": 0, "maxSurge": max_surge});
        let budget = pool(3, &strategy, max_total).pool().spec.rollout_budget(claimed);
        assert_eq!(
            (budget.max_unavailable, budget.max_surge),
            expected,
            "maxSurge {max_surge}, maxTotal {max_total:?}, {claimed} claimed"
        );
    }
}

#[test]
fn a_default_pool_of_one_never_drops_to_zero_available_in_a_rollout() {
    for strategy in both_zero() {
        for replicas in 1..=3 {
            let mut world = pool(replicas, &strategy, None);
            world.set_image("image:2");
            let expected = Course {
                deleted: replicas,
                fewest_available: replicas,
                most: replicas + 1,
            };
            assert_eq!(course(&mut world), expected, "{replicas} with {strategy}");
            assert_eq!(old(&world), 0, "{replicas} with {strategy}");
        }
    }
}

#[test]
fn a_default_pool_of_one_never_drops_to_zero_available_when_its_sandbox_is_evicted() {
    for strategy in both_zero() {
        for replicas in 1..=3 {
            let mut world = pool(replicas, &strategy, None);
            evict_all(&mut world);
            let expected = Course {
                deleted: replicas,
                fewest_available: replicas,
                most: replicas + 1,
            };
            assert_eq!(course(&mut world), expected, "{replicas} with {strategy}");
        }
    }
}

#[test]
fn a_default_pool_of_one_with_capacity_for_a_surge_uses_it() {
    let mut world = pool(1, &json!({}), Some(2));
    world.set_image("image:2");
    assert_eq!(course(&mut world).fewest_available, 1);
    evict_all(&mut world);
    assert_eq!(course(&mut world).fewest_available, 1);
    assert_eq!(old(&world), 0);
}

#[test]
fn a_pool_without_capacity_for_a_surge_replaces_one_at_a_time() {
    for strategy in both_zero() {
        for replicas in 1..=3 {
            for evicted in [false, true] {
                let mut world = pool(replicas, &strategy, Some(replicas));
                if evicted {
                    evict_all(&mut world);
                } else {
                    world.set_image("image:2");
                }
                let expected = Course {
                    deleted: replicas,
                    fewest_available: replicas - 1,
                    most: replicas,
                };
                let at = format!("{replicas} with {strategy}, evicted: {evicted}");
                assert_eq!(course(&mut world), expected, "{at}");
                assert_eq!(old(&world), 0, "{at}");
            }
        }
    }
}

#[test]
fn a_pool_whose_claims_leave_no_capacity_for_a_surge_replaces_one_at_a_time() {
    // Beside the claim, maxTotal allows one sandbox fewer than replicas, as many, and one more.
    for (max_total, fewest_available) in [(3, 1), (4, 2), (5, 3)] {
        for evicted in [false, true] {
            let mut world = pool(3, &json!({}), Some(max_total));
            world.claim("tenant", json!({}));
            world.converge();
            world.reconcile_claim("tenant");
            world.converge();
            assert_eq!(world.available(), 3.min(max_total - 1));
            if evicted {
                evict_all(&mut world);
            } else {
                world.set_image("image:2");
            }
            let course = course(&mut world);
            assert_eq!(course.fewest_available, fewest_available, "maxTotal {max_total}");
            assert!(course.most <= max_total, "{course:?}");
            assert!(world.unclaimed().all(|s| !s.evict), "maxTotal {max_total}");
            assert_eq!(old(&world), 0, "maxTotal {max_total}");
        }
    }
}

#[test]
fn a_claim_for_the_new_revision_is_served_where_old_sandboxes_fill_max_total() {
    for strategy in [json!({}), json!({"maxUnavailable": 0, "maxSurge": 1})] {
        let mut world = pool(2, &strategy, Some(3));
        world.set_image("image:2");
        world.claim("picky", json!({"replicas": 2, "revisionPolicy": "Latest"}));
        world.converge();
        assert!(world.bound_to("picky").is_some(), "{strategy}");
    }
}

#[test]
fn a_pool_whose_min_total_fills_max_total_rolls() {
    for strategy in [json!({}), json!({"maxUnavailable": 0, "maxSurge": 1})] {
        let capacity = json!({"minTotal": 3, "maxTotal": 3});
        let mut world = World::full(2, json!({"updateStrategy": strategy, "capacity": capacity}));
        world.set_image("image:2");
        let course = course(&mut world);
        assert_eq!(
            (course.fewest_available, course.most, old(&world)),
            (2, 3, 0),
            "{strategy}"
        );
    }
}

#[test]
fn a_sandbox_that_a_user_set_aside_uses_the_capacity_of_a_surge() {
    let mut world = pool(3, &json!({}), Some(4));
    let mut debugged = world.warming("debugged", "any");
    debugged.state = "debug".into();
    world.sandboxes.insert("debugged".into(), debugged);
    world.set_image("image:2");
    let course = course(&mut world);
    assert_eq!((course.fewest_available, course.most), (2, 4));
    assert!(world.sandboxes.contains_key("debugged"));
    let update = world.update();
    assert_eq!(world.unclaimed().filter(|s| s.revision == update).count(), 3);
}

#[test]
fn recreate_rolls_without_a_surge_and_evicts_with_one_like_on_replenish() {
    let mut world = pool(2, &json!({"type": "Recreate"}), None);
    world.set_image("image:2");
    assert_eq!(course(&mut world).fewest_available, 0);
    for (max_total, fewest_available) in [(None, 2), (Some(3), 2), (Some(2), 1)] {
        for kind in ["OnReplenish", "Recreate"] {
            let mut world = pool(2, &json!({"type": kind}), max_total);
            evict_all(&mut world);
            let course = course(&mut world);
            assert_eq!(
                (course.deleted, course.fewest_available),
                (2, fewest_available),
                "{kind}"
            );
        }
    }
}

#[test]
fn a_partition_is_reached_with_a_surge_and_without_capacity_for_one() {
    for (max_total, fewest_available) in [(None, 3), (Some(3), 2)] {
        let mut world = pool(3, &json!({"partition": 1}), max_total);
        world.set_image("image:2");
        let rolled = course(&mut world);
        assert_eq!((rolled.deleted, rolled.fewest_available), (2, fewest_available));
        assert_eq!(old(&world), 1);
        // The sandbox that the partition keeps is replaced from the old template.
        evict_all(&mut world);
        assert_eq!(course(&mut world).fewest_available, fewest_available);
        assert_eq!((old(&world), world.available()), (1, 3));
    }
}

#[test]
fn an_eviction_in_a_paused_rollout_surges_too() {
    for (max_total, fewest_available) in [(None, 1), (Some(1), 0)] {
        let mut world = pool(1, &json!({"paused": true}), max_total);
        world.set_image("image:2");
        evict_all(&mut world);
        let course = course(&mut world);
        assert_eq!((course.deleted, course.fewest_available), (1, fewest_available));
        assert_eq!(old(&world), 1);
    }
}

#[test]
fn the_status_says_that_max_unavailable_counts_as_one_only_while_it_does() {
    let shows_it = |world: &World| {
        let conditions = world.plan().status.conditions;
        let progressing = conditions.iter().find(|c| c.type_ == "Progressing").unwrap();
        progressing
            .message
            .contains("maxUnavailable counts as 1 because capacity.maxTotal forbids a surge")
    };
    for strategy in both_zero() {
        for (max_total, counts_as_one) in [(None, false), (Some(4), false), (Some(3), true)] {
            let mut world = pool(3, &strategy, max_total);
            assert!(!shows_it(&world), "nothing is being replaced");
            world.set_image("image:2");
            assert_eq!(shows_it(&world), counts_as_one, "{strategy} with {max_total:?}");
            world.converge();
            assert!(!shows_it(&world), "the rollout is complete");
            evict_all(&mut world);
            assert_eq!(shows_it(&world), counts_as_one, "{strategy} with {max_total:?}");
        }
    }
    let mut written = pool(3, &json!({"maxUnavailable": 1}), Some(3));
    written.set_image("image:2");
    assert!(!shows_it(&written), "maxUnavailable counts as written");
}

#[test]
fn a_pool_is_available_while_no_more_are_missing_than_its_budget_allows_now() {
    // With capacity for a surge all replicas have to be available, without it all but one.
    for (max_total, missing) in [(None, 0), (Some(4), 0), (Some(3), 1)] {
        let mut world = pool(3, &json!({}), max_total);
        let is_available = |world: &World| {
            let conditions = world.plan().status.conditions;
            conditions
                .iter()
                .any(|c| c.type_ == "Available" && c.status == "True")
        };
        for gone in 0..3 {
            assert_eq!(
                is_available(&world),
                gone <= missing,
                "{gone} of 3 are gone, {max_total:?}"
            );
            world.sandboxes.pop_first();
        }
    }
}
