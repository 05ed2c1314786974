//! Checks each phase of a plan.

use crate::world::{World, lines};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use warmpool::api::conditions::find;
use warmpool::api::labels;
use warmpool::cache::snapshot::Creation;
use warmpool::model::sandbox::{Owner, PodPhase, Sandbox};
use warmpool::planner::{Plan, PlanPhase};

fn created(world: &World) -> usize {
    lines(&world.plan(), PlanPhase::Scale)
        .iter()
        .filter(|l| l.starts_with("CreatePod"))
        .count()
}

fn deleted(world: &World, phase: PlanPhase) -> Vec<String> {
    lines(&world.plan(), phase)
        .into_iter()
        .filter(|l| l.starts_with("DeletePod"))
        .collect()
}

/// Makes a sandbox belong to the claim `claim`.
fn claimed_by(claim: &str) -> impl FnOnce(&mut Sandbox) {
    let (name, uid) = (claim.into(), claim.into());
    move |sandbox| {
        sandbox.owner = Owner::Claim { name, uid };
        sandbox.state = labels::CLAIMED.into();
    }
}

#[test]
fn an_empty_pool_is_filled() {
    assert_eq!(created(&World::new(10, json!({}))), 10);
}

#[test]
fn a_pool_of_zero_creates_nothing() {
    assert_eq!(created(&World::new(0, json!({}))), 0);
}

#[test]
fn no_more_sandboxes_warm_at_once_than_the_scale_strategy_allows() {
    assert_eq!(
        created(&World::new(10, json!({"scaleStrategy": {"maxUnavailable": 3}}))),
        3
    );
    assert_eq!(
        created(&World::new(
            10,
            json!({"scaleStrategy": {"maxUnavailable": "25%"}})
        )),
        3
    );
    assert_eq!(
        created(&World::new(10, json!({"scaleStrategy": {"maxUnavailable": 0}}))),
        1
    );
}

#[test]
fn a_pool_of_zero_warms_for_all_its_claims_at_once() {
    let mut world = World::new(0, json!({}));
    for n in 0..6 {
        world.claim(&format!("c{n}"), json!({}));
    }
    assert_eq!(created(&world), 6);
}

#[test]
fn max_total_bounds_every_pod_terminating_ones_included() {
    let mut world = World::new(10, json!({"capacity": {"maxTotal": 6}}));
    world.sandbox("going", "old", |s| s.terminating = true);
    world.sandbox("claimed", "old", claimed_by("c"));
    assert_eq!(created(&world), 4);
}

#[test]
fn sandboxes_above_a_lowered_max_total_are_deleted_regardless_of_the_budget() {
    let mut world = World::full(3, json!({"updateStrategy": {"maxUnavailable": 0, "maxSurge": 1}}));
    for name in ["one", "two"] {
        world.sandbox(name, "old", claimed_by(name));
    }
    world.set(json!({"capacity": {"maxTotal": 3}}));
    world.step();
    let left = world.unclaimed().filter(|s| !s.terminating).count();
    assert_eq!(left, 1, "maxTotal allows one beside two claimed sandboxes");
}

#[test]
fn min_total_counts_claimed_and_unclaimed_together() {
    let mut world = World::new(
        1,
        json!({"capacity": {"minTotal": 5}, "scaleStrategy": {"maxUnavailable": 10}}),
    );
    world.sandbox("claimed", "old", claimed_by("c"));
    assert_eq!(created(&world), 4);
}

#[test]
fn unclaimed_sandboxes_are_trimmed_only_above_max_warm() {
    let mut world = World::full(10, json!({}));
    world.set(json!({"replicas": 4, "capacity": {"maxWarm": 8}}));
    assert_eq!(deleted(&world, PlanPhase::Scale).len(), 2);
    world.set(json!({"capacity": {"maxWarm": 4}}));
    assert_eq!(deleted(&world, PlanPhase::Scale).len(), 6);
}

#[test]
fn failed_and_finished_sandboxes_are_replaced() {
    let mut world = World::full(3, json!({}));
    let names: Vec<_> = world.sandboxes.keys().cloned().collect();
    world.sandboxes.get_mut(&names[0]).unwrap().phase = PodPhase::Failed;
    world.sandboxes.get_mut(&names[1]).unwrap().phase = PodPhase::Succeeded;
    let hour = SignedDuration::from_hours(1);
    world.sandboxes.values_mut().for_each(|s| s.created -= hour);
    let expected = [
        format!("DeletePod {} PodFailed", names[0]),
        format!("DeletePod {} PodSucceeded", names[1]),
    ];
    assert_eq!(lines(&world.plan(), PlanPhase::Eviction), expected);
    assert_eq!(created(&world), 2);
}

