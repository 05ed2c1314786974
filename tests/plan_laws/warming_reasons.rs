//! Checks that the pool and its waiting claims say why warming sandboxes are not available, and that nothing is written while only
//! the words of it change.

use crate::world::World;
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};
use warmpool::api::conditions::find;
use warmpool::cache::snapshot::{ExpectedWrite, WaitReason};
use warmpool::model::sandbox::Sandbox;
use warmpool::planner::commonest_warming_reason::WarmingReasons;
use warmpool::planner::{self, WriteStatus, claim};
use warmpool::telemetry::events::pools::transitions;

const PULL: &str = "container main: ImagePullBackOff";
const CRASH: &str = "container main: CrashLoopBackOff";

fn fails(sandbox: &mut Sandbox, reason: &str, detail: &str) {
    sandbox.not_running_reason = Some(reason.into());
    sandbox.not_running_detail = detail.into();
}

/// A pool of `replicas` sandboxes that all warm up, the first of them for these reasons.
fn warming(replicas: usize, reasons: &[&str]) -> World {
    let mut world = World::new(replicas, json!({}));
    world.step();
    for (sandbox, reason) in world.sandboxes.values_mut().zip(reasons) {
        fails(sandbox, reason, "not found");
    }
    world
}

fn condition(world: &World, type_: &str) -> Condition {
    find(&world.plan().status.conditions, type_).unwrap().clone()
}

fn ends_with(message: &str, end: &str) {
    assert!(message.ends_with(end), "{message:?} does not end with {end:?}");
}

#[test]
fn the_commonest_reason_is_in_both_conditions_with_its_count() {
    let world = warming(10, &[CRASH, PULL, PULL, PULL]);
    ends_with(
        &condition(&world, "Available").message,
        "at least 8 are wanted; 3 of 10 warming sandboxes: container main: ImagePullBackOff (not found)",
    );
    ends_with(
        &condition(&world, "Progressing").message,
        "; 3 of 10 warming sandboxes: container main: ImagePullBackOff",
    );
}

#[test]
fn a_pool_that_warms_up_without_trouble_has_no_reason() {
    let world = warming(4, &[]);
    for type_ in ["Available", "Progressing"] {
        let message = condition(&world, type_).message;
        assert!(!message.contains("warming"), "{message}");
    }
}

#[test]
fn a_complete_rollout_says_why_a_refill_does_not_come_up_only_where_availability_is_told() {
    let mut world = World::full(4, json!({}));
    fails_first(&mut world);
    let message = condition(&world, "Progressing").message;
    assert!(message.ends_with(" is complete"), "{message}");
    ends_with(
        &condition(&world, "Available").message,
        "; 1 of 1 warming sandboxes: container main: ImagePullBackOff (no such host)",
    );
}

fn fails_first(world: &mut World) {
    let first = world.sandboxes.values_mut().next().unwrap();
    first.ready_since = None;
    fails(first, PULL, "no such host");
}

#[test]
fn claimed_leaving_and_available_sandboxes_give_no_reason() {
    let mut world = World::full(3, json!({}));
    let names: Vec<_> = world.sandboxes.keys().cloned().collect();
    for name in &names {
        fails(world.sandboxes.get_mut(name).unwrap(), PULL, "");
    }
    world.claim("run", json!({}));
    world.step();
    let going = world.unclaimed().next().unwrap().key.name.clone();
    world.sandboxes.get_mut(&going).unwrap().ready_since = None;
    let mut snapshot = world.snapshot();
    let count = |snapshot: &_| WarmingReasons::of(snapshot).all.first().map(|why| why.count);
    assert_eq!(count(&snapshot), Some(1), "the one that is not Ready");
    let entry = snapshot
        .sandboxes
        .iter_mut()
        .find(|e| e.sandbox.key.name == going);
    entry.unwrap().expected = Some(ExpectedWrite::Delete);
    assert_eq!(count(&snapshot), None);
}

#[test]
fn a_pre_normal_handler_counts_as_missing_once_its_controller_had_time_to_add_it() {
    let hook = json!({"lifecycle": {"preNormal": {"labelsHandler": {"example.com/checked": "yes"}}}});
    let mut world = World::new(2, hook);
    world.step();
    world.pass_second(|_| true);
    let ready = world.now;
    assert!(!condition(&world, "Available").message.contains("warming"));
    world.step();
    assert_eq!(world.plan().next, Some(ready + SignedDuration::from_secs(10)));
    world.now = ready + SignedDuration::from_secs(10);
    ends_with(
        &condition(&world, "Available").message,
        "; 2 of 2 warming sandboxes: the preNormal label example.com/checked=yes is missing",
    );
}

