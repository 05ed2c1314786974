//! Checks which changes of a pool's status emit events.

use crate::world::World;
use serde_json::{Value, json};
use warmpool::api::PoolStatus;
use warmpool::api::conditions::find;
use warmpool::model::Key;
use warmpool::model::pool::Pool;
use warmpool::model::pool_error::PoolError;
use warmpool::planner::{Step, plan};
use warmpool::telemetry::events::pools::transitions;

/// A status with these revisions and conditions, each as `Type Status Reason Message`.
fn status(current: &str, update: &str, conditions: &[&str]) -> PoolStatus {
    let condition = |line: &&str| {
        let mut part = line.splitn(4, ' ');
        let mut next = || part.next().unwrap_or_default();
        json!({
            "type": next(), "status": next(), "reason": next(), "message": next(),
            "lastTransitionTime": "2026-01-31T12:00:00Z",
        })
    };
    let conditions: Vec<Value> = conditions.iter().map(condition).collect();
    let status = json!({"currentRevision": current, "updateRevision": update, "conditions": conditions});
    serde_json::from_value(status).unwrap()
}

fn pool(before: PoolStatus) -> Pool {
    Pool {
        key: Key::new("default", "python"),
        template_ref: Some(Key::new("default", "shared")),
        status: before,
        ..Default::default()
    }
}

/// Events as short lines: `Normal NewRevision RollOut ControllerRevision/python-b: rolling out revision b`.
fn lines(pool: &Pool, after: &PoolStatus) -> Vec<String> {
    let events = transitions(pool, after);
    events
        .iter()
        .map(|e| {
            let about = e.secondary.as_ref().map_or("-".to_string(), |s| {
                format!("{}/{}", s.kind.as_deref().unwrap(), s.name.as_deref().unwrap())
            });
            let note = e.note.as_deref().unwrap_or_default();
            format!("{:?} {} {} {about}: {note}", e.type_, e.reason, e.action)
        })
        .collect()
}

const COMPLETE: &str = "Progressing True RolloutComplete revision is complete";
const ROLLING: &str = "Progressing True Progressing 1 of 4";
const PAUSED: &str = "Progressing Unknown Paused paused; 1 of 4";
const PARTITION: &str = "Progressing True PartitionComplete 3 of 4";
const MISSING: &str = "Progressing False TemplateNotFound create it";
const UNUSABLE: &str = "Progressing False TemplateInvalid mend it";
const INVALID: &str = "Progressing False InvalidSpec spec.replicas: bad";
const LATE: &str = "Progressing False ProgressDeadlineExceeded 1 of 4 after 600 s";
const REJECTED: &str = "ReplicaFailure True FailedCreate exceeded quota";
const FULL: &str = "Exhausted True MaxTotalReached claims wait";

