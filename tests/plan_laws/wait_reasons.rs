//! Checks what a waiting claim says: when no sandbox will come, how many claims were ahead, and when that is written.

use crate::world::World;
use jiff::SignedDuration;
use serde_json::{Value, json};
use warmpool::api::labels;
use warmpool::cache::snapshot::{CreationInFlight, ExpectedWrite, PoolSnapshot, WaitReason};
use warmpool::model::queue_position::{QueuePosition, without_position};
use warmpool::planner::{self, claim::plan};

const DRY: &str = "no sandbox is available, and none will come from pool python while its spec.replicas is 0 and onEmpty is Wait: \
                   raise replicas, or set onEmpty to Create";
const YET: &str = "no sandbox is available yet";

fn reason_in(world: &World, snapshot: &PoolSnapshot) -> WaitReason {
    let uid = &world.claims["run"].uid;
    let waiting = planner::plan(snapshot).waiting;
    let (_, why) = waiting.into_iter().find(|(claim, _)| claim.uid == *uid).unwrap();
    why
}

fn reason(world: &World) -> WaitReason {
    reason_in(world, &world.snapshot())
}

/// A pool with these fields, and the claim `run` with `onEmpty: Wait`.
fn waits(replicas: usize, fields: Value) -> World {
    let mut world = World::new(replicas, fields);
    world.claim("run", json!({"onEmpty": "Wait"}));
    world
}

#[test]
fn a_claim_that_only_waits_shows_whether_a_sandbox_may_come() {
    type Row<'a> = (&'a str, World, &'a str);
    let warming = |fields: Value| {
        let mut world = waits(0, fields);
        let revision = world.update();
        world.sandbox("warming", &revision, |s| s.ready_since = None);
        world
    };
    let with_claim = |fields: Value| {
        let mut world = waits(0, json!({}));
        world.claim("other", fields);
        world
    };
    let draining = |replicas| {
        let mut world = waits(
            replicas,
            json!({"lifecycle": {"preDelete": {"labelsHandler": {"keep": "yes"}}}}),
        );
        let revision = world.update();
        world.sandbox("draining", &revision, |s| {
            s.state = labels::DRAINING.into();
            s.labels.insert("keep".into(), "yes".into());
        });
        world
    };
    let mut claimed = World::full(0, json!({"capacity": {"minTotal": 1}}));
    claimed.claim("first", json!({})).converge();
    claimed.claim("run", json!({"onEmpty": "Wait"}));
    assert_eq!((claimed.sandboxes.len(), claimed.unclaimed().count()), (1, 0));
    let rows: [Row; 11] = [
        ("replicas 0", waits(0, json!({})), DRY),
        ("replicas 1", waits(1, json!({})), YET),
        (
            "maxWarm keeps what there is and makes nothing",
            waits(0, json!({"capacity": {"maxWarm": 3}})),
            DRY,
        ),
        (
            "maxWarm keeps a warming sandbox",
            warming(json!({"capacity": {"maxWarm": 3}})),
            YET,
        ),
        ("minTotal is refilled once claims end", claimed, YET),
        (
            "minTotal is made",
            waits(0, json!({"capacity": {"minTotal": 2}})),
            YET,
        ),
        (
            "a sandbox made for another claim may serve it first",
            with_claim(json!({})),
            YET,
        ),
        (
            "another claim that only waits brings nothing",
            with_claim(json!({"onEmpty": "Wait"})),
            DRY,
        ),
        ("a draining sandbox stays draining", draining(0), DRY),
        ("a draining sandbox is restored", draining(1), YET),
        (
            "maxTotal is no reason where none is wanted",
            waits(0, json!({"capacity": {"maxTotal": 0}})),
            DRY,
        ),
    ];
    for (row, world, expected) in rows {
        let why = reason(&world);
        assert_eq!((why.reason, &*why.message), ("NoneAvailable", expected), "{row}");
    }
}

