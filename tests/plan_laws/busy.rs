//! Checks rollouts while claims keep arriving.

use crate::world::{World, lines};
use serde_json::json;
use warmpool::planner::PlanPhase;

/// Rolls a full pool while `rate` claims a second are created, bound and deleted. Sandboxes warm up in a second.
/// Returns after how many seconds no old sandbox is left, or `None` after 300.
fn roll(replicas: usize, max_unavailable: usize, max_surge: usize, rate: usize) -> Option<usize> {
    let budget = json!({"maxUnavailable": max_unavailable, "maxSurge": max_surge});
    let mut world = World::full(replicas, json!({"updateStrategy": budget}));
    let mut number = 0;
    for _ in 0..5 {
        pass_busy_second(&mut world, rate, &mut number);
    }
    world.set_image("image:2");
    let update = world.update();
    for seconds in 0..300 {
        if world.unclaimed().all(|s| s.revision == update) {
            return Some(seconds);
        }
        pass_busy_second(&mut world, rate, &mut number);
        assert!(world.unclaimed().count() <= replicas + max_surge);
    }
    None
}

fn pass_busy_second(world: &mut World, rate: usize, number: &mut usize) {
    let names: Vec<_> = (0..rate).map(|n| format!("c{}", *number + n)).collect();
    *number += rate;
    for name in &names {
        world.claim(name, json!({}));
    }
    world.step();
    world.step();
    for name in &names {
        assert!(world.bound_to(name).is_some(), "claim {name} waits");
        world.delete_claim(name);
    }
    world.pass_second(|_| true);
}

#[test]
fn a_rollout_ends_at_any_rate_of_claims_that_its_budget_outruns() {
    for replicas in 2..=6 {
        for max_unavailable in 0..=replicas {
            for max_surge in 0..=3 {
                let budget = (max_unavailable + max_surge).max(1);
                for rate in 1..budget.min(replicas) {
                    assert!(
                        roll(replicas, max_unavailable, max_surge, rate).is_some(),
                        "{replicas} replicas, {max_unavailable} unavailable, {max_surge} surge, {rate} claims a second"
                    );
                }
            }
        }
    }
}

#[test]
fn without_claims_each_sandbox_is_replaced_once() {
    for (max_unavailable, max_surge) in [(1, 0), (0, 1), (2, 2), (0, 8), (8, 0)] {
        let budget = json!({"maxUnavailable": max_unavailable, "maxSurge": max_surge});
        let mut world = World::full(8, json!({"updateStrategy": budget}));
        world.set_image("image:2");
        let (mut created, mut deleted) = (0, 0);
        for _ in 0..60 {
            let plan = world.step();
            for phase in [PlanPhase::Recreate, PlanPhase::Scale, PlanPhase::Eviction] {
                let lines = lines(&plan, phase);
                created += lines.iter().filter(|l| l.starts_with("CreatePod")).count();
                deleted += lines.iter().filter(|l| l.starts_with("DeletePod")).count();
            }
            world.pass_second(|_| true);
        }
        assert_eq!((created, deleted), (8, 8), "{max_unavailable} {max_surge}");
    }
}

#[test]
fn sandboxes_created_for_claims_are_deleted_when_the_claims_stop() {
    let mut world = World::full(6, json!({"updateStrategy": {"maxUnavailable": 0, "maxSurge": 3}}));
    world.set_image("image:2");
    let mut number = 0;
    for _ in 0..4 {
        pass_busy_second(&mut world, 2, &mut number);
    }
    world.converge();
    let update = world.update();
    assert_eq!(world.unclaimed().count(), 6);
    assert!(world.unclaimed().all(|s| s.revision == update));
}
