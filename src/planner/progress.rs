//! How the rollout fares: whether it is complete, at its partition, waiting for somebody or stuck, and the condition
//! `Progressing` that says so.

use crate::api::conditions;
use crate::api::conditions::{Statement, Truth, progressing};
use crate::api::pool::UpdateStrategyType;
use crate::cache::snapshot::WarmUpFailures;
use crate::model::pool_error::PoolError;
use crate::planner::counts::Counts;
use crate::planner::draft::Draft;
use crate::planner::observed::{ObservedCounts, number};
use crate::planner::warm_up;
use jiff::{SignedDuration, Timestamp};

/// How the rollout fares.
pub(crate) struct Progress {
    /// It has come to its end, or none is under way.
    pub(crate) complete: bool,
    /// Unclaimed sandboxes that the partition keeps on the old revision.
    pub(crate) kept: usize,
    at_partition: bool,
    /// When it made progress last, while its clock runs.
    pub(crate) last: Option<Timestamp>,
    /// When it has had its time.
    pub(crate) deadline: Option<Timestamp>,
}

impl Progress {
    pub(crate) fn of(draft: &Draft, counts: &Counts, observed: &ObservedCounts) -> Self {
        let complete = complete(draft, counts, observed);
        let kept = kept(draft, observed, complete);
        let at_partition = at_partition(draft, counts, observed, kept);
        let last = last_progress(draft, counts, complete, at_partition);
        let time: SignedDuration = draft.snapshot.pool.spec.progress;
        Self {
            complete,
            kept,
            at_partition,
            last,
            deadline: last.and_then(|last| last.checked_add(time).ok()),
        }
    }

    /// The condition that says so.
    pub(crate) fn statement(&self, draft: &Draft, counts: &Counts, observed: &ObservedCounts) -> Statement {
        if let Some(error) = &draft.snapshot.pool.error {
            return stopped(error);
        }
        let spec = &draft.snapshot.pool.spec;
        let update = &draft.revisions.update.hash;
        let (updated, up) = (observed.updated, observed.updated_available);
        let wanted = spec.replicas;
        let so_far = format!(
            "{updated} of {wanted} unclaimed sandboxes run revision {update}, {up} of them available"
        );
        let (status, reason, mut message) = if self.complete {
            (
                Truth::True,
                progressing::COMPLETE,
                format!("revision {update} is complete"),
            )
        } else if spec.paused {
            (Truth::Unknown, progressing::PAUSED, format!("paused; {so_far}"))
        } else if self.at_partition {
            (
                Truth::True,
                progressing::PARTITION_COMPLETE,
                format!("{so_far}; the partition keeps {} on the old revision", self.kept),
            )
        } else if self
            .deadline
            .is_some_and(|deadline| deadline <= draft.snapshot.now)
        {
            (
                Truth::False,
                progressing::DEADLINE_EXCEEDED,
                format!(
                    "{so_far}; none became available for progressDeadlineSeconds ({})",
                    spec.progress.as_secs()
                ),
            )
        } else if updated == 0 {
            (Truth::True, progressing::NEW_REVISION, so_far)
        } else {
            (Truth::True, progressing::PROGRESSING, so_far)
        };
        // With maxUnavailable 0 a rollout or an eviction needs room for one more than are wanted; else a rollout goes on
        // within what room there is.
        let evicts = draft.unclaimed.iter().any(|i| i.evict_requested);
        let replaces = evicts || !self.complete;
        let needed = match counts.budget.max_unavailable {
            0 if replaces => wanted + 1,
            _ => usize::from(!self.complete),
        };
        let room = counts.within_total(needed);
        if replaces && spec.replaces_without_surge(draft.claimed + draft.set_aside) {
            message = format!(
                "{message}; maxUnavailable and maxSurge both come to 0 of {wanted}, and maxUnavailable counts as 1 because \
                 capacity.maxTotal leaves no place for a surge"
            );
        }
        if room < needed {
            message = format!(
                "{message}; held back, capacity.maxTotal leaves room for {room} beside the claimed ones, and it takes {needed}"
            );
        }
        if let Some(failing) = warm_up_failures(draft) {
            message = format!("{message}; {failing}");
        }
        Statement {
            type_: conditions::PROGRESSING,
            status,
            reason,
            message,
        }
    }
}

