//! Checks warm-up deadlines, failing templates and progress deadlines.

use crate::world::{World, lines};
use jiff::SignedDuration;
use serde_json::{Value, json};
use warmpool::model::sandbox::{PodPhase, Sandbox};
use warmpool::planner::{PlanPhase, Step};

fn evicted(world: &World) -> Vec<String> {
    lines(&world.plan(), PlanPhase::Eviction)
}

fn progressing(world: &World) -> (String, String, String) {
    let conditions = world.plan().status.conditions;
    let condition = conditions.iter().find(|c| c.type_ == "Progressing").unwrap();
    (
        condition.status.clone(),
        condition.reason.clone(),
        condition.message.clone(),
    )
}

/// Lets `seconds` pass. Sandboxes of revision `broken` never become Ready; with `dies` they fail at once.
/// Returns the seconds at which sandboxes of `broken` were created.
pub fn pass_with_broken(world: &mut World, seconds: usize, broken: &str, dies: bool) -> Vec<usize> {
    let mut creations = Vec::new();
    for second in 0..seconds {
        let plan = world.step();
        let created = plan
            .actions
            .iter()
            .filter(|a| matches!(&a.step, Step::CreatePod { revision, .. } if revision == broken));
        creations.extend(created.map(|_| second));
        world.pass_second(|s| s.revision != broken);
        for sandbox in world
            .sandboxes
            .values_mut()
            .filter(|s| s.revision == broken && dies)
        {
            sandbox.phase = PodPhase::Failed;
        }
    }
    creations
}

fn later(world: &mut World, seconds: i64) {
    world.now += SignedDuration::from_secs(seconds);
}

fn change(world: &mut World, change: impl Fn(&mut Sandbox)) {
    world.sandboxes.values_mut().for_each(change);
}

#[test]
fn a_sandbox_not_available_in_time_is_replaced() {
    let mut world = World::new(1, json!({"warmUpDeadlineSeconds": 30}));
    world.step();
    later(&mut world, 29);
    assert!(evicted(&world).is_empty());
    assert_eq!(world.plan().next, Some(world.now + SignedDuration::from_secs(1)));
    later(&mut world, 1);
    let name = world.sandboxes.keys().next().unwrap();
    assert_eq!(evicted(&world), [format!("DeletePod {name} WarmUpDeadline")]);
}

#[test]
fn a_ready_sandbox_within_min_ready_seconds_is_not_evicted() {
    let mut world = World::new(1, json!({"warmUpDeadlineSeconds": 30, "minReadySeconds": 20}));
    world.step();
    later(&mut world, 25);
    world.pass_second(|_| true);
    later(&mut world, 10);
    assert!(evicted(&world).is_empty());
    assert_eq!(world.available(), 0);
}

#[test]
fn a_sandbox_that_becomes_unready_gets_a_new_warm_up_deadline() {
    let mut world = World::full(2, json!({"warmUpDeadlineSeconds": 30}));
    later(&mut world, 3600);
    let now = world.now;
    change(&mut world, |s| {
        s.ready_since = None;
        s.ready_changed = Some(now);
    });
    assert!(evicted(&world).is_empty());
    later(&mut world, 30);
    assert_eq!(
        evicted(&world).len(),
        1,
        "at most one of two sandboxes is evicted at a time"
    );
}

#[test]
fn a_claimed_sandbox_is_never_evicted_for_its_warm_up_deadline() {
    let mut world = World::full(1, json!({"warmUpDeadlineSeconds": 30}));
    world.claim("one", json!({}));
    world.converge();
    later(&mut world, 3600);
    change(&mut world, |s| s.ready_since = None);
    let name = world.bound_to("one").unwrap().key.name.clone();
    assert!(evicted(&world).iter().all(|line| !line.contains(&*name)));
}