#[test]
fn other_words_for_the_same_reason_are_not_written() {
    let mut world = warming(4, &[PULL, PULL]);
    world.step();
    world.now += SignedDuration::from_secs(60);
    let said = world.written();
    for sandbox in world
        .sandboxes
        .values_mut()
        .filter(|s| s.not_running_reason.is_some())
    {
        fails(sandbox, PULL, "unauthorized");
    }
    let plan = world.plan();
    assert_eq!((plan.write_status, &plan.status), (WriteStatus::No, &said));
    // What has to be written anyhow is written in the newest words.
    let third = world.sandboxes.values_mut().nth(2).unwrap();
    fails(third, PULL, "unauthorized");
    let plan = world.plan();
    assert_ne!(plan.write_status, WriteStatus::No);
    let message = &find(&plan.status.conditions, "Available").unwrap().message;
    ends_with(
        message,
        "3 of 4 warming sandboxes: container main: ImagePullBackOff (unauthorized)",
    );
}

#[test]
fn two_reasons_that_are_about_as_common_do_not_take_turns() {
    let mut world = warming(6, &[PULL, PULL, CRASH]);
    world.step();
    let fourth = world.sandboxes.values_mut().nth(3).unwrap();
    fails(fourth, CRASH, "");
    let fifth = world.sandboxes.values_mut().nth(4).unwrap();
    fails(fifth, CRASH, "");
    let reason = |world: &World| {
        let snapshot = world.snapshot();
        let reasons = WarmingReasons::of(&snapshot);
        let why = reasons.commonest(&snapshot).unwrap();
        (why.count, why.reason.clone())
    };
    assert_eq!(
        reason(&world),
        (2, PULL.to_string()),
        "3 crash, and the status names the pull"
    );
    let first = world.sandboxes.values_mut().next().unwrap();
    fails(first, CRASH, "");
    assert_eq!(
        reason(&world),
        (4, CRASH.to_string()),
        "4 crash, and 1 cannot be pulled"
    );
}

#[test]
fn a_pool_that_begins_to_fail_tells_an_event_and_one_for_another_reason() {
    let mut world = warming(4, &[]);
    world.step();
    let mut notes = Vec::new();
    for (reason, count) in [(PULL, 2), (PULL, 3), (CRASH, 4)] {
        let pool = world.pool();
        for sandbox in world.sandboxes.values_mut().take(count) {
            fails(sandbox, reason, "why");
        }
        let plan = world.step();
        let events = transitions(&pool, &plan.status);
        let told = events.iter().filter(|e| e.reason == "SandboxesNotAvailable");
        notes.extend(told.map(|e| e.note.clone().unwrap()));
    }
    assert_eq!(
        notes,
        [
            "2 of 4 warming sandboxes: container main: ImagePullBackOff (why)",
            "4 of 4 warming sandboxes: container main: CrashLoopBackOff (why)"
        ]
    );
}

/// A waiting claim on a pool whose sandboxes cannot be pulled.
fn waits() -> World {
    let mut world = warming(2, &[PULL]);
    world.claim("run", json!({"onEmpty": "Wait"}));
    world.now += SignedDuration::from_secs(3);
    world
}

fn reason(world: &World) -> WaitReason {
    let waiting = planner::plan(&world.snapshot()).waiting;
    waiting.into_iter().next().unwrap().1
}

/// What the claim's plan writes as the message of `Bound`.
fn written(world: &World) -> Option<Value> {
    let mut snapshot = world.claim_snapshot("run");
    snapshot.wait_reason = Some(reason(world));
    let status = claim::plan(&snapshot).status?;
    Some(json!(status))
}

#[test]
fn a_waiting_claim_says_why_the_sandboxes_do_not_come_and_not_what_a_registry_answers() {
    let world = waits();
    assert_eq!(
        written(&world).unwrap()["conditions"][0]["message"],
        "no sandbox is available yet; 1 of 2 warming sandboxes: container main: ImagePullBackOff; the claim was first in line \
         at 12:00:03Z"
    );
}

#[test]
fn a_claim_that_says_why_is_not_written_again_as_sandboxes_come_and_go_but_for_another_reason() {
    let mut world = waits();
    let status = serde_json::from_value(written(&world).unwrap()).unwrap();
    world.claims.get_mut("run").unwrap().status = status;
    for sandbox in world.sandboxes.values_mut() {
        fails(sandbox, PULL, "");
    }
    assert_eq!(written(&world), None, "both fail");
    for sandbox in world.sandboxes.values_mut() {
        sandbox.not_running_reason = None;
    }
    assert_eq!(written(&world), None, "none fails at the moment");
    for sandbox in world.sandboxes.values_mut() {
        fails(sandbox, CRASH, "");
    }
    assert!(written(&world).is_some(), "another reason");
}

#[test]
fn a_pool_that_has_nothing_is_not_available_whatever_a_rollout_may_take() {
    for (replicas, available, expected) in [(1, 0, "False"), (1, 1, "True"), (4, 0, "False"), (0, 0, "True")]
    {
        let mut world = World::full(replicas, json!({"updateStrategy": {"maxUnavailable": "100%"}}));
        while world.available() > available {
            world.sandboxes.pop_first();
        }
        let condition = condition(&world, "Available");
        assert_eq!(condition.status, expected, "{replicas}: {}", condition.message);
    }
}