/// A rollout is complete when no unclaimed sandbox of an old revision is left and the update revision has
/// brought up `replicas` sandboxes, or as many as there is room for, those taken by claims meanwhile included. It stays
/// complete while claims take sandboxes and the pool refills. One that is paused does not come to its end, whatever claims
/// and scaling take of the old sandboxes: those are made again.
fn complete(draft: &Draft, counts: &Counts, observed: &ObservedCounts) -> bool {
    let pool = &draft.snapshot.pool;
    let none_is_old =
        observed.updated == observed.replicas && draft.snapshot.creating.len() == draft.creating_updated();
    let enough =
        observed.updated_available + draft.claimed_updated >= counts.within_total(pool.spec.replicas);
    let enough = enough && has_begun(draft, observed, 0) && !draft.rollout_is_paused();
    // That it was complete once is not enough: a rollout to another revision that was undone has to be made good.
    let was_complete = pool.status.completed() == Some(&draft.revisions.update.hash);
    none_is_old && (was_complete || (pool.error.is_none() && enough))
}

/// A sandbox of the update revision has come up, or none is to: where claims leave no room for any, none has shown that it
/// does. `kept` of the pool's stay on the old revision.
fn has_begun(draft: &Draft, observed: &ObservedCounts, kept: usize) -> bool {
    observed.updated_available + draft.claimed_updated > 0 || kept >= draft.snapshot.pool.spec.replicas
}

/// When the rollout made progress last; `None` while none is under way, and while it waits for somebody: paused,
/// at its partition, for claims to take the old sandboxes or to leave room for new ones, for its spec to be mended.
fn last_progress(draft: &Draft, counts: &Counts, complete: bool, at_partition: bool) -> Option<Timestamp> {
    let pool = &draft.snapshot.pool;
    let (spec, update) = (&pool.spec, draft.revisions.update.hash.as_str());
    let waits = spec.paused
        || at_partition
        || spec.strategy == UpdateStrategyType::OnReplenish
        || counts.within_total(1) == 0;
    if complete || waits || pool.error.is_some() {
        return None;
    }
    let stored = pool.status.last_progress_time.as_ref().map(|time| time.0);
    let known = stored.filter(|_| pool.status.update_revision == update);
    let of_update = draft.came_up.iter().filter(|(revision, _)| *revision == update);
    let came_up = of_update.map(|(_, at)| *at).max();
    known.map_or(Some(conditions::whole_seconds(draft.snapshot.now)), |known| {
        came_up.max(Some(known))
    })
}

/// A sentence on revisions whose sandboxes fail to come up.
fn warm_up_failures(draft: &Draft) -> Option<String> {
    let sentence = |(revision, failures): (&String, &WarmUpFailures)| {
        let next = conditions::time_of_day(warm_up::resumes_at(failures));
        let times = match failures.count {
            1 => "once".to_string(),
            n => format!("{n} times in a row"),
        };
        let not_running_reason = failures.not_running_reason.as_deref().map(|o| format!(" ({o})"));
        format!(
            "sandboxes of revision {revision} failed to become available {times}{}, they are tried again from {next} on",
            not_running_reason.unwrap_or_default()
        )
    };
    let sentences: Vec<_> = draft.failures.iter().map(sentence).collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// All but the `kept` sandboxes run the update revision, now or as the status has said.
fn at_partition(draft: &Draft, counts: &Counts, observed: &ObservedCounts, kept: usize) -> bool {
    let wanted = counts.within_total(draft.snapshot.pool.spec.replicas);
    let enough = has_begun(draft, observed, kept) && observed.updated_available + kept >= wanted;
    kept > 0 && (enough || reached_partition(draft, kept))
}

/// The status says of this revision that all but the `kept` ones run it. That stays so while claims take sandboxes
/// and the pool refills.
fn reached_partition(draft: &Draft, kept: usize) -> bool {
    let pool = &draft.snapshot.pool;
    let said = conditions::find(&pool.status.conditions, conditions::PROGRESSING);
    said.is_some_and(|c| c.reason == progressing::PARTITION_COMPLETE)
        && pool.status.update_revision == draft.revisions.update.hash
        && pool.status.expected_updated == number(pool.spec.replicas - kept)
}

/// A pool with a fault makes no progress until it is mended.
fn stopped(error: &PoolError) -> Statement {
    Statement {
        type_: conditions::PROGRESSING,
        status: Truth::False,
        reason: match error {
            PoolError::Spec(_) => progressing::INVALID_SPEC,
            PoolError::TemplateNotFound(_) => progressing::TEMPLATE_NOT_FOUND,
            PoolError::TemplateInvalid(_) => progressing::TEMPLATE_INVALID,
        },
        message: format!("nothing is created or deleted: {}", error.message()),
    }
}

/// Unclaimed sandboxes that the partition keeps on the old revision.
fn kept(draft: &Draft, observed: &ObservedCounts, complete: bool) -> usize {
    let rolling = observed.updated < observed.replicas || draft.revisions.previous.is_some();
    if rolling && !complete {
        draft.snapshot.pool.spec.partition
    } else {
        0
    }
}
