//! Checks what follows when a request has failed: a table of rows for each kind of write.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used)]

use http_body_util::{BodyExt, Full};
use jiff::{SignedDuration, Timestamp};
use kube::core::Status;
use std::time::Duration;
use warmpool::client::request_errors::CallError;
use warmpool::client::retry_after::with_status;
use warmpool::model::failure::Class::{
    self, Conflict, Denied, Gone, Invalid, NotAdmitted, Rejected, Throttled, Unknown,
};
use warmpool::model::failure::Failure;
use warmpool::model::retry::{
    FailedWrite, Next, NextWrite, ObjectWrite, Purpose, RETRY_DELAY, Stage, Tries, next,
};

/// A moment, in milliseconds since the first request was decided.
fn ms(moment: i64) -> Timestamp {
    let start: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
    start + SignedDuration::from_millis(moment)
}

fn failure(class: Class) -> Failure {
    let message = format!("{class:?}");
    Failure { class, message }
}

/// The API server asks for a delay of so many milliseconds.
fn throttled(delay: u64) -> Class {
    Throttled(Duration::from_millis(delay))
}

/// Tries that failed at these moments in these ways.
fn tries(failures: &[(i64, Class)]) -> Tries {
    let mut tries = None;
    for (moment, class) in failures {
        tries = Some(Tries::after(tries.as_ref(), failure(*class), ms(*moment)));
    }
    tries.unwrap()
}

/// No live read says whether the write happened.
const UNREAD: bool = false;
/// A live read shows that the write did not happen.
const MISSED: bool = true;

/// A binding of a claim without a deadline.
const BIND: FailedWrite = FailedWrite::Bind(Timestamp::MAX);

/// A creation, decided at the start.
fn create() -> FailedWrite {
    FailedWrite::Create(ms(0))
}

/// The failed tries, what a live read says, the moment, and what follows.
type Row<'a> = (&'a [(i64, Class)], bool, i64, Next);

fn check(write: FailedWrite, rows: &[Row]) {
    for (failures, missed, now, expected) in rows {
        let followed = next(write, &tries(failures), *missed, ms(*now));
        assert_eq!(followed, *expected, "{write:?} {failures:?} {missed} at {now} ms");
    }
}

fn wait(until: i64) -> Next {
    Next::Wait(ms(until))
}

#[test]
fn a_request_is_due_a_tenth_of_a_second_after_its_failure_and_the_pause_doubles_up_to_five_seconds() {
    let pauses = [100, 200, 400, 800, 1600, 3200, 5000, 5000];
    for class in [Unknown, NotAdmitted] {
        let mut failures = Vec::new();
        for pause in pauses {
            failures.push((1000, class));
            assert_eq!(tries(&failures).next_at(), ms(1000 + pause), "{failures:?}");
        }
    }
    let many = vec![(1000, Unknown); 100];
    assert_eq!(tries(&many).next_at(), ms(6000));
}

#[test]
fn a_throttled_request_is_due_when_the_api_server_asks_however_often_it_failed() {
    let rows: [(&[(i64, Class)], i64); 4] = [
        (&[(0, throttled(0))], 0),
        (&[(0, throttled(30_000))], 30_000),
        (&[(0, Unknown), (100, Unknown), (300, throttled(50))], 350),
        (&[(0, throttled(30_000)), (30_000, Unknown)], 30_200),
    ];
    for (failures, due) in rows {
        assert_eq!(tries(failures).next_at(), ms(due), "{failures:?}");
    }
    let endless = tries(&[(0, Throttled(Duration::MAX))]);
    assert_eq!(endless.next_at(), Timestamp::MAX);
}

#[test]
fn a_lost_answer_is_remembered_whatever_a_later_try_is_answered() {
    let rows: [(&[(i64, Class)], bool); 5] = [
        (&[(0, Unknown)], true),
        (&[(0, Unknown), (100, throttled(1)), (101, Rejected)], true),
        (&[(0, NotAdmitted), (100, Unknown)], true),
        (&[(0, NotAdmitted)], false),
        (&[(0, throttled(1)), (1, Conflict), (2, Rejected)], false),
    ];
    for (failures, lost) in rows {
        let tries = tries(failures);
        assert_eq!(
            (tries.lost, tries.since, tries.count as usize),
            (lost, ms(0), failures.len())
        );
    }
}

