//! How long nothing is created of a revision whose sandboxes fail to come up, and how many are tried then.

use crate::api::PoolStatus;
use crate::api::conditions;
use crate::cache::snapshot::WarmUpFailures;
use crate::model::sandbox::Sandbox;
use crate::planner::draft::Draft;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// Pause after the first failure; each further one in a row doubles it.
const FIRST: SignedDuration = SignedDuration::from_secs(1);
/// Longest pause, that of the kubelet between starts of a container that crashes.
const LONGEST: SignedDuration = SignedDuration::from_secs(300);
/// How long a sandbox has to stay available to end a row of failures.
const PROOF: SignedDuration = SignedDuration::from_secs(10);
/// The API writes in whole seconds when a sandbox became ready, so it may have been ready for that much less.
const PRECISION: SignedDuration = SignedDuration::from_secs(1);

/// The words between the parts of a sentence about failures.
const OF_REVISION: &str = "sandboxes of revision ";
const FAILED: &str = " failed to become available ";
const ONCE: &str = "once";
const IN_A_ROW: &str = " times in a row";
const RESUMES: &str = ", they are tried again from ";
const ON: &str = " on";

/// The pause after so many failures in a row.
fn pause(count: u32) -> SignedDuration {
    let doublings = count.saturating_sub(1).min(16);
    (FIRST * (1 << doublings)).min(LONGEST)
}

/// When the next sandbox may be tried after `failures`: with the first second that begins after the pause, because the
/// status says so in whole seconds.
pub fn resumes_at(failures: &WarmUpFailures) -> Timestamp {
    let over = after(failures.last, pause(failures.count));
    let begun = i64::from(over.subsec_nanosecond() > 0);
    Timestamp::from_second(over.as_second() + begun).unwrap_or(over)
}

fn after(start: Timestamp, time: SignedDuration) -> Timestamp {
    start.checked_add(time).unwrap_or(Timestamp::MAX)
}

/// What the condition `Progressing` says of failures. It is also what a restarted operator knows of them: [`stored`]
/// reads the sentence, and gets the same pause.
pub(crate) fn sentence(revision: &str, failures: &WarmUpFailures) -> String {
    let times = match failures.count {
        1 => ONCE.to_string(),
        count => format!("{count}{IN_A_ROW}"),
    };
    let reason = failures.not_running_reason.as_deref();
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let resumes_at = resumes_at(failures);
    format!("{OF_REVISION}{revision}{FAILED}{times}{reason}{RESUMES}{resumes_at}{ON}")
}

/// The failures that a stored status speaks of, by revision. What is not understood is left out, and so is a failure
/// later than `now`: the clock was set back, and its pause would last for as long as the step.
fn stored(status: &PoolStatus, now: Timestamp) -> BTreeMap<String, WarmUpFailures> {
    let progressing = conditions::find(&status.conditions, conditions::PROGRESSING);
    let message = progressing.map_or("", |condition| &condition.message);
    let sentences = message.split(OF_REVISION).skip(1);
    let failures = sentences.filter_map(failures_of);
    failures
        .filter(|(_, failures)| failures.last <= after(now, PRECISION))
        .collect()
}

/// Reads a [`sentence`] from the revision on.
fn failures_of(sentence: &str) -> Option<(String, WarmUpFailures)> {
    let (revision, rest) = sentence.split_once(FAILED)?;
    let (times, rest) = rest.split_once(RESUMES)?;
    let (resumes_at, _) = rest.split_once(ON)?;
    let (times, reason) = match times.split_once(" (") {
        Some((times, reason)) => (times, Some(reason.strip_suffix(')')?)),
        None => (times, None),
    };
    let count = match times {
        ONCE => 1,
        times => times.strip_suffix(IN_A_ROW)?.parse().ok()?,
    };
    let resumes_at: Timestamp = resumes_at.parse().ok()?;
    let failures = WarmUpFailures {
        count,
        last: resumes_at.checked_sub(pause(count)).ok()?,
        not_running_reason: reason.map(str::to_string),
    };
    Some((revision.to_string(), failures))
}