#[test]
fn each_transition_emits_its_own_event() {
    let of = |name: &str| format!("RollOut ControllerRevision/python-{name}");
    let rolling_out = |name: &str| format!("Normal NewRevision {}: rolling out revision {name}", of(name));
    let complete = format!("Normal RolloutComplete {}: revision is complete", of("b"));
    let rolling = || status("a", "b", &[ROLLING]);
    let full = || status("a", "a", &[COMPLETE]);
    let template = "RollOut PodTemplate/shared";
    for (before, after, expected) in [
        (
            PoolStatus::default(),
            status("", "b", &["Progressing True NewRevision 0 of 4"]),
            vec![rolling_out("b")],
        ),
        (
            PoolStatus::default(),
            status("b", "b", &[COMPLETE]),
            vec![rolling_out("b"), complete.clone()],
        ),
        (full(), rolling(), vec![rolling_out("b")]),
        (rolling(), status("b", "b", &[COMPLETE]), vec![complete.clone()]),
        (rolling(), status("a", "c", &[ROLLING]), vec![rolling_out("c")]),
        // A rollout may complete in one step.
        (
            full(),
            status("b", "b", &[COMPLETE]),
            vec![rolling_out("b"), complete.clone()],
        ),
        // The rollout is undone, and every sandbox runs the old revision.
        (
            rolling(),
            status("a", "a", &[COMPLETE]),
            vec![
                rolling_out("a"),
                format!("Normal RolloutComplete {}: revision is complete", of("a")),
            ],
        ),
        // The rollout is undone while sandboxes of revision b remain.
        (rolling(), status("a", "a", &[ROLLING]), vec![rolling_out("a")]),
        (
            status("a", "a", &[ROLLING]),
            status("a", "a", &[COMPLETE]),
            vec![format!(
                "Normal RolloutComplete {}: revision is complete",
                of("a")
            )],
        ),
        (
            rolling(),
            status("a", "b", &[PARTITION]),
            vec![format!("Normal PartitionComplete {}: 3 of 4", of("b"))],
        ),
        (
            rolling(),
            status("a", "b", &[PAUSED]),
            vec![format!("Normal Paused {}: paused; 1 of 4", of("b"))],
        ),
        (
            full(),
            status("a", "b", &[PAUSED]),
            vec![
                format!(
                    "Normal NewRevision {}: the rollout of revision b is paused until spec.updateStrategy.paused is false",
                    of("b")
                ),
                format!("Normal Paused {}: paused; 1 of 4", of("b")),
            ],
        ),
        (
            status("a", "b", &[PAUSED]),
            rolling(),
            vec![format!(
                "Normal Resumed {}: the rollout of revision b resumes",
                of("b")
            )],
        ),
        (
            status("a", "b", &[PAUSED]),
            status("b", "b", &[COMPLETE]),
            vec![
                format!("Normal Resumed {}: the rollout of revision b resumes", of("b")),
                complete.clone(),
            ],
        ),
        (
            status("a", "b", &[PAUSED]),
            status("a", "b", &[MISSING]),
            vec![format!("Warning TemplateNotFound {template}: create it")],
        ),
        (
            rolling(),
            status("a", "b", &[LATE]),
            vec![format!(
                "Warning ProgressDeadlineExceeded {}: 1 of 4 after 600 s",
                of("b")
            )],
        ),
        (
            full(),
            status("a", "a", &[MISSING]),
            vec![format!("Warning TemplateNotFound {template}: create it")],
        ),
        (
            status("a", "a", &[MISSING]),
            status("a", "a", &[UNUSABLE]),
            vec![format!("Warning TemplateInvalid {template}: mend it")],
        ),
        (
            full(),
            status("a", "a", &[INVALID]),
            vec!["Warning InvalidSpec RollOut -: spec.replicas: bad".to_string()],
        ),
        (
            full(),
            status("a", "a", &[COMPLETE, REJECTED]),
            vec!["Warning FailedCreate CreateSandboxes -: exceeded quota".to_string()],
        ),
        (
            full(),
            status("a", "a", &[COMPLETE, FULL]),
            vec!["Warning Exhausted CreateSandboxes -: claims wait".to_string()],
        ),
    ] {
        assert_eq!(
            lines(&pool(before.clone()), &after),
            expected,
            "{before:?}\n{after:?}"
        );
    }
}

#[test]
fn a_rollout_that_claims_end_while_it_is_paused_is_not_resumed() {
    let mut paused = pool(status("a", "b", &[PAUSED]));
    paused.spec.paused = true;
    let events = lines(&paused, &status("b", "b", &[COMPLETE]));
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].starts_with("Normal RolloutComplete"), "{events:?}");
}

#[test]
fn a_condition_that_keeps_its_reason_emits_no_event() {
    let more = |line: &str| format!("{line} and more");
    for line in [
        COMPLETE, ROLLING, PAUSED, PARTITION, MISSING, UNUSABLE, INVALID, LATE,
    ] {
        let before = status("a", "a", &[line, REJECTED, FULL]);
        let after = status("a", "a", &[&more(line), &more(REJECTED), &more(FULL)]);
        assert_eq!(lines(&pool(before), &after), [""; 0], "{line}");
    }
}