#[test]
fn a_binding_that_may_have_been_made_or_may_yet_be_is_repeated_for_the_same_pod() {
    check(
        BIND,
        &[
            (&[(0, Unknown)], UNREAD, 99, wait(100)),
            (&[(0, Unknown)], UNREAD, 100, Next::Send),
            (&[(0, Unknown), (100, Unknown)], UNREAD, 299, wait(300)),
            (&[(0, Unknown), (100, Unknown)], UNREAD, 300, Next::Send),
            (&[(0, Unknown), (60_000, Unknown)], UNREAD, 60_200, Next::Send),
            (&[(0, NotAdmitted)], UNREAD, 99, wait(100)),
            (&[(0, NotAdmitted)], UNREAD, 100, Next::Send),
            (&[(0, throttled(7000))], UNREAD, 6999, wait(7000)),
            (&[(0, throttled(7000))], UNREAD, 7000, Next::Send),
        ],
    );
}

#[test]
fn a_binding_that_a_live_read_shows_not_made_leaves_the_choice_to_the_next_plan() {
    check(
        BIND,
        &[
            (&[(0, Unknown)], MISSED, 0, Next::Forget),
            (&[(0, Unknown), (100, NotAdmitted)], MISSED, 100, Next::Forget),
            (&[(0, Unknown), (100, throttled(7000))], MISSED, 100, Next::Forget),
        ],
    );
}

#[test]
fn a_binding_that_no_webhook_admits_is_rejected_when_its_next_try_is_due_after_three_seconds() {
    let four = [0, 100, 300, 700].map(|at| (at, NotAdmitted));
    let five = [0, 100, 300, 700, 1500].map(|at| (at, NotAdmitted));
    check(
        BIND,
        &[
            (&four, UNREAD, 1500, Next::Send),
            (&five, UNREAD, 1500, Next::Reject),
            (&[(0, Unknown), (2999, NotAdmitted)], UNREAD, 2999, Next::Read),
            (&[(0, Unknown), (2999, NotAdmitted)], MISSED, 2999, Next::Forget),
        ],
    );
}

#[test]
fn a_binding_that_met_a_conflict_is_read_and_then_held_until_the_pod_changes() {
    check(
        BIND,
        &[
            (&[(0, Conflict)], UNREAD, 0, Next::Read),
            (&[(0, Unknown), (100, Conflict)], UNREAD, 100, Next::Read),
            (&[(0, Conflict)], MISSED, 0, Next::Hold),
            (&[(0, Unknown), (100, Conflict)], MISSED, 100, Next::Hold),
        ],
    );
}

#[test]
fn a_rejected_binding_is_given_up_once_no_earlier_try_may_have_made_it() {
    for class in [Rejected, Denied, Invalid, Gone] {
        check(
            BIND,
            &[
                (&[(0, class)], UNREAD, 0, Next::Reject),
                (&[(0, NotAdmitted), (100, class)], UNREAD, 100, Next::Reject),
                (&[(0, Unknown), (100, class)], UNREAD, 100, Next::Read),
                (&[(0, Unknown), (100, class)], MISSED, 100, Next::Reject),
            ],
        );
    }
}

