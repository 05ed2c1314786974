//! Checks which request about the stored revisions of a pool is sent next.

use crate::world::World;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use warmpool::cache::snapshot::{Creation, RevisionProgress};
use warmpool::model::failure::{Class, Failure};
use warmpool::model::request::RevisionStep;
use warmpool::model::retry::Tries;
use warmpool::planner::plan;

/// The request as a short line, with the hash of the update revision as `update`.
fn line(step: &RevisionStep, update: &str) -> String {
    let name = |hash: &str| String::from(if hash == update { "update" } else { hash });
    match step {
        RevisionStep::Create { hash, number, .. } => format!("create {} as {number}", name(hash)),
        RevisionStep::Read { hash } => format!("read {}", name(hash)),
        RevisionStep::Label { hash, uid } => format!("label {} {uid}", name(hash)),
        RevisionStep::Renumber(revision, number) => format!("renumber {} to {number}", name(&revision.hash)),
        RevisionStep::Delete(revision) => format!("delete number {}", revision.number),
    }
}

/// The next request, and when time alone changes that.
fn next(world: &World, progress: &RevisionProgress) -> (Option<String>, Option<Timestamp>) {
    let mut snapshot = world.snapshot();
    snapshot.revision_request = progress.clone();
    let plan = plan(&snapshot);
    let step = plan.revision_step.as_ref();
    (
        step.map(|step| line(step, &plan.revisions.update.hash)),
        plan.next,
    )
}

/// A request about an earlier template failed at `at`; the next is due 0.1 s later.
fn failed(at: Timestamp) -> RevisionProgress {
    failed_step(
        RevisionStep::Read {
            hash: "earlier".into(),
        },
        at,
    )
}

/// The request failed at `at`; the next is due 0.1 s later.
fn failed_step(step: RevisionStep, at: Timestamp) -> RevisionProgress {
    let failure = Failure {
        class: Class::Unknown,
        message: String::new(),
    };
    RevisionProgress::Failed(step, Tries::after(None, failure, at))
}

/// What follows for each state of the last request, in a pool whose plan is `planned`. These states change nothing for it
/// beyond that one request is sent at a time.
fn check_one_at_a_time(world: &World, planned: &str) {
    let soon = world.now + SignedDuration::from_millis(100);
    let ago = world.now - SignedDuration::from_millis(100);
    let planned = Some(planned.to_string());
    let rows = [
        (RevisionProgress::Idle, planned.clone(), None),
        (RevisionProgress::Sent(None), None, None),
        (failed(world.now), None, Some(soon)),
        (failed(ago), planned, None),
    ];
    for (progress, expected, due) in rows {
        let (step, next) = next(world, &progress);
        assert_eq!(step, expected, "{progress:?}");
        if due.is_some() {
            assert_eq!(next, due, "{progress:?}");
        }
    }
}

/// A pool whose update revision is not stored.
fn not_stored() -> World {
    World::new(2, json!({}))
}

/// A pool whose template is written again: it is stored as number 1 of 2.
fn stored_as_old() -> World {
    let mut world = World::full(2, json!({}));
    world.set_image("image:2").converge();
    world.set_image("image:1");
    world
}

/// A pool with stored revisions 1 to 5, of which 1 to 3 are over the history limit.
fn over_the_limit() -> World {
    let mut world = World::full(2, json!({}));
    (2..=5).for_each(|n| {
        world.set_image(&format!("image:{n}")).converge();
    });
    world.set(json!({"revisionHistoryLimit": 1}));
    world
}

#[test]
fn a_pool_sends_one_request_about_its_revisions_at_a_time() {
    check_one_at_a_time(&not_stored(), "create update as 1");
    check_one_at_a_time(&stored_as_old(), "renumber update to 3");
    check_one_at_a_time(&over_the_limit(), "delete number 1");
}

#[test]
fn an_object_that_has_the_name_of_the_update_revision_is_read_and_labeled_again_if_it_is_the_pools() {
    let taken = RevisionProgress::NameTaken;
    let unlabeled = RevisionProgress::Unlabeled("uid".into());
    let rows = [
        (not_stored(), &taken, "read update"),
        (not_stored(), &unlabeled, "label update uid"),
        // The template has changed since.
        (stored_as_old(), &taken, "renumber update to 3"),
        (stored_as_old(), &unlabeled, "renumber update to 3"),
        (over_the_limit(), &taken, "delete number 1"),
        (over_the_limit(), &unlabeled, "delete number 1"),
    ];
    for (world, progress, expected) in rows {
        assert_eq!(
            next(&world, progress).0.as_deref(),
            Some(expected),
            "{progress:?}"
        );
    }
}

#[test]
fn a_request_about_the_update_revision_that_failed_is_repeated_as_it_was() {
    let world = not_stored();
    let hash = plan(&world.snapshot()).revisions.update.hash;
    let uid = "uid".into();
    let rows = [
        (RevisionStep::Read { hash: hash.clone() }, "read update"),
        (RevisionStep::Label { hash, uid }, "label update uid"),
    ];
    let ago = world.now - SignedDuration::from_millis(100);
    for (step, expected) in rows {
        let progress = failed_step(step, ago);
        assert_eq!(next(&world, &progress).0.as_deref(), Some(expected));
    }
}

#[test]
fn old_revisions_are_deleted_one_by_one_the_oldest_first_and_only_once_the_update_revision_is_stored() {
    let mut world = over_the_limit();
    for number in 1..=3 {
        let step = next(&world, &RevisionProgress::Idle).0.unwrap();
        assert_eq!(step, format!("delete number {number}"));
        world.revisions.retain(|revision| revision.number != number);
    }
    assert_eq!(next(&world, &RevisionProgress::Idle).0, None);
    let mut world = over_the_limit();
    world.set_image("image:6");
    let step = next(&world, &RevisionProgress::Idle).0;
    assert_eq!(step.as_deref(), Some("create update as 6"));
}

#[test]
fn a_deletion_that_failed_delays_deletions_and_no_other_request() {
    let now = not_stored().now;
    let later = now + SignedDuration::from_secs(5);
    let rows = [
        (over_the_limit(), later, None, Some(later)),
        (over_the_limit(), now, Some("delete number 1"), None),
        (not_stored(), later, Some("create update as 1"), None),
        (stored_as_old(), later, Some("renumber update to 3"), None),
    ];
    for (mut world, again, expected, due) in rows {
        world.now = now;
        let (step, next) = next(&world, &RevisionProgress::TrimFailed(again));
        assert_eq!(step.as_deref(), expected);
        if due.is_some() {
            assert_eq!(next, due);
        }
    }
}

#[test]
fn no_request_about_revisions_is_sent_while_the_api_server_rejects_what_the_pool_creates() {
    let states = [
        RevisionProgress::Idle,
        RevisionProgress::NameTaken,
        RevisionProgress::Unlabeled("uid".into()),
    ];
    for mut world in [not_stored(), stored_as_old(), over_the_limit()] {
        let until = world.now + SignedDuration::from_secs(60);
        world.creation = Creation::BackOff {
            until,
            message: "exceeded quota".into(),
        };
        for progress in &states {
            assert_eq!(next(&world, progress), (None, Some(until)), "{progress:?}");
        }
        world.now = until;
        for progress in &states {
            assert!(
                next(&world, progress).0.is_some(),
                "{progress:?} after the backoff"
            );
        }
    }
}
