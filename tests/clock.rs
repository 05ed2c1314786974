//! Checks that a clock that was set is distinguished from time that passed.

use jiff::{SignedDuration, Timestamp};
use std::time::Duration;
use warmpool::controllers::clock_step::clock_step;

/// The step detected when the clock advances `seconds` while five seconds pass.
fn step(seconds: i64) -> Option<SignedDuration> {
    let before = Timestamp::UNIX_EPOCH;
    let after = before + SignedDuration::from_secs(seconds);
    clock_step(before, after, Duration::from_secs(5))
}

#[test]
fn time_that_passes_is_no_step() {
    assert_eq!(step(5), None);
    assert_eq!(step(4), None, "clocks are corrected by a little all the time");
    assert_eq!(step(6), None);
}

#[test]
fn a_clock_set_forward_or_back_is_detected() {
    assert_eq!(step(3605), Some(SignedDuration::from_hours(1)));
    assert_eq!(step(-3595), Some(SignedDuration::from_hours(-1)));
    assert_eq!(step(7), Some(SignedDuration::from_secs(2)));
}

#[test]
fn a_suspended_process_sees_no_step() {
    let suspended = Duration::from_secs(86_400);
    let after = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24);
    assert_eq!(clock_step(Timestamp::UNIX_EPOCH, after, suspended), None);
}