#[test]
fn no_binding_is_sent_after_the_claim_has_stopped_waiting() {
    let until = FailedWrite::Bind(ms(150));
    check(
        until,
        &[
            // The retry is due before the deadline or at it.
            (&[(0, Unknown)], UNREAD, 100, Next::Send),
            (&[(0, Unknown), (100, Unknown)], UNREAD, 149, wait(150)),
            (&[(0, throttled(7000))], UNREAD, 149, wait(150)),
            // The write did not happen.
            (&[(0, NotAdmitted)], UNREAD, 150, Next::Forget),
            (&[(0, throttled(7000))], UNREAD, 150, Next::Forget),
            (&[(0, Rejected)], UNREAD, 150, Next::Forget),
            (&[(0, Denied)], UNREAD, 150, Next::Forget),
            (&[(0, Invalid)], UNREAD, 150, Next::Forget),
            // The claim may hold the pod.
            (&[(0, Unknown)], UNREAD, 150, Next::Read),
            (&[(0, Conflict)], UNREAD, 150, Next::Read),
            (&[(0, Unknown), (100, Rejected)], UNREAD, 150, Next::Read),
            // The live read says that it does not.
            (&[(0, Unknown)], MISSED, 150, Next::Forget),
            (&[(0, Conflict)], MISSED, 150, Next::Hold),
        ],
    );
}

#[test]
fn a_failed_live_read_is_repeated_after_a_growing_pause() {
    let mut tries = tries(&[(0, Conflict)]);
    for write in [BIND, FailedWrite::Change, create()] {
        assert_eq!(next(write, &tries, UNREAD, ms(0)), Next::Read, "at first at once");
    }
    for (failed, due) in [(0, 200), (200, 600), (600, 1400)] {
        tries.read_failed(ms(failed));
        for write in [BIND, FailedWrite::Change, create()] {
            assert_eq!(next(write, &tries, UNREAD, ms(due - 1)), wait(due), "{write:?}");
            assert_eq!(next(write, &tries, UNREAD, ms(due)), Next::Read, "{write:?}");
        }
    }
    let over = FailedWrite::Bind(ms(100));
    assert_eq!(
        next(over, &tries, UNREAD, ms(600)),
        Next::Await,
        "nobody waits for the answer any more"
    );
}

#[test]
fn a_change_is_repeated_while_it_may_have_been_made_or_may_yet_be() {
    check(
        FailedWrite::Change,
        &[
            (&[(0, Unknown)], UNREAD, 99, wait(100)),
            (&[(0, Unknown)], UNREAD, 100, Next::Send),
            (&[(0, Unknown), (60_000, Unknown)], UNREAD, 60_200, Next::Send),
            (&[(0, NotAdmitted)], UNREAD, 99, wait(100)),
            (&[(0, NotAdmitted)], UNREAD, 100, Next::Send),
            (
                &[(0, NotAdmitted), (60_000, NotAdmitted)],
                UNREAD,
                60_200,
                Next::Send,
            ),
            (&[(0, throttled(7000))], UNREAD, 6999, wait(7000)),
            (&[(0, throttled(7000))], UNREAD, 7000, Next::Send),
            (&[(0, Conflict)], UNREAD, 0, Next::Read),
            (&[(0, Unknown), (100, Conflict)], UNREAD, 100, Next::Read),
        ],
    );
}

#[test]
fn a_change_that_was_not_made_is_held_until_the_pod_changes() {
    for class in [Rejected, Denied, Invalid] {
        check(
            FailedWrite::Change,
            &[
                (&[(0, class)], UNREAD, 0, Next::Hold),
                (&[(0, Unknown), (100, class)], UNREAD, 100, Next::Read),
                (&[(0, Unknown), (100, class)], MISSED, 100, Next::Hold),
            ],
        );
    }
    for class in [Unknown, NotAdmitted, Conflict] {
        let failures = [(0, Unknown), (100, class)];
        check(FailedWrite::Change, &[(&failures, MISSED, 100, Next::Hold)]);
    }
}

#[test]
fn a_creation_is_repeated_for_two_seconds_after_its_decision_while_a_retry_may_help() {
    check(
        create(),
        &[
            (&[(500, Unknown)], UNREAD, 599, wait(600)),
            (&[(500, Unknown)], UNREAD, 600, Next::Send),
            (&[(500, NotAdmitted)], UNREAD, 599, wait(600)),
            (&[(500, NotAdmitted)], UNREAD, 600, Next::Send),
            (&[(1950, Unknown)], UNREAD, 1999, wait(2050)),
            (&[(1950, Unknown)], UNREAD, 2000, Next::Read),
            (&[(1950, NotAdmitted)], UNREAD, 2000, Next::Reject),
            (&[(500, Unknown), (1950, NotAdmitted)], UNREAD, 2000, Next::Read),
        ],
    );
}