#[test]
fn a_condition_that_ends_emits_no_event() {
    for (before, after) in [
        (status("a", "a", &[MISSING]), status("a", "a", &[COMPLETE])),
        (status("a", "b", &[LATE]), status("a", "b", &[ROLLING])),
        (status("a", "b", &[PARTITION]), status("a", "b", &[ROLLING])),
        (
            status("a", "a", &[COMPLETE, REJECTED, FULL]),
            status("a", "a", &[COMPLETE]),
        ),
    ] {
        assert_eq!(lines(&pool(before.clone()), &after), [""; 0], "{before:?}");
    }
}

#[test]
fn a_note_is_cut_to_the_limit_of_the_api_server() {
    let long = format!("Progressing False InvalidSpec {}", "ü".repeat(2_000));
    let events = transitions(&pool(PoolStatus::default()), &status("", "", &[&long]));
    let note = events[0].note.as_deref().unwrap();
    assert!(
        note.len() < 1_024 && note.len() > 900 && note.ends_with("ü..."),
        "{note}"
    );
}

/// Reasons of the events that 40 steps emit.
fn emitted(world: &mut World) -> Vec<String> {
    let mut reasons = Vec::new();
    for _ in 0..40 {
        let snapshot = world.snapshot();
        let plan = plan(&snapshot);
        reasons.extend(
            transitions(&snapshot.pool, &plan.status)
                .into_iter()
                .map(|e| e.reason),
        );
        world.step();
        world.pass_second(|_| true);
    }
    reasons
}

#[test]
fn a_rollout_emits_events_for_its_start_and_end_and_a_converged_pool_emits_none() {
    let mut world = World::new(6, json!({"updateStrategy": {"maxUnavailable": 1}}));
    assert_eq!(emitted(&mut world), ["NewRevision", "RolloutComplete"]);
    assert_eq!(emitted(&mut world), [""; 0]);
    world.set_image("image:2");
    assert_eq!(emitted(&mut world), ["NewRevision", "RolloutComplete"]);
    world
        .set(json!({"updateStrategy": {"paused": true}}))
        .set_image("image:3");
    assert_eq!(emitted(&mut world), ["NewRevision", "Paused"]);
    world.set(json!({"updateStrategy": {"paused": false, "partition": 2}}));
    assert_eq!(emitted(&mut world), ["Resumed", "PartitionComplete"]);
    world.set(json!({"updateStrategy": {"partition": 0}}));
    assert_eq!(emitted(&mut world), ["RolloutComplete"]);
    world.pod_template = Some(Err(PoolError::not_found(&Key::new("default", "shared"))));
    assert_eq!(emitted(&mut world), ["TemplateNotFound"]);
    world.pod_template = None;
    assert_eq!(emitted(&mut world), [""; 0]);
}

#[test]
fn claims_that_come_and_go_emit_no_event_of_the_pool() {
    for fields in [json!({}), json!({"updateStrategy": {"partition": 3}})] {
        let mut world = World::full(6, fields);
        world.set_image("image:2");
        emitted(&mut world);
        for round in 0..4 {
            for n in 0..3 {
                world.claim(&format!("c-{round}-{n}"), json!({}));
            }
            let plan = plan(&world.snapshot());
            assert!(
                plan.actions
                    .iter()
                    .any(|a| matches!(a.step, Step::BindClaim { .. }))
            );
            assert_eq!(emitted(&mut world), [""; 0]);
        }
    }
}

#[test]
fn a_partition_that_moves_is_reached_again() {
    let mut world = World::full(6, json!({"updateStrategy": {"partition": 3}}));
    world.set_image("image:2");
    assert_eq!(emitted(&mut world), ["NewRevision", "PartitionComplete"]);
    world.set(json!({"updateStrategy": {"partition": 1}}));
    assert_eq!(emitted(&mut world), ["PartitionComplete"]);
    // The next revision has not reached the partition yet.
    world.set_image("image:3");
    for _ in 0..3 {
        let conditions = world.step().status.conditions;
        let progressing = find(&conditions, "Progressing").unwrap();
        assert_ne!(progressing.reason, "PartitionComplete", "{}", progressing.message);
        world.pass_second(|_| true);
    }
    assert_eq!(emitted(&mut world), ["PartitionComplete"]);
}