#[test]
fn a_sandbox_in_flight_may_come_to_a_claim_that_only_waits() {
    let world = waits(0, json!({}));
    let mut snapshot = world.snapshot();
    snapshot.creating = vec![CreationInFlight {
        name: "python-1".into(),
        revision: world.update(),
        is_answered: true,
    }];
    assert_eq!(*reason_in(&world, &snapshot).message, *YET);
    let (warm, draining) = (labels::WARM, labels::DRAINING);
    for (state, write, expected) in [
        (warm, ExpectedWrite::Bind, YET),
        (warm, ExpectedWrite::Delete, YET),
        (warm, ExpectedWrite::Conflicted, YET),
        (draining, ExpectedWrite::Restore, YET),
        (warm, ExpectedWrite::Deleted, DRY),
    ] {
        let mut world = waits(0, json!({}));
        let revision = world.update();
        world.sandbox("written", &revision, |s| s.state = state.into());
        let mut snapshot = world.snapshot();
        snapshot.sandboxes[0].expected = Some(write);
        assert_eq!(*reason_in(&world, &snapshot).message, *expected, "{write:?}");
    }
}

#[test]
fn a_claim_on_an_empty_pool_that_makes_a_sandbox_for_it_is_not_told_that_none_will_come() {
    let mut world = World::new(0, json!({}));
    world.claim("run", json!({"onEmpty": "Create"}));
    assert_eq!(*reason(&world).message, *YET);
}

/// What the claim's plan writes as the message of `Bound`, with this reason recorded.
fn written(world: &World, why: &WaitReason) -> Option<String> {
    let mut snapshot = world.claim_snapshot("run");
    snapshot.wait_reason = Some(why.clone());
    let status = plan(&snapshot).status?;
    Some(status.conditions[0].message.clone())
}

/// Records the reason and stores the status that the claim's plan writes.
fn store(world: &mut World, why: &WaitReason) {
    let mut snapshot = world.claim_snapshot("run");
    snapshot.wait_reason = Some(why.clone());
    world.claims.get_mut("run").unwrap().status = *plan(&snapshot).status.unwrap();
}

#[test]
fn a_stored_position_names_its_time_and_is_not_written_again_as_the_queue_moves() {
    let mut world = World::new(1, json!({}));
    world
        .claim("first", json!({"onEmpty": "Wait"}))
        .claim("run", json!({"onEmpty": "Wait"}));
    world.now += SignedDuration::from_secs(3);
    let second = reason(&world);
    let message = format!("{YET}; the claim had 1 claim ahead at 12:00:03Z");
    assert_eq!(written(&world, &second), Some(message));
    store(&mut world, &second);
    world.delete_claim("first");
    world.now += SignedDuration::from_secs(3);
    let first = reason(&world);
    assert_eq!(first.position.unwrap().ahead, 0);
    assert_eq!(written(&world, &first), None);
}

#[test]
fn a_message_that_is_true_no_more_is_written_again_under_the_same_reason() {
    let mut world = waits(0, json!({}));
    world.now += SignedDuration::from_secs(3);
    let dry = reason(&world);
    store(&mut world, &dry);
    assert_eq!(written(&world, &dry), None);
    world.set(json!({"replicas": 1}));
    let message = format!("{YET}; the claim was first in line at 12:00:03Z");
    assert_eq!(written(&world, &reason(&world)), Some(message));
}

#[test]
fn a_rejection_in_other_words_is_not_written_again() {
    let rejected = |message: &str| WaitReason {
        reason: "BindingRefused",
        message: message.into(),
        position: None,
    };
    let mut world = waits(1, json!({}));
    store(&mut world, &rejected("dial tcp 10.0.0.1:40000"));
    assert_eq!(written(&world, &rejected("dial tcp 10.0.0.1:40001")), None);
}

#[test]
fn a_position_reads_as_a_sentence_and_is_taken_off_again() {
    let at = World::new(0, json!({})).now;
    for (ahead, stored, present) in [
        (
            0,
            "why; the claim was first in line at 12:00:00Z",
            "the claim is first in line",
        ),
        (
            1,
            "why; the claim had 1 claim ahead at 12:00:00Z",
            "1 claim is ahead",
        ),
        (
            7,
            "why; the claim had 7 claims ahead at 12:00:00Z",
            "7 claims are ahead",
        ),
    ] {
        let position = QueuePosition { ahead, at };
        assert_eq!(
            (position.append_to("why").as_str(), position.present().as_str()),
            (stored, present)
        );
        assert_eq!(without_position(stored), "why");
    }
    for message in ["why", "why; the claim is odd"] {
        assert_eq!(without_position(message), message);
    }
}