#[test]
fn an_evict_label_replaces_one_sandbox_within_the_budget() {
    let mut world = World::full(4, json!({"updateStrategy": {"maxUnavailable": 1}}));
    world.sandboxes.values_mut().for_each(|s| s.evict = true);
    assert_eq!(lines(&world.plan(), PlanPhase::Eviction).len(), 1);
}

#[test]
fn a_sandbox_with_a_state_set_by_hand_is_neither_claimed_nor_deleted_and_is_replaced() {
    for state in [labels::CLAIMED, "nonsense", ""] {
        let mut world = World::full(2, json!({}));
        let name = world.sandboxes.keys().next().unwrap().clone();
        world.sandboxes.get_mut(&name).unwrap().state = state.into();
        world.claim("one", json!({})).claim("two", json!({}));
        let plan = world.plan();
        assert_eq!(lines(&plan, PlanPhase::Scheduling).len(), 1, "{state}");
        assert!(
            plan.actions
                .iter()
                .all(|a| !format!("{:?}", a.step).contains("DeletePod")),
            "{state}"
        );
        assert_eq!(
            created(&world),
            2,
            "{state}: one replaces the sandbox with this state, one is for the second claim"
        );
    }
}

#[test]
fn a_rollout_deletes_max_unavailable_and_waits_for_the_new_sandboxes() {
    let mut world = World::full(10, json!({"updateStrategy": {"maxUnavailable": "25%"}}));
    world.set_image("image:2");
    assert_eq!(
        deleted(&world, PlanPhase::Recreate).len(),
        2,
        "25% of 10, rounded down"
    );
    world.step();
    assert!(deleted(&world, PlanPhase::Recreate).is_empty());
    assert_eq!(created(&world), 2);
    world.step();
    assert!(
        deleted(&world, PlanPhase::Recreate).is_empty(),
        "the new sandboxes are warming"
    );
    world.pass_second(|_| true);
    assert_eq!(deleted(&world, PlanPhase::Recreate).len(), 2);
}

#[test]
fn missing_sandboxes_count_as_unavailable_in_a_rollout() {
    let mut world = World::full(10, json!({"updateStrategy": {"maxUnavailable": "20%"}}));
    for name in world.sandboxes.keys().take(2).cloned().collect::<Vec<_>>() {
        world.sandboxes.remove(&name);
    }
    world.set_image("image:2");
    assert!(
        deleted(&world, PlanPhase::Recreate).is_empty(),
        "the two missing sandboxes use up the budget"
    );
}

#[test]
fn broken_old_sandboxes_are_not_all_replaced_at_once() {
    let mut world = World::new(10, json!({"updateStrategy": {"maxUnavailable": 2}}));
    world.step();
    world.set_image("image:2");
    let updated: Vec<_> = (0..6)
        .map(|_| {
            world.step();
            world.pass_second(|_| false);
            let update = world.update();
            world.unclaimed().filter(|s| s.revision == update).count()
        })
        .collect();
    assert_eq!(
        updated,
        [0, 2, 2, 2, 2, 2],
        "I5: as many as may be unavailable are replaced, and no more before one of them is available"
    );
}

#[test]
fn finished_sandboxes_are_deleted_in_an_order_that_ignores_the_input() {
    let mut world = World::full(4, json!({}));
    world
        .sandboxes
        .values_mut()
        .for_each(|s| s.phase = PodPhase::Failed);
    let mut snapshot = world.snapshot();
    snapshot.sandboxes.reverse();
    assert_eq!(
        lines(&world.plan(), PlanPhase::Eviction),
        lines(&warmpool::planner::plan(&snapshot), PlanPhase::Eviction)
    );
}

#[test]
fn a_template_that_never_becomes_ready_cannot_empty_the_pool_even_under_claims() {
    let mut world = World::full(10, json!({"updateStrategy": {"maxUnavailable": 2}}));
    world.set_image("broken");
    let broken = world.update();
    for round in 0..40 {
        if round % 4 == 0 {
            world.claim(&format!("claim-{round}"), json!({}));
        }
        world.step();
        world.pass_second(|s| s.revision != broken);
        assert!(world.unclaimed().filter(|s| s.revision == broken).count() <= 2);
    }
    assert!(world.available() >= 7, "{} available", world.available());
}

#[test]
fn scaling_down_in_a_rollout_removes_old_sandboxes_first() {
    let mut world = World::full(6, json!({"updateStrategy": {"maxUnavailable": 2}}));
    world.set_image("image:2");
    world.step();
    world.step();
    world.pass_second(|_| true);
    world.set(json!({"replicas": 3}));
    let update = world.update();
    let victims = deleted(&world, PlanPhase::Scale);
    assert!(!victims.is_empty());
    assert!(victims.iter().all(|line| !line.contains(&update)), "{victims:?}");
}

