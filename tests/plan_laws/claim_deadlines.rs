//! Checks that a claim has at least the seconds that it was promised, and at most one second more.

use crate::lifetimes::phase;
use crate::world::{World, whole_seconds};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use warmpool::api::claim::Phase;
use warmpool::cache::index::Index;
use warmpool::model::Key;
use warmpool::model::stored::StoredClaim;
use warmpool::planner::claim::plan;

const PROMISED: i64 = 30;
const MILLISECOND: SignedDuration = SignedDuration::from_millis(1);

/// When something happened and when this process saw it, in milliseconds after a stored second, and how many milliseconds after
/// that second a promise of 30 s ends. `None`: this process did not see it, because it was started later.
const ROWS: [(i64, Option<i64>, i64); 8] = [
    (0, Some(0), 31_000),
    (0, Some(20), 31_000),
    (980, Some(980), 31_000),
    (980, Some(1_000), 31_000),
    (980, Some(1_400), 31_400),
    (0, None, 31_000),
    (980, None, 31_000),
    // The clock of the operator is behind the clock of the API server.
    (500, Some(-2_000), 31_000),
];

fn milliseconds(count: i64) -> SignedDuration {
    SignedDuration::from_millis(count)
}

/// Asserts that the promise that began at `happened` ends at `end`: `acts` says whether the operator acts on it at a moment, and
/// `planned` when the operator looks again.
fn ends_at(
    row: usize,
    happened: Timestamp,
    end: Timestamp,
    planned: Option<Timestamp>,
    acts: impl Fn(Timestamp) -> bool,
) {
    let (happened_seen, second) = (ROWS[row].1, SignedDuration::from_secs(1));
    let started = happened_seen.map_or(happened, |seen| {
        happened.max(whole_seconds(happened) + milliseconds(seen))
    });
    let lasted = end.duration_since(started) - SignedDuration::from_secs(PROMISED);
    assert!(!lasted.is_negative() && lasted <= second, "row {row}: {lasted:?}");
    assert_eq!(planned, Some(end), "row {row}");
    assert!(!acts(end - MILLISECOND), "row {row}: too early");
    assert!(acts(end), "row {row}: too late");
}

/// A world whose clock shows `row`'s moment, and the end of a promise that begins then.
fn begin(world: &mut World, row: usize) -> Timestamp {
    let second = whole_seconds(world.now);
    world.now = second + milliseconds(ROWS[row].0);
    second + milliseconds(ROWS[row].2)
}

fn seen(at: Timestamp, row: usize) -> Option<Timestamp> {
    ROWS[row].1.map(|seen| whole_seconds(at) + milliseconds(seen))
}

/// The status that the plan of the claim writes at `now`, as the API stores it.
fn writes(world: &World, now: Timestamp) -> Option<Phase> {
    let mut later = world.clone();
    later.now = now;
    later.step();
    later.reconcile_claim("run");
    later.claims.get("run").map(|_| phase(&later))
}

fn claimed(replicas: usize, fields: Value) -> World {
    let mut world = World::full(replicas, json!({}));
    world.claim("run", fields);
    world
}

#[test]
fn a_claim_waits_for_its_timeout_and_at_most_a_second_more() {
    for row in 0..ROWS.len() {
        let mut world = World::full(0, json!({}));
        let end = begin(&mut world, row);
        let created = world.now;
        world.claim("run", json!({"waitTimeoutSeconds": PROMISED, "onEmpty": "Wait"}));
        let claim = world.claims.get_mut("run").unwrap();
        claim.arrived = seen(created, row).unwrap_or(claim.created);
        let fails = |at| {
            let mut later = world.clone();
            later.now = at;
            later.step();
            later.claims["run"].status.phase == Some(Phase::Failed)
        };
        ends_at(row, created, end, world.plan().next, fails);
    }
}

#[test]
fn a_claim_waits_for_a_replacement_for_its_timeout_and_at_most_a_second_more() {
    for row in 0..ROWS.len() {
        let fields = json!({"waitTimeoutSeconds": PROMISED, "onEmpty": "Wait", "onSandboxLost": "Replace"});
        let mut world = claimed(1, fields);
        world.step();
        world.set(json!({"replicas": 0})).converge();
        let end = begin(&mut world, row);
        let lost = world.now;
        world.sandboxes.clear();
        world.reconcile_claim("run");
        assert_eq!(phase(&world), Phase::Pending);
        world.claims.get_mut("run").unwrap().phase_seen = seen(lost, row);
        let fails = |at| writes(&world, at) == Some(Phase::Failed);
        ends_at(row, lost, end, world.plan().next, fails);
    }
}

