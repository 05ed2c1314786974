//! How long nothing is created of a revision whose sandboxes fail to come up, and how many are tried then.

use crate::cache::snapshot::WarmUpFailures;
use crate::model::sandbox::Sandbox;
use crate::planner::draft::Draft;
use jiff::{SignedDuration, Timestamp};

/// Pause after the first failure; each further one in a row doubles it.
const FIRST: SignedDuration = SignedDuration::from_secs(1);
/// Longest pause, that of the kubelet between starts of a container that crashes.
const LONGEST: SignedDuration = SignedDuration::from_secs(300);
/// How long a sandbox has to stay available to end a row of failures.
const PROOF: SignedDuration = SignedDuration::from_secs(10);
/// The API writes in whole seconds when a sandbox became ready, so it may have been ready for that much less.
const PRECISION: SignedDuration = SignedDuration::from_secs(1);

/// The pause that `failures` ask for.
fn pause(failures: &WarmUpFailures) -> SignedDuration {
    let doublings = failures.count.saturating_sub(1).min(16);
    (FIRST * (1 << doublings)).min(LONGEST)
}

/// When the next sandbox may be tried after `failures`.
pub fn resumes_at(failures: &WarmUpFailures) -> Timestamp {
    after(failures.last, pause(failures))
}

fn after(start: Timestamp, time: SignedDuration) -> Timestamp {
    start.checked_add(time).unwrap_or(Timestamp::MAX)
}

/// Takes over the known failures of revisions that are still in use, unless their row has ended: a sandbox of the revision
/// came up since and has stayed up for as long as the pause was, or for [`PROOF`]. A sandbox that is ready for a moment and
/// then dies ends no row.
pub(crate) fn recall(draft: &mut Draft) {
    for (revision, failures) in &draft.snapshot.failures {
        if !is_used(draft, revision) {
            continue;
        }
        let since = |at: &Timestamp| at.as_second() >= failures.last.as_second();
        let up = draft
            .came_up
            .iter()
            .filter(|(of, at)| of == revision && since(at));
        let proof = pause(failures).min(PROOF) + PRECISION;
        let proven_at = up.map(|(_, at)| after(*at, proof)).min();
        if proven_at.is_none_or(|at| at > draft.snapshot.now) {
            draft.failures.insert(revision.clone(), failures.clone());
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
        .filter(|u| u.sandbox.revision == revision && !u.overdue && (!u.available || since(&u.sandbox)));
    let creating = draft.snapshot.creating.iter().filter(|c| c.revision == revision);
    let spec = &draft.snapshot.pool.spec;
    spec.rollout_width()
        .saturating_sub(open.count() + creating.count())
}
