//! Formats counts, times, ranks and reasons for sentences.

use crate::api::conditions::whole_seconds;
use jiff::Timestamp;

/// `1 sandbox`, `3 sandboxes`.
pub(super) fn sandboxes(count: usize) -> String {
    match count {
        1 => "1 sandbox".into(),
        n => format!("{n} sandboxes"),
    }
}

/// `1 claim`, `3 claims`.
pub fn claims(count: usize) -> String {
    match count {
        1 => "1 claim".into(),
        n => format!("{n} claims"),
    }
}

/// The verb for a count: `is` or `are`.
pub(super) fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// The time between two timestamps in its two largest units, such as `5m12s` or `3d4h`. A negative time is `0s`.
pub fn between(from: Timestamp, to: Timestamp) -> String {
    let seconds = to.duration_since(from).as_secs().max(0);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let units = [(days, "d"), (hours, "h"), (minutes, "m"), (seconds % 60, "s")];
    let largest = units.iter().skip_while(|(n, _)| *n == 0).take(2);
    let text: String = largest
        .filter(|(n, _)| *n > 0)
        .map(|(n, unit)| format!("{n}{unit}"))
        .collect();
    if text.is_empty() { "0s".into() } else { text }
}

/// A time in seconds, such as `12ms` or `3.4s`.
pub fn short(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{:.0}ms", seconds * 1000.0)
    } else {
        format!("{seconds:.1}s")
    }
}

/// A past timestamp and its age.
pub(super) fn since(at: Timestamp, now: Timestamp) -> String {
    format!("since {} ({})", timestamp(at), between(at, now))
}

/// A timestamp in whole seconds.
pub(super) fn timestamp(at: Timestamp) -> String {
    whole_seconds(at).to_string()
}

/// A rank, such as `the 2nd of 5` for index 1 of 5.
pub(super) fn rank(index: usize, of: usize) -> String {
    let number = index + 1;
    let suffix = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("the {number}{suffix} of {of}")
}

/// The reason of a planned action as the end of a sentence. An unknown reason is printed in parentheses.
pub(super) fn because(reason: &str) -> String {
    let clause = match reason {
        "OldRevision" => "because it runs an old revision",
        "AboveMaxTotal" => "because the pool has more than capacity.maxTotal allows",
        "AboveMaxWarm" => "because the pool has more than capacity.maxWarm allows",
        "ScaledDown" => "because the pool has more than it wants",
        "WarmUpDeadline" => "because it did not become available within warmUpDeadlineSeconds",
        "PodFailed" => "because it has failed",
        "PodSucceeded" => "because its containers have exited",
        "NodeCordoned" => "because its node is cordoned",
        "NodeTainted" => "because its node has a taint that it does not tolerate",
        "NodeNotReady" => "because its node is not ready",
        "NodeGone" => "because its node is gone",
        "NodeDeletionAnnounced" => "because its node is about to be deleted",
        "DisruptionTarget" => "because it is about to be terminated",
        "EvictionRequest" => "because an EvictionRequest names it",
        "DrainPolicyBreak" => "because it cannot stay on its node and disruption.drainPolicy is Break",
        "DrainDeadlineExceeded" => "because disruption.drainDeadlineSeconds have passed for its node",
        "EvictRequested" => "because its label warmpool.dev/evict asks for that",
        "Drained" => "because its preDelete handlers are removed",
        "WantedAgain" => "because the pool wants it again",
        "Available" => "because it is available and the claim is next",
        "Refill" => "to fill the pool up",
        "Demand" => "because claims wait",
        other => return format!("({other})"),
    };
    clause.into()
}