#[test]
fn the_status_shows_why_sandboxes_do_not_run() {
    let mut world = World::new(2, json!({"warmUpDeadlineSeconds": 10}));
    world.step();
    let pulls = |s: &mut Sandbox| s.not_running_reason = Some("container main: ImagePullBackOff".into());
    change(&mut world, pulls);
    let before = progressing(&world).2;
    assert!(
        before.contains("warming sandboxes: container main: ImagePullBackOff")
            && !before.contains("failed to"),
        "the warm-up deadline has not passed: {before}"
    );
    later(&mut world, 10);
    let (_, _, message) = progressing(&world);
    let expected = "failed to become available once (container main: ImagePullBackOff), they are tried again";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn a_template_that_never_starts_is_tried_ever_more_slowly_and_a_few_at_a_time() {
    for dies in [false, true] {
        let fields =
            json!({"warmUpDeadlineSeconds": 10, "updateStrategy": {"maxUnavailable": 3, "maxSurge": 1}});
        let mut world = World::new(20, fields);
        let broken = world.update();
        let creations = pass_with_broken(&mut world, 4000, &broken, dies);
        let later: Vec<_> = creations.iter().filter(|at| **at > 0).collect();
        let rounds: std::collections::BTreeSet<_> = later.iter().collect();
        assert!(later.len() <= rounds.len() * 4, "{dies}: {later:?}");
        let gaps: Vec<_> = rounds
            .iter()
            .zip(rounds.iter().skip(1))
            .map(|(a, b)| **b - **a)
            .collect();
        assert!(
            gaps.iter().zip(gaps.iter().skip(1)).all(|(a, b)| b + 12 >= *a),
            "{dies}: {gaps:?}"
        );
        assert!(gaps.iter().all(|gap| *gap <= 320), "{dies}: {gaps:?}");
        assert!(gaps.last().is_some_and(|last| *last >= 300), "{dies}: {gaps:?}");
        let (_, _, message) = progressing(&world);
        assert!(message.contains("times in a row"), "{message}");
        assert!(world.unclaimed().count() <= 20 + 1);
    }
}

#[test]
fn a_sandbox_that_is_ready_for_a_moment_does_not_reset_the_failures() {
    let mut world = World::new(4, json!({}));
    let mut creations = 0;
    for _ in 0..400 {
        creations += lines(&world.step(), PlanPhase::Scale).len();
        world.pass_second(|_| true);
        creations += lines(&world.step(), PlanPhase::Scale).len();
        change(&mut world, |s| {
            if s.ready_since.take().is_some() {
                s.phase = PodPhase::Failed;
            }
        });
    }
    assert!(creations <= 4 + 9, "{creations} creations in 400 seconds");
}

#[test]
fn a_sandbox_that_is_ready_as_a_second_ends_does_not_reset_the_failures() {
    let mut world = World::new(1, json!({}));
    world.step();
    change(&mut world, |s| s.phase = PodPhase::Failed);
    world.step();
    later(&mut world, 1);
    world.step();
    // The sandbox is Ready for 40 ms. API times have whole seconds, so this reads as more than a second.
    let ready_since = world.now;
    world.pass_second(|_| true);
    change(&mut world, |s| s.ready_since = s.ready_since.map(|_| ready_since));
    world.now = ready_since + SignedDuration::from_millis(1040);
    assert_eq!(world.available(), 1);
    assert!(progressing(&world).2.contains("failed to become available once"));
    world.now = ready_since + SignedDuration::from_millis(2000);
    assert!(!progressing(&world).2.contains("failed"));
}

#[test]
fn sandboxes_that_others_end_are_replaced_at_once() {
    let mut world = World::full(4, json!({}));
    for _ in 0..10 {
        // The pod garbage collector marks the pods of a deleted node Failed.
        change(&mut world, |s| s.phase = PodPhase::Failed);
        assert_eq!(lines(&world.step(), PlanPhase::Eviction).len(), 4);
        assert!(!progressing(&world).2.contains("failed"));
        world.converge();
        assert_eq!(world.available(), 4);
    }
}

#[test]
fn an_available_sandbox_ends_the_backoff() {
    let mut world = World::new(4, json!({"warmUpDeadlineSeconds": 10}));
    let broken = world.update();
    pass_with_broken(&mut world, 200, &broken, true);
    assert!(world.unclaimed().count() < 4);
    later(&mut world, 300);
    world.converge();
    assert_eq!(world.available(), 4, "the backoff is over");
    assert_eq!(progressing(&world).1, "RolloutComplete");
    later(&mut world, 10);
    assert!(!progressing(&world).2.contains("failed"));
}

#[test]
fn the_failures_of_a_template_are_forgotten_once_it_is_replaced() {
    let mut world = World::new(4, json!({"warmUpDeadlineSeconds": 10}));
    let broken = world.update();
    pass_with_broken(&mut world, 60, &broken, true);
    assert!(progressing(&world).2.contains("failed"));
    world.set_image("image:2");
    let fixed = world.update();
    pass_with_broken(&mut world, 60, &broken, true);
    assert!(world.sandboxes.values().all(|s| s.revision == fixed));
    assert!(!progressing(&world).2.contains("failed"));
    assert!(world.failures.is_empty());
}

#[test]
fn a_rollout_to_a_template_that_fails_at_once_keeps_the_old_sandboxes() {
    for fields in [
        json!({"maxUnavailable": 2}),
        json!({"maxUnavailable": 0, "maxSurge": 2}),
    ] {
        let mut world = World::full(8, json!({"updateStrategy": fields, "warmUpDeadlineSeconds": 10}));
        world.set_image("broken");
        let broken = world.update();
        let mut deleted = 0;
        for _ in 0..600 {
            let plan = world.plan();
            deleted += lines(&plan, PlanPhase::Recreate).len()
                + lines(&plan, PlanPhase::Scale)
                    .iter()
                    .filter(|l| l.starts_with("DeletePod"))
                    .count();
            pass_with_broken(&mut world, 1, &broken, true);
            assert!(world.available() >= 6);
        }
        assert!(
            deleted <= 2,
            "{deleted} sandboxes were deleted for a revision that never became available"
        );
    }
}

#[test]
fn a_claim_in_a_failing_rollout_gets_an_old_sandbox_which_is_replaced() {
    let mut world = World::full(4, json!({"updateStrategy": {"maxUnavailable": 1}}));
    world.set_image("broken");
    let broken = world.update();
    pass_with_broken(&mut world, 100, &broken, true);
    for claim in ["one", "two", "three"] {
        world.claim(claim, json!({}));
        pass_with_broken(&mut world, 5, &broken, true);
        assert!(world.bound_to(claim).is_some());
    }
    assert_eq!(world.available(), 3);
}

fn rolling(fields: Value) -> World {
    let mut spec = json!({"progressDeadlineSeconds": 60, "warmUpDeadlineSeconds": 3600});
    spec["updateStrategy"] = fields;
    let mut world = World::full(4, spec);
    later(&mut world, 1000);
    world.set_image("image:2");
    world
}

#[test]
fn a_stuck_rollout_exceeds_its_deadline_and_continues() {
    let mut world = rolling(json!({}));
    let broken = world.update();
    pass_with_broken(&mut world, 59, &broken, false);
    assert_eq!(progressing(&world).1, "Progressing");
    pass_with_broken(&mut world, 2, &broken, false);
    let (status, reason, _) = progressing(&world);
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "ProgressDeadlineExceeded")
    );
    world.converge();
    assert_eq!(progressing(&world).1, "RolloutComplete");
}