#[test]
fn a_creation_that_was_not_made_stops_the_creations_of_its_pool() {
    for class in [Rejected, Denied, Invalid, Gone, throttled(7000)] {
        check(
            create(),
            &[
                (&[(0, class)], UNREAD, 0, Next::Reject),
                (&[(0, Unknown), (100, class)], UNREAD, 100, Next::Read),
                (&[(0, Unknown), (100, class)], MISSED, 100, Next::Reject),
            ],
        );
    }
    check(create(), &[(&[(1950, Unknown)], MISSED, 2000, Next::Reject)]);
}

#[test]
fn a_live_read_shows_whose_pod_has_the_name_of_a_creation() {
    check(
        create(),
        &[
            (&[(0, Conflict)], UNREAD, 0, Next::Read),
            (&[(0, Unknown), (100, Conflict)], UNREAD, 100, Next::Read),
            (&[(0, Conflict)], MISSED, 0, Next::Reject),
        ],
    );
}

#[test]
fn a_pod_whose_write_met_a_conflict_or_was_rejected_is_written_again_after_five_seconds() {
    for class in [Conflict, Rejected, Denied, Invalid, Unknown, throttled(7000)] {
        for missed in [UNREAD, MISSED] {
            check(
                FailedWrite::Conflicted,
                &[
                    (&[(0, class)], missed, 4999, wait(5000)),
                    (&[(0, class)], missed, 5000, Next::Forget),
                ],
            );
        }
    }
}

#[test]
fn a_claim_says_that_its_binding_keeps_failing_when_the_next_try_is_due_after_three_seconds() {
    let rows: [(&[(i64, Class)], bool); 5] = [
        (&[(0, Unknown)], false),
        (&[(0, Unknown), (2800, Unknown)], false),
        (&[(0, Unknown), (2801, Unknown)], true),
        (&[(0, throttled(3000))], false),
        (&[(0, throttled(3001))], true),
    ];
    for (failures, keeps_failing) in rows {
        assert_eq!(tries(failures).keeps_failing(), keeps_failing, "{failures:?}");
    }
}

#[test]
fn what_failed_before_the_clock_was_set_back_is_due_at_once() {
    let mut failed = tries(&[(0, throttled(3_600_000))]);
    failed.forget_moments();
    assert_eq!(next(BIND, &failed, UNREAD, ms(-3_600_000)), Next::Send);
}

/// A write on version 7 of an object that failed at these moments in these ways.
fn object_write(purpose: Purpose, failures: &[(i64, Class)]) -> ObjectWrite {
    let mut write = ObjectWrite::sent(None, "7", purpose);
    for (moment, class) in failures {
        write = ObjectWrite::sent(Some(&write), "7", purpose);
        write.failed(failure(*class), ms(*moment));
    }
    write
}

/// Somebody waits for the write: a claim, to be published with its sandboxes.
const URGENT: Purpose = Purpose::Publish;
/// Nobody waits for the write.
const PATIENT: Purpose = Purpose::Report;

#[test]
fn no_second_write_of_an_object_is_sent_while_one_is_under_way_or_its_object_is_being_read() {
    for stage in [Stage::Sent, Stage::Reading] {
        let mut first = object_write(URGENT, &[]);
        let mut again = object_write(URGENT, &[(0, Unknown)]);
        (first.stage, again.stage) = (stage, stage);
        for version in ["7", "8"] {
            assert_eq!(
                first.next(URGENT, version, ms(60_000)),
                NextWrite::Await,
                "{stage:?}"
            );
            assert_eq!(
                again.next(URGENT, version, ms(60_000)),
                NextWrite::Await,
                "{stage:?}"
            );
        }
    }
    assert_eq!(
        object_write(URGENT, &[]).next(URGENT, "7", ms(60_000)),
        NextWrite::Await
    );
}