#[test]
fn a_claim_lives_for_its_lifetime_and_at_most_a_second_more() {
    for row in 0..ROWS.len() {
        let mut world = World::full(1, json!({}));
        let end = begin(&mut world, row);
        let bound = world.now;
        world.claim("run", json!({"lifetimeSeconds": PROMISED})).step();
        assert_eq!(phase(&world), Phase::Bound);
        let claim = world.claims.get_mut("run").unwrap();
        claim.binding_seen = seen(bound, row);
        let said = claim.status.expiration_time.clone();
        let stored = whole_seconds(bound) + SignedDuration::from_secs(PROMISED + 1);
        assert_eq!(
            said,
            Some(Time(stored)),
            "row {row}: the status depends on stored values alone"
        );
        assert!(
            stored <= end,
            "row {row}: the claim never expires before its expirationTime"
        );
        let planned = plan(&world.claim_snapshot("run"));
        assert_eq!(planned.status, None, "row {row}: nothing is left to write");
        let expires = |at| writes(&world, at) == Some(Phase::Expired);
        ends_at(row, bound, end, planned.next, expires);
    }
}

#[test]
fn a_finished_claim_stays_for_its_time_and_at_most_a_second_more() {
    for row in 0..ROWS.len() {
        let mut world = World::full(0, json!({}));
        let end = begin(&mut world, row);
        let finished = world.now;
        let fails = json!({"onEmpty": "Fail", "ttlSecondsAfterFinished": PROMISED});
        world.claim("run", fails).step();
        assert_eq!(phase(&world), Phase::Failed);
        world.claims.get_mut("run").unwrap().phase_seen = seen(finished, row);
        let planned = plan(&world.claim_snapshot("run")).next;
        ends_at(row, finished, end, planned, |at| writes(&world, at).is_none());
    }
}

#[test]
fn a_finished_claim_with_a_time_of_zero_is_deleted_at_once() {
    let mut world = claimed(0, json!({"onEmpty": "Fail", "ttlSecondsAfterFinished": 0}));
    world.now += milliseconds(345);
    world.step();
    assert_eq!(phase(&world), Phase::Failed);
    assert!(plan(&world.claim_snapshot("run")).delete);
}

#[test]
fn a_claim_expires_at_its_shutdown_time_or_in_the_whole_second_after_it() {
    for (shutdown, end) in [("12:00:20Z", "12:00:20Z"), ("12:00:20.345Z", "12:00:21Z")] {
        let at = |time: &str| format!("2026-01-31T{time}").parse::<Timestamp>().unwrap();
        let shutdown = at(shutdown).to_string();
        let mut world = claimed(1, json!({"shutdownTime": shutdown}));
        world.step();
        assert_eq!(phase(&world), Phase::Bound);
        let status = world.claims["run"].status.clone();
        assert_eq!(status.expiration_time, Some(Time(at(end))), "{shutdown}");
        assert_eq!(writes(&world, at(end) - MILLISECOND), Some(Phase::Bound));
        assert_eq!(writes(&world, at(end)), Some(Phase::Expired));
    }
}

#[test]
fn a_replaced_sandbox_does_not_lengthen_the_lifetime() {
    let mut world = claimed(
        2,
        json!({"lifetimeSeconds": PROMISED, "onSandboxLost": "Replace"}),
    );
    world.step();
    world.reconcile_claim("run");
    let first = world.claims["run"].clone();
    assert_eq!(phase(&world), Phase::Bound);
    let lost = world.bound_to("run").unwrap().key.name.clone();
    world.now += SignedDuration::from_secs(10);
    world.sandboxes.remove(&lost);
    world.reconcile_claim("run");
    world.step();
    assert_eq!(phase(&world), Phase::Bound);
    let again = world.claims["run"].clone().seen_after(&first, Some(world.now));
    assert_eq!(again.expires_at(), first.expires_at());
}

