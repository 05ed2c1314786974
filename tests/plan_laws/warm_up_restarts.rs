//! Checks what a restarted operator knows of sandboxes that failed to come up.

use crate::deadlines::pass_with_broken;
use crate::world::{World, lines};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use std::collections::BTreeMap;
use warmpool::cache::snapshot::WarmUpFailures;
use warmpool::planner::PlanPhase;
use warmpool::planner::warm_up_backoff::resumes_at;

/// A pool of one sandbox, missing because it failed this many times in a row, the last time at `last`. The status says so.
fn failing(count: u32, last: Timestamp, reason: Option<&str>) -> World {
    let mut world = World::new(1, json!({}));
    let failures = WarmUpFailures {
        count,
        last,
        not_running_reason: reason.map(str::to_string),
    };
    world.now = last;
    world.failures = BTreeMap::from([(world.update(), failures)]);
    world.step();
    world
}

fn created(world: &World) -> usize {
    lines(&world.plan(), PlanPhase::Scale).len()
}

#[test]
fn a_restarted_operator_pauses_exactly_as_long_as_the_one_before() {
    let begin = World::new(0, json!({})).now;
    for count in [1, 2, 3, 9, 10, 1000, u32::MAX] {
        for milliseconds in [0, 1, 300, 999] {
            for reason in [
                None,
                Some("container main: ImagePullBackOff"),
                Some("odd (a; b), or c"),
            ] {
                let last = begin + SignedDuration::from_millis(milliseconds);
                let mut world = failing(count, last, reason);
                let case = format!("{count} failures, {milliseconds} ms, {reason:?}");
                let (revision, before) = world.failures.first_key_value().unwrap();
                let (revision, before) = (revision.clone(), before.clone());
                world.restart();
                let after = world.plan().failures.remove(&revision).expect(&case);
                assert_eq!(resumes_at(&after), resumes_at(&before), "{case}");
                assert_eq!(after.count, before.count, "{case}");
                assert_eq!(after.not_running_reason, before.not_running_reason, "{case}");
                assert_eq!(
                    world.plan().status,
                    world.written(),
                    "{case}: nothing is to be written"
                );
                let said = world.progressing().1;
                let in_seconds = Timestamp::from_second(resumes_at(&before).as_second()).unwrap();
                assert!(said.ends_with(&format!("from {in_seconds} on")), "{case}: {said}");
                world.now = resumes_at(&before) - SignedDuration::from_millis(1);
                assert_eq!(created(&world), 0, "{case}");
                world.now = resumes_at(&before);
                assert_eq!(created(&world), 1, "{case}");
            }
        }
    }
}

/// As long as it takes until the pauses are five minutes.
const SECONDS: usize = 700;

#[test]
fn restarts_do_not_change_when_a_broken_template_is_tried() {
    for dies in [false, true] {
        let creations = |every: usize| {
            let fields =
                json!({"warmUpDeadlineSeconds": 10, "updateStrategy": {"maxUnavailable": 3, "maxSurge": 1}});
            let mut world = World::new(6, fields);
            let broken = world.update();
            let mut creations = Vec::new();
            for begin in (0..SECONDS).step_by(every) {
                let made = pass_with_broken(&mut world, every, &broken, dies);
                creations.extend(made.into_iter().map(|second| begin + second));
                world.restart();
            }
            creations
        };
        let undisturbed = creations(SECONDS);
        for every in [1, 7, 70] {
            assert_eq!(creations(every), undisturbed, "a restart every {every} s, {dies}");
        }
    }
}

/// A crash between a failure and the status that shows it: see docs/guarantees.md.
#[test]
fn a_failure_that_the_status_does_not_show_yet_halves_the_pauses_after_it() {
    let begin = World::new(0, json!({})).now;
    let pause = |shown: u32| {
        let mut world = failing(shown, begin, None);
        let revision = world.update();
        world.restart();
        world.now += SignedDuration::from_secs(3600);
        let name = "next";
        let mut sandbox = world.warming(name, &revision);
        sandbox.phase = warmpool::model::sandbox::PodPhase::Failed;
        world.sandboxes.insert(name.into(), sandbox);
        let failures = world.plan().failures.remove(&revision).unwrap();
        resumes_at(&failures).duration_since(world.now)
    };
    for shown in 1..=6 {
        assert_eq!(pause(shown + 1), pause(shown) * 2, "{shown}");
    }
}

#[test]
fn a_process_that_has_written_the_status_goes_by_its_memory() {
    let mut world = failing(5, World::new(0, json!({})).now, None);
    assert!(world.status_written_at.is_some());
    world.failures.clear();
    assert!(world.plan().failures.is_empty());
    assert_eq!(created(&world), 1);
}

#[test]
fn failures_of_before_a_restart_end_once_a_sandbox_stays_available() {
    // The sandbox comes up within the second in which the other one failed.
    let mut world = failing(
        3,
        World::new(0, json!({})).now + SignedDuration::from_millis(300),
        None,
    );
    let revision = world.update();
    world.sandbox("up", &revision, |_| {});
    world.restart();
    world.now += SignedDuration::from_secs(4);
    assert_eq!(world.plan().failures.len(), 1);
    world.now += SignedDuration::from_secs(2);
    assert!(world.plan().failures.is_empty());
}

#[test]
fn a_status_that_is_not_understood_delays_nothing() {
    let world = failing(5, World::new(0, json!({})).now, Some("container main: Error"));
    let (revision, (_, message)) = (world.update(), world.progressing());
    let sentence = format!("sandboxes of revision {revision} failed to become available");
    assert!(message.contains(&sentence), "{message}");
    for (words, instead) in [
        (sentence.as_str(), "sandboxes are late"),
        (revision.as_str(), "another"),
        ("5 times in a row", "often"),
        ("5 times in a row", "-5 times in a row"),
        ("5 times in a row", "4294967296 times in a row"),
        ("Error)", "Error"),
        ("they are tried again from", "they are not tried again from"),
        // Later than the operator ever says: the clock was set back by a day.
        ("from 2026-01-31", "from 2026-02-01"),
        ("from 2026-01-31", "from 9999-99-99"),
        ("from 2026-01-31", "from "),
    ] {
        let mut world = world.clone();
        world.restart();
        assert_eq!(created(&world), 0, "the sentence is understood as it is");
        assert!(message.contains(words), "{message}");
        let condition = world.status["conditions"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .find(|c| c["type"] == "Progressing")
            .unwrap();
        // The number of sandboxes, before the sentence, names the revision, too.
        let (counts, failures) = message.split_once("; ").unwrap();
        condition["message"] = json!(format!("{counts}; {}", failures.replace(words, instead)));
        assert_eq!(created(&world), 1, "{words} became {instead:?}");
    }
}