#[test]
fn each_sandbox_that_becomes_available_puts_the_deadline_off() {
    let mut world = rolling(json!({"maxUnavailable": 1}));
    for _ in 0..3 {
        for _ in 0..50 {
            world.step();
            world.pass_second(|_| false);
        }
        world.pass_second(|_| true);
        assert_eq!(progressing(&world).0, "True");
    }
}

#[test]
fn a_stuck_first_fill_exceeds_its_deadline() {
    let mut world = World::new(2, json!({"progressDeadlineSeconds": 60}));
    let broken = world.update();
    pass_with_broken(&mut world, 62, &broken, false);
    assert_eq!(progressing(&world).1, "ProgressDeadlineExceeded");
}

#[test]
fn a_rollout_that_waits_for_users_or_claims_has_no_deadline() {
    for (fields, reason) in [
        (json!({"paused": true}), "Paused"),
        (json!({"partition": 4}), "PartitionComplete"),
        (json!({"type": "OnReplenish"}), "NewRevision"),
    ] {
        let mut world = rolling(fields);
        let none = String::new();
        pass_with_broken(&mut world, 100, &none, false);
        assert_eq!(progressing(&world).1, reason);
    }
}

#[test]
fn a_resumed_rollout_gets_a_new_deadline() {
    let mut world = rolling(json!({"paused": true}));
    let broken = world.update();
    pass_with_broken(&mut world, 100, &broken, false);
    world.set(json!({"updateStrategy": {"paused": false}}));
    pass_with_broken(&mut world, 58, &broken, false);
    assert_eq!(progressing(&world).0, "True");
    pass_with_broken(&mut world, 5, &broken, false);
    assert_eq!(progressing(&world).1, "ProgressDeadlineExceeded");
}

#[test]
fn a_rollout_whose_partition_is_lowered_gets_a_new_deadline() {
    let mut world = rolling(json!({"partition": 4}));
    let broken = world.update();
    pass_with_broken(&mut world, 100, &broken, false);
    world.set(json!({"updateStrategy": {"partition": 0}}));
    pass_with_broken(&mut world, 58, &broken, false);
    assert_eq!(progressing(&world).0, "True");
    pass_with_broken(&mut world, 5, &broken, false);
    assert_eq!(progressing(&world).1, "ProgressDeadlineExceeded");
}