/// Shows the index a claim in `phase`, bound and ended in the second 100; by a list unless `live`. Returns when the index now says
/// that the claim's wait of 10 s, its life of 20 s and its time of 30 s after its end are over, in milliseconds.
fn shown(index: &mut Index, phase: &str, live: bool, at: i64) -> [Option<i64>; 3] {
    let second = Timestamp::from_second(100).unwrap().to_string();
    let bound = json!({"type": "Bound", "status": "False", "lastTransitionTime": second});
    let status = match phase {
        "" => json!({}),
        "Pending" => json!({"phase": phase, "boundTime": second, "waitSeconds": 0.1, "conditions": [bound]}),
        "Bound" => json!({"phase": phase, "boundTime": second, "waitSeconds": 0.1}),
        _ => json!({"phase": phase, "boundTime": second, "finishTime": second}),
    };
    let stored: StoredClaim = serde_json::from_value(json!({
        "metadata": {"namespace": "default", "name": "run", "uid": "claim", "creationTimestamp": second},
        "spec": {
            "poolRef": {"name": "python"},
            "waitTimeoutSeconds": 10, "lifetimeSeconds": 20, "ttlSecondsAfterFinished": 30,
        },
        "status": status,
    }))
    .unwrap();
    index.apply_claim(&stored, live, Timestamp::from_millisecond(at).unwrap());
    ends(index)
}

fn ends(index: &Index) -> [Option<i64>; 3] {
    let claim = index.claim(&Key::new("default", "run")).unwrap();
    let spec = claim.resolved_spec(None);
    let ends = [claim.deadline(&spec), claim.expires_at(), claim.deletion(&spec)];
    ends.map(|end| end.map(Timestamp::as_millisecond))
}

#[test]
fn a_time_counts_from_when_a_watch_showed_its_beginning_and_a_restart_rounds_up() {
    let (live, listed) = (true, false);
    let mut index = Index::default();
    assert_eq!(shown(&mut index, "", live, 101_700)[0], Some(111_700));
    assert_eq!(
        shown(&mut index, "", live, 105_000)[0],
        Some(111_700),
        "an update is no arrival"
    );
    assert_eq!(shown(&mut index, "Bound", live, 102_300)[1], Some(122_300));
    assert_eq!(
        shown(&mut index, "Bound", live, 109_000)[1],
        Some(122_300),
        "an update is no binding"
    );
    assert_eq!(
        shown(&mut index, "Pending", live, 103_600)[..2],
        [Some(113_600), Some(122_300)]
    );
    assert_eq!(
        shown(&mut index, "Bound", live, 104_000)[1],
        Some(122_300),
        "it was bound before"
    );
    assert_eq!(shown(&mut index, "Expired", live, 102_900)[2], Some(132_900));
    for (phase, row) in [("", 0), ("Bound", 1), ("Pending", 0), ("Expired", 2)] {
        let rounded = Some([111_000, 121_000, 131_000][row]);
        let mut restarted = Index::default();
        assert_eq!(
            shown(&mut restarted, phase, listed, 109_000)[row],
            rounded,
            "{phase}"
        );
        assert_eq!(
            shown(&mut restarted, phase, live, 109_500)[row],
            rounded,
            "{phase}"
        );
        let mut relisted = Index::default();
        shown(&mut relisted, "", live, 100_200);
        assert_eq!(
            shown(&mut relisted, phase, listed, 109_000)[row],
            rounded,
            "{phase}"
        );
    }
}

#[test]
fn a_clock_that_is_set_back_lengthens_no_time() {
    for (phase, row, rounded) in [("", 0, 111_000), ("Bound", 1, 121_000), ("Expired", 2, 131_000)] {
        let mut index = Index::default();
        shown(&mut index, "", true, 3_600_000);
        assert!(
            shown(&mut index, phase, true, 3_600_000)[row] > Some(3_600_000),
            "{phase}"
        );
        index.forget_moments();
        assert_eq!(ends(&index)[row], Some(rounded), "{phase}");
    }
}

#[test]
fn the_waiting_time_of_a_bound_claim_is_one_number() {
    for (microseconds, seconds, short) in [
        (400, 0.0, "0ms"),
        (600, 0.001, "1ms"),
        (12_499, 0.012, "12ms"),
        (12_500, 0.013, "13ms"),
        (999_600, 1.0, "1.0s"),
        (3_456_000, 3.456, "3.4s"),
    ] {
        let mut world = claimed(1, json!({}));
        world.now += SignedDuration::from_micros(microseconds);
        world.step();
        let status = &world.claims["run"].status;
        assert_eq!(
            (status.wait_seconds, status.wait.as_str()),
            (Some(seconds), short)
        );
    }
}