#[test]
fn an_urgent_write_is_repeated_at_the_pace_of_a_binding_and_any_other_after_five_seconds() {
    type Row<'a> = (Purpose, &'a [(i64, Class)], i64);
    let rows: [Row; 12] = [
        (URGENT, &[(0, Unknown)], 100),
        (URGENT, &[(0, Unknown), (100, Unknown)], 300),
        (URGENT, &[(0, NotAdmitted)], 100),
        (URGENT, &[(0, throttled(7000))], 7000),
        (URGENT, &[(0, Rejected)], 5000),
        (URGENT, &[(0, Denied)], 5000),
        (URGENT, &[(0, Invalid)], 5000),
        (PATIENT, &[(0, Unknown)], 5000),
        (PATIENT, &[(0, NotAdmitted)], 5000),
        (PATIENT, &[(0, throttled(100))], 5000),
        (PATIENT, &[(0, throttled(7000))], 7000),
        (PATIENT, &[(0, Rejected)], 5000),
    ];
    for (purpose, failures, due) in rows {
        let write = object_write(purpose, failures);
        let row = format!("{purpose:?} {failures:?}");
        assert_eq!(
            write.next(purpose, "7", ms(due - 1)),
            NextWrite::Wait(ms(due)),
            "{row}"
        );
        assert_eq!(write.next(purpose, "7", ms(due)), NextWrite::Write, "{row}");
    }
}

#[test]
fn an_object_whose_write_met_a_conflict_is_read_unless_the_watch_has_shown_the_change() {
    for purpose in [URGENT, PATIENT] {
        let mut write = object_write(purpose, &[(0, Conflict)]);
        assert_eq!(write.next(purpose, "7", ms(0)), NextWrite::Read);
        assert_eq!(write.next(purpose, "8", ms(0)), NextWrite::Write);
        write.stage = Stage::Read;
        assert_eq!(write.next(purpose, "8", ms(0)), NextWrite::Write);
        let due = ms(0) + RETRY_DELAY;
        assert_eq!(
            write.next(purpose, "7", ms(0)),
            NextWrite::Wait(due),
            "the read shows no change"
        );
        assert_eq!(write.next(purpose, "7", due), NextWrite::Write);
    }
}

#[test]
fn a_write_follows_the_failed_tries_of_the_one_before() {
    let failed = object_write(URGENT, &[(0, Unknown)]);
    let mut again = ObjectWrite::sent(Some(&failed), "8", URGENT);
    assert_eq!((again.stage, again.version.as_str()), (Stage::Sent, "8"));
    again.failed(failure(Unknown), ms(100));
    assert_eq!(again.next(URGENT, "8", ms(299)), NextWrite::Wait(ms(300)));
    again.forget_moments();
    assert_eq!(again.next(URGENT, "8", ms(-3_600_000)), NextWrite::Write);
}

#[tokio::test]
async fn a_server_that_sheds_load_is_asked_again_when_it_says() {
    let answer = |content: &str, code: u16| {
        let answer = http::Response::builder().status(code).header("retry-after", "7");
        let body = Full::from("Too many requests, please try again later.\n");
        answer.header("content-type", content).body(body).unwrap()
    };
    let told = with_status(answer("text/plain; charset=utf-8", 429)).into_body();
    let told: Status = serde_json::from_slice(&told.collect().await.unwrap().to_bytes()).unwrap();
    let failure = CallError::from(kube::Error::Api(told.boxed())).failure();
    assert_eq!(failure.class, throttled(7_000));
    for (content, code) in [("application/json", 429), ("text/plain", 503)] {
        let kept = with_status(answer(content, code)).into_body();
        let kept = kept.collect().await.unwrap().to_bytes();
        assert!(kept.starts_with(b"Too many"), "{content} {code}: {kept:?}");
    }
}