#[test]
fn removal_follows_the_documented_order() {
    let mut world = World::new(1, json!({}));
    let revision = world.update();
    let earlier = world.now.checked_sub(SignedDuration::from_secs(60)).unwrap();
    world
        .sandbox("0-unscheduled", &revision, |s| {
            (s.node, s.phase, s.ready_since) = (None, PodPhase::Pending, None)
        })
        .sandbox("1-pending", &revision, |s| {
            (s.phase, s.ready_since) = (PodPhase::Pending, None)
        })
        .sandbox("2-unknown", &revision, |s| s.phase = PodPhase::Unknown)
        .sandbox("3-not-ready", &revision, |s| s.ready_since = None)
        .sandbox("4-cheap", &revision, |s| s.deletion_cost = -1)
        .sandbox("5-crowded", &revision, |s| s.ready_since = Some(earlier))
        .sandbox("6-alone-late", &revision, |s| s.node = Some("node-2".into()))
        .sandbox("7-alone-restarted", &revision, |s| {
            (s.node, s.ready_since, s.restarts) = (Some("node-3".into()), Some(earlier), 3);
        })
        .sandbox("8-alone-newer", &revision, |s| {
            (s.node, s.ready_since) = (Some("node-4".into()), Some(earlier))
        })
        .sandbox("9-alone-older", &revision, |s| {
            (s.node, s.ready_since, s.created) = (Some("node-5".into()), Some(earlier), earlier);
        });
    let order: Vec<_> = deleted(&world, PlanPhase::Scale)
        .iter()
        .map(|l| l.split(' ').nth(1).unwrap().chars().next().unwrap())
        .collect();
    assert_eq!(order.iter().collect::<String>(), "012345678");
}

/// A quota rejects a pod. Returns when the backoff ends.
fn reject_creations_for_5_s(world: &mut World) -> Timestamp {
    let until = world.now.checked_add(SignedDuration::from_secs(5)).unwrap();
    world.creation = Creation::BackOff {
        until,
        message: "exceeded quota".into(),
    };
    until
}

#[test]
fn nothing_is_created_while_the_api_server_rejects_and_then_one_to_try_again() {
    let mut world = World::new(10, json!({}));
    let until = reject_creations_for_5_s(&mut world);
    let plan = world.plan();
    assert_eq!((created(&world), plan.next), (0, Some(until)));
    let failure = find(&plan.status.conditions, "ReplicaFailure").unwrap();
    assert_eq!(
        (failure.status.as_str(), failure.message.as_str()),
        ("True", "exceeded quota")
    );
    world.now = until;
    assert_eq!(created(&world), 1);
}

#[test]
fn a_rejection_of_a_pod_no_longer_wanted_is_shown_until_the_backoff_ends() {
    let mut world = World::full(3, json!({}));
    let until = reject_creations_for_5_s(&mut world);
    let has_replica_failure =
        |plan: &Plan| plan.status.conditions.iter().any(|c| c.type_ == "ReplicaFailure");
    let plan = world.plan();
    assert_eq!((has_replica_failure(&plan), plan.next), (true, Some(until)));
    world.now = until;
    assert!(!has_replica_failure(&world.plan()));
}

#[test]
fn an_invalid_spec_freezes_the_pool_and_claims_are_still_served() {
    for bad in [
        json!({"updateStrategy": {"maxUnavailable": "abc"}}),
        json!({"updateStrategy": {"maxUnavailable": "-5%"}}),
        json!({"updateStrategy": {"maxUnavailable": "150%"}}),
        json!({"updateStrategy": {"maxUnavailable": -1}}),
        json!({"scaleStrategy": {"maxUnavailable": "all"}}),
        json!({"replicas": -1}),
        json!({"replicas": "ten"}),
        json!({"capacity": {"minTotal": 5, "maxTotal": 4}}),
    ] {
        let mut world = World::full(3, json!({}));
        world
            .set_image("image:2")
            .set(bad.clone())
            .claim("one", json!({}));
        let name = world.sandboxes.keys().next().unwrap().clone();
        world.sandboxes.get_mut(&name).unwrap().phase = PodPhase::Failed;
        let plan = world.plan();
        assert_eq!(plan.actions.len(), 1, "{bad}: {:?}", plan.actions);
        assert_eq!(lines(&plan, PlanPhase::Scheduling).len(), 1, "{bad}");
        let progressing = find(&plan.status.conditions, "Progressing").unwrap();
        assert_eq!(
            (progressing.status.as_str(), progressing.reason.as_str()),
            ("False", "InvalidSpec"),
            "{bad}"
        );
        assert!(
            progressing.message.contains("spec."),
            "{bad}: {}",
            progressing.message
        );
    }
}
