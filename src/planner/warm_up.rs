//! Sandboxes that do not become available: when they are given up, and how much slower and fewer they are
//! tried again. Every phase that gives one up or makes one asks here.

use crate::cache::snapshot::{Creation, WarmUpFailures};
use crate::model::sandbox::Sandbox;
use crate::planner::draft::{Draft, Limit, UnclaimedSandbox};
use crate::planner::{Phase, scale};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeSet;

/// Pause after the first failure; each further one in a row doubles it.
const FIRST: SignedDuration = SignedDuration::from_secs(1);
/// Longest pause, that of the kubelet between starts of a container that crashes.
const LONGEST: SignedDuration = SignedDuration::from_secs(300);
/// How long a sandbox has to stay available to end a row of failures.
const PROOF: SignedDuration = SignedDuration::from_secs(10);
/// The API tells in whole seconds when a sandbox became ready, so it may have been ready for that much less.
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

/// Takes over the failures known, without those of revisions that nothing is made from any more, and without those that
/// are over: a sandbox of the revision came up since and has stayed for as long as the pause was, or for [`PROOF`]. So
/// one that is ready for a moment and then dies ends no row of failures.
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

/// Sandboxes are made from the revision, or there are some that have yet to come up.
fn is_used(draft: &Draft, revision: &str) -> bool {
    let previous = draft.revisions.previous.as_ref();
    draft.revisions.update.hash == revision
        || previous.is_some_and(|previous| previous.hash == revision)
        || draft
            .unclaimed
            .iter()
            .any(|unclaimed| unclaimed.sandbox.revision == revision)
}

/// Gives up unclaimed sandboxes that had `warmUpDeadlineSeconds` and are not available: of each revision as
/// many as may be tried anew now.
pub(crate) fn give_up_overdue(draft: &mut Draft) {
    let overdue = draft.unclaimed.iter().filter(|i| i.overdue);
    let revisions: BTreeSet<String> = overdue.map(|i| i.sandbox.revision.clone()).collect();
    for revision in revisions {
        let rest = width(draft, &revision).saturating_sub(to_be_replaced(draft));
        let room = room(draft, &revision).min(rest);
        let of = |unclaimed: &UnclaimedSandbox| unclaimed.overdue && unclaimed.sandbox.revision == revision;
        let mut overdue = draft.unclaimed.iter().filter(|unclaimed| of(unclaimed));
        let not_running_reason = overdue.find_map(|unclaimed| unclaimed.sandbox.not_running_reason.clone());
        if draft.remove(Phase::Eviction, "WarmUpDeadline", room, Limit::Budget, of) > 0 {
            note_warm_up_failure(draft, &revision, not_running_reason);
        }
    }
}

/// Sandboxes given up before, which are replaced first. What nothing lets be created is no reason to keep one that is
/// overdue: it may be what takes up the room.
fn to_be_replaced(draft: &Draft) -> usize {
    if draft.snapshot.creation != Creation::Open {
        return 0;
    }
    let missing = draft.within_total(draft.desired()).saturating_sub(draft.active());
    missing.min(draft.ceiling()).min(scale::makeable(draft))
}

/// A sandbox of `revision` has failed or was given up, for what `obstacle` says. Failures within one pause are one.
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
pub(crate) fn room(draft: &mut Draft, revision: &str) -> usize {
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
fn width(draft: &Draft, revision: &str) -> usize {
    let failed = draft.failures.get(revision).map(|f| f.last.as_second());
    let since = |sandbox: &Sandbox| failed.is_some_and(|at| sandbox.created.as_second() >= at);
    let open = draft
        .unclaimed
        .iter()
        .filter(|i| i.sandbox.revision == revision && !i.overdue && (!i.available || since(&i.sandbox)));
    let creating = draft.snapshot.creating.iter().filter(|c| c.revision == revision);
    let spec = &draft.snapshot.pool.spec;
    spec.rollout_width()
        .saturating_sub(open.count() + creating.count())
}
