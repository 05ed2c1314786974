//! A clock that was set is told from time that passed.

use jiff::{SignedDuration, Timestamp};
use std::time::Duration;
use warmpool::controllers::resync::clock_step;

/// What is made of a clock that goes `seconds` further while five pass.
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
fn a_clock_that_was_set_is_seen_both_ways() {
    assert_eq!(step(3605), Some(SignedDuration::from_hours(1)));
    assert_eq!(step(-3595), Some(SignedDuration::from_hours(-1)));
    assert_eq!(step(7), Some(SignedDuration::from_secs(2)));
}

#[test]
fn a_process_that_stood_still_saw_no_step() {
    let asleep = Duration::from_secs(86_400);
    let after = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24);
    assert_eq!(clock_step(Timestamp::UNIX_EPOCH, after, asleep), None);
}
