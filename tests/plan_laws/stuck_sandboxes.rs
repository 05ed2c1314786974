//! Checks that sandboxes that never become available do not hold up the rollout of a corrected template.

use crate::world::World;
use serde_json::{Value, json};

/// Far less than `warmUpDeadlineSeconds`.
const SOON: usize = 60;

fn strategies() -> [Value; 4] {
    [
        json!({}),
        json!({"maxUnavailable": 0}),
        json!({"maxUnavailable": 1, "maxSurge": 1}),
        json!({"maxUnavailable": "50%"}),
    ]
}

fn of_revision(world: &World, revision: &str) -> usize {
    world.unclaimed().filter(|s| s.revision == revision).count()
}

fn warming(world: &World) -> usize {
    world.unclaimed().count() - world.available()
}

/// A pool whose first template never starts.
fn stuck(replicas: usize, strategy: &Value, ceiling: &Value, max_total: Option<usize>) -> World {
    let capacity = max_total.map_or(json!({}), |max| json!({"maxTotal": max}));
    let mut world = World::new(
        replicas,
        json!({
            "updateStrategy": strategy, "scaleStrategy": {"maxUnavailable": ceiling}, "capacity": capacity,
            "warmUpDeadlineSeconds": 300,
        }),
    );
    for _ in 0..5 {
        world.step();
        world.pass_second(|_| false);
    }
    assert!(world.unclaimed().count() > 0 && world.available() == 0);
    world
}

#[test]
fn a_corrected_template_is_rolled_out_long_before_the_warm_up_deadline_of_stuck_sandboxes() {
    for replicas in 1..=6 {
        for strategy in strategies() {
            for ceiling in [json!("100%"), json!("25%"), json!(1), json!(3)] {
                for max_total in [None, Some(replicas)] {
                    let at = format!("{replicas} with {strategy}, ceiling {ceiling}, maxTotal {max_total:?}");
                    let mut world = stuck(replicas, &strategy, &ceiling, max_total);
                    let broken = world.update();
                    world.set_image("image:2");
                    let update = world.update();
                    for _ in 0..SOON {
                        world.step();
                        let most_warming = ceiling.as_u64().map_or(usize::MAX, |most| most as usize);
                        assert!(
                            warming(&world) <= most_warming,
                            "{at}: {} warm up",
                            warming(&world)
                        );
                        world.pass_second(|s| s.revision != broken);
                    }
                    assert_eq!(of_revision(&world, &update), replicas, "I8: {at}");
                    assert_eq!(world.available(), replicas, "{at}");
                }
            }
        }
    }
}

#[test]
fn stuck_sandboxes_of_a_revision_that_worked_stay_until_the_new_revision_is_available() {
    for replicas in 1..=3 {
        let mut world = World::full(replicas, json!({"warmUpDeadlineSeconds": 300}));
        let worked = world.update();
        for number in 0..replicas {
            world.claim(&format!("claim-{number}"), json!({}));
        }
        for _ in 0..5 {
            world.step();
            world.pass_second(|_| false);
        }
        assert_eq!((of_revision(&world, &worked), world.available()), (replicas, 0));
        world.set_image("image:2");
        let update = world.update();
        world.step();
        assert_eq!(of_revision(&world, &update), 1, "the surge finds a place");
        assert_eq!(of_revision(&world, &worked), replicas);
        for _ in 0..SOON {
            world.pass_second(|s| s.revision != worked);
            world.step();
        }
        assert_eq!(of_revision(&world, &update), replicas);
        assert_eq!(world.available(), replicas);
    }
}

#[test]
fn of_a_template_that_follows_one_that_never_started_no_more_are_tried_than_the_budget() {
    for replicas in 1..=6 {
        for strategy in strategies() {
            for ceiling in [json!("100%"), json!(1), json!(2), json!(3)] {
                let at = format!("{replicas} with {strategy}, ceiling {ceiling}");
                let mut world = stuck(replicas, &strategy, &ceiling, None);
                let spec = world.pool().spec;
                world.set_image("image:2");
                let update = world.update();
                for _ in 0..SOON {
                    world.step();
                    let tried = of_revision(&world, &update);
                    let budget = spec.rollout_budget(0);
                    let missing = replicas.saturating_sub(world.unclaimed().count() - tried);
                    assert!(
                        tried <= missing.max(budget.max_unavailable + budget.max_surge),
                        "{at}: {tried} are tried"
                    );
                    world.pass_second(|_| false);
                }
            }
        }
    }
}
