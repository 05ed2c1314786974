//! Numbers, times and reasons in plain words.

use crate::api::conditions::whole_seconds;
use jiff::{SignedDuration, Timestamp};

/// As in `1 sandbox` and `3 sandboxes`.
pub(super) fn sandboxes(count: usize) -> String {
    match count {
        1 => "1 sandbox".into(),
        n => format!("{n} sandboxes"),
    }
}

/// As in `1 claim` and `3 claims`.
pub(super) fn claims(count: usize) -> String {
    match count {
        1 => "1 claim".into(),
        n => format!("{n} claims"),
    }
}

/// `is` or `are`.
pub(super) fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// The time between two moments, to two units, as in `5m12s` or `3d4h`.
pub(super) fn between(from: Timestamp, to: Timestamp) -> String {
    span(to.duration_since(from))
}

/// A time, to two units; less than none is none.
pub(super) fn span(time: SignedDuration) -> String {
    let seconds = time.as_secs().max(0);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let units = [(days, "d"), (hours, "h"), (minutes, "m"), (seconds % 60, "s")];
    let told = units.iter().skip_while(|(n, _)| *n == 0).take(2);
    let told: String = told
        .filter(|(n, _)| *n > 0)
        .map(|(n, unit)| format!("{n}{unit}"))
        .collect();
    if told.is_empty() { "0s".into() } else { told }
}

/// A moment of the past and how long ago it was.
pub(super) fn since(at: Timestamp, now: Timestamp) -> String {
    format!("since {} ({})", clock(at), between(at, now))
}

/// A moment, to the second.
pub(super) fn clock(at: Timestamp) -> String {
    whole_seconds(at).to_string()
}

/// A place in a line, as in `the 2nd of 5`.
pub(super) fn place(index: usize, of: usize) -> String {
    let number = index + 1;
    let end = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("the {number}{end} of {of}")
}

/// Why the planner does something, as the rest of a sentence. A reason without words stands for itself.
pub(super) fn because(reason: &str) -> String {
    let words = match reason {
        "OldRevision" => "because it runs an old revision",
        "AboveMaxTotal" => "because the pool has more than capacity.maxTotal allows",
        "AboveMaxWarm" => "because the pool has more than it is to keep",
        "WarmUpDeadline" => "because it did not become available within warmUpDeadlineSeconds",
        "PodFailed" => "because it has failed",
        "PodSucceeded" => "because it has ended",
        "EvictRequested" => "because its label warmpool.dev/evict asks for that",
        "Drained" => "because none of its preDelete handlers is left",
        "WantedAgain" => "because the pool wants it again",
        "Available" => "because it is available and the claim is next",
        "Refill" => "to fill the pool up",
        "Demand" => "because claims wait",
        other => return format!("({other})"),
    };
    words.into()
}