/// The failures that this process remembers. Before it has written the status of the pool for the first time, also
/// those that the status speaks of: they were there before the process was.
fn known(draft: &Draft) -> BTreeMap<String, WarmUpFailures> {
    let snapshot = draft.snapshot;
    let mut known = match snapshot.status_written_at {
        None => stored(&snapshot.pool.status, snapshot.now),
        Some(_) => BTreeMap::new(),
    };
    known.extend(snapshot.failures.clone());
    known
}

/// Takes over the known failures of revisions that are still in use, unless their row has ended: a sandbox of the
/// revision came up since and has stayed up for as long as the pause was, or for [`PROOF`]. A sandbox that is ready for
/// a moment and then dies ends no row.
pub(crate) fn recall(draft: &mut Draft) {
    for (revision, failures) in known(draft) {
        if !is_used(draft, &revision) {
            continue;
        }
        // The sandbox may have become ready that much later, and the status rounds the time of the failure up.
        let since = |at: &Timestamp| after(*at, PRECISION) >= failures.last;
        let up = draft
            .came_up
            .iter()
            .filter(|(of, at)| *of == revision && since(at));
        let proof = pause(failures.count).min(PROOF) + PRECISION;
        let proven_at = up.map(|(_, at)| after(*at, proof)).min();
        if proven_at.is_none_or(|at| at > draft.snapshot.now) {
            draft.failures.insert(revision, failures);
        }
        if let Some(at) = proven_at {
            draft.wake(at);
        }
    }
}

/// Sandboxes are made from the revision, or some of its sandboxes have yet to come up.
fn is_used(draft: &Draft, revision: &str) -> bool {
    let previous = draft.revisions.previous.as_ref();
    draft.revisions.update.hash == revision
        || previous.is_some_and(|previous| previous.hash == revision)
        || draft
            .unclaimed
            .iter()
            .any(|unclaimed| unclaimed.sandbox.revision == revision)
}

/// A sandbox of `revision` has failed or was given up. Failures within one pause count once.
pub(crate) fn note_warm_up_failure(draft: &mut Draft, revision: &str, not_running_reason: Option<String>) {
    let before = draft.failures.get(revision);
    if before.is_some_and(|f| resumes_at(f) > draft.snapshot.now) {
        return;
    }
    let failures = WarmUpFailures {
        count: before.map_or(0, |f| f.count).saturating_add(1),
        last: draft.snapshot.now,
        not_running_reason,
    };
    draft.failures.insert(revision.to_string(), failures);
}

/// How many sandboxes of `revision` may be created now: after a failure none until the pause is over, then no
/// more than `maxUnavailable + maxSurge` at once until one of them becomes available.
pub(crate) fn max_creatable(draft: &mut Draft, revision: &str) -> usize {
    match draft.failures.get(revision).map(resumes_at) {
        None => usize::MAX,
        Some(until) if until > draft.snapshot.now => {
            draft.wake(until);
            0
        }
        Some(_) => width(draft, revision),
    }
}

/// `maxUnavailable + maxSurge` less the sandboxes of `revision` whose outcome is open: those that are warming, and
/// after a failure also those made since.
pub(crate) fn width(draft: &Draft, revision: &str) -> usize {
    let failed = draft.failures.get(revision).map(|f| f.last.as_second());
    let since = |sandbox: &Sandbox| failed.is_some_and(|at| sandbox.created.as_second() >= at);
    let open = draft
        .unclaimed
        .iter()
        .filter(|u| u.sandbox.revision == revision && !u.overdue && (!u.available || since(u.sandbox)));
    let creating = draft.snapshot.creating.iter().filter(|c| c.revision == revision);
    let spec = &draft.snapshot.pool.spec;
    spec.rollout_width()
        .saturating_sub(open.count() + creating.count())
}
