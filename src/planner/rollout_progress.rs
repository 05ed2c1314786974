//! How far a rollout is, and the condition `Progressing` that says so.

use crate::api::conditions::{self, Statement, Truth, progressing};
use crate::api::pool::UpdateStrategyType;
use crate::model::pool_error::PoolError;
use crate::model::warming_reason::WarmingReason;
use crate::planner::desired_counts::Counts;
use crate::planner::draft::Draft;
use crate::planner::missing_under_load;
use crate::planner::observed_counts::{ObservedCounts, number};
use crate::planner::unclaimed_sandbox::UnclaimedSandbox;
use crate::planner::warm_up_backoff;
use jiff::Timestamp;

/// How far a rollout is.
pub(crate) struct Progress {
    /// It has come to its end, or none is under way.
    pub(crate) complete: bool,
    /// Unclaimed sandboxes that the partition or the pause keeps on the old revision.
    pub(crate) kept: usize,
    at_partition: bool,
    /// When it made progress last, while its clock runs.
    pub(crate) last: Option<Timestamp>,
    /// When `progressDeadlineSeconds` are over.
    pub(crate) deadline: Option<Timestamp>,
}

impl Progress {
    pub(crate) fn of(draft: &Draft, counts: &Counts, observed: &ObservedCounts) -> Self {
        let complete = complete(draft, counts, observed);
        let kept = kept(draft, counts, observed, complete);
        let at_partition = at_partition(draft, counts, observed, kept);
        let last = last_progress(draft, counts, complete, at_partition);
        let progress_deadline = draft.snapshot.pool.spec.progress;
        Self {
            complete,
            kept,
            at_partition,
            last,
            deadline: last.and_then(|last| last.checked_add(progress_deadline).ok()),
        }
    }

    /// The condition `Progressing`.
    pub(crate) fn statement(
        &self,
        draft: &Draft,
        counts: &Counts,
        observed: &ObservedCounts,
        why: Option<&WarmingReason>,
    ) -> Statement {
        if let Some(error) = &draft.snapshot.pool.error {
            return stopped(error);
        }
        let (status, reason, mut message) = self.headline(draft, counts, observed);
        let why = why.filter(|_| !self.complete).map(WarmingReason::summary);
        for remark in [self.held_back(draft, counts), why, warm_up_failures(draft)] {
            message.extend(remark.map(|remark| format!("; {remark}")));
        }
        Statement {
            type_: conditions::PROGRESSING,
            status,
            reason,
            message,
        }
    }

    fn headline(
        &self,
        draft: &Draft,
        counts: &Counts,
        observed: &ObservedCounts,
    ) -> (Truth, &'static str, String) {
        let spec = &draft.snapshot.pool.spec;
        let update = &draft.revisions.update.hash;
        let so_far = format!(
            "{} of {} unclaimed sandboxes run revision {update}, {} of them available",
            observed.updated, spec.replicas, observed.updated_available
        );
        let is_late = self
            .deadline
            .is_some_and(|deadline| deadline <= draft.snapshot.now);
        if self.complete {
            let message = format!("revision {update} is complete");
            (Truth::True, progressing::COMPLETE, message)
        } else if spec.paused {
            (Truth::Unknown, progressing::PAUSED, format!("paused; {so_far}"))
        } else if self.at_partition {
            let message = format!("{so_far}; the partition keeps {} on the old revision", self.kept);
            (Truth::True, progressing::PARTITION_COMPLETE, message)
        } else if is_late {
            let seconds = spec.progress.as_secs();
            let message = format!("{so_far}; none became available for progressDeadlineSeconds ({seconds})");
            (Truth::False, progressing::DEADLINE_EXCEEDED, message)
        } else if observed.updated == 0 {
            (Truth::True, progressing::NEW_REVISION, so_far)
        } else {
            let missing = missing(draft, counts, self.kept);
            let message = if observed.old() <= self.kept && missing > 0 {
                format!("{so_far}; {missing} more must become available")
            } else {
                so_far
            };
            (Truth::True, progressing::PROGRESSING, message)
        }
    }

    /// Why `maxTotal` keeps a rollout, an eviction or a drain from going on, or changes its budget.
    fn held_back(&self, draft: &Draft, counts: &Counts) -> Option<String> {
        let spec = &draft.snapshot.pool.spec;
        let replicas = spec.replicas;
        let evicts = draft.unclaimed.iter().any(|u| !u.stays());
        let drains = draft.unclaimed.iter().any(UnclaimedSandbox::leaves_node);
        // A rollout that is paused or at its partition needs nothing until its user continues it.
        let is_at_rest = self.complete || self.at_partition || spec.paused;
        if is_at_rest && !evicts {
            return None;
        }
        // With maxUnavailable 0, and for a drain, a replacement needs capacity for one sandbox more than are wanted.
        // Otherwise a rollout continues within the capacity that it has.
        let needed = match counts.budget.max_unavailable {
            _ if drains => replicas + 1,
            0 => replicas + 1,
            _ => usize::from(!self.complete),
        };
        let capacity = counts.within_total(needed);
        let mut remarks = Vec::new();
        if spec.replaces_without_surge(draft.claimed + draft.set_aside.len()) {
            remarks.push(format!(
                "maxUnavailable and maxSurge both come to 0 of {replicas}, and maxUnavailable counts as 1 because \
                 capacity.maxTotal forbids a surge"
            ));
        }
        if capacity < needed {
            remarks.push(format!(
                "held back: replacements need {needed} sandboxes beside the claimed sandboxes, and capacity.maxTotal \
                 allows {capacity}"
            ));
        }
        (!remarks.is_empty()).then(|| remarks.join("; "))
    }
}

/// A rollout is complete when no unclaimed sandbox of an old revision is left and the pool is full of the update
/// revision. Once said, it stays complete while claims take sandboxes and the pool refills, as a Deployment does. A
/// paused rollout does not complete, whatever claims and scaling take of the old sandboxes: those are made again.
fn complete(draft: &Draft, counts: &Counts, observed: &ObservedCounts) -> bool {
    let pool = &draft.snapshot.pool;
    let none_is_old = observed.old() == 0 && draft.snapshot.creating.len() == draft.creating_updated();
    // That it was complete once is not enough: a rollout to another revision that was undone has to be made good.
    let was_complete = pool.status.completed() == Some(&draft.revisions.update.hash);
    let may_complete = pool.error.is_none() && !draft.rollout_is_paused();
    none_is_old && (was_complete || (may_complete && is_full(draft, counts, observed, 0)))
}

/// Beside the `kept` old sandboxes, as many sandboxes of the update revision are available as are wanted and `maxTotal`
/// allows; or only those are missing that a steady load of claims takes. At least one has to be available, unless all
/// stay on the old revision: until then nothing shows that the update revision works.
fn is_full(draft: &Draft, counts: &Counts, observed: &ObservedCounts, kept: usize) -> bool {
    let spec = &draft.snapshot.pool.spec;
    let missing = missing(draft, counts, kept);
    let works = observed.updated_available > 0 || kept >= spec.replicas;
    works && (missing == 0 || missing_under_load::explains(draft, missing))
}

/// Sandboxes of the update revision that have yet to become available, beside the `kept` old sandboxes. A sandbox that
/// this plan gives to a claim is missing, too.
fn missing(draft: &Draft, counts: &Counts, kept: usize) -> usize {
    let wanted = counts.within_total(draft.snapshot.pool.spec.replicas);
    let available = draft
        .unclaimed
        .iter()
        .filter(|u| u.updated && u.available)
        .count();
    wanted.saturating_sub(kept + available)
}

/// When the rollout made progress last. `None` while none is under way, and while it waits for something other than its
/// sandboxes: it is paused or at its partition, claims have to take the old sandboxes or to leave capacity for new
/// ones, or the spec has an error.
fn last_progress(draft: &Draft, counts: &Counts, complete: bool, at_partition: bool) -> Option<Timestamp> {
    let pool = &draft.snapshot.pool;
    let (spec, update) = (&pool.spec, draft.revisions.update.hash.as_str());
    let waits = spec.paused
        || at_partition
        || spec.strategy == UpdateStrategyType::OnReplenish
        || counts.total_capacity_left == 0;
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
    let failures = draft.failures.iter();
    let sentences: Vec<_> = failures
        .map(|(revision, failures)| warm_up_backoff::sentence(revision, failures))
        .collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// No more than the `kept` sandboxes are old and all others run the update revision, now or as the status has said.
fn at_partition(draft: &Draft, counts: &Counts, observed: &ObservedCounts, kept: usize) -> bool {
    let is_split = || observed.old() <= kept && is_full(draft, counts, observed, kept);
    kept > 0 && (reached_partition(draft, kept) || is_split())
}

/// The status says that all but the `kept` sandboxes run this revision. That stays so while claims take sandboxes and
/// the pool refills.
fn reached_partition(draft: &Draft, kept: usize) -> bool {
    let pool = &draft.snapshot.pool;
    let said = conditions::find(&pool.status.conditions, conditions::PROGRESSING);
    said.is_some_and(|c| c.reason == progressing::PARTITION_COMPLETE)
        && pool.status.update_revision == draft.revisions.update.hash
        && pool.status.expected_updated == number(pool.spec.replicas - kept)
}

/// A pool with an error makes no progress until its spec or template is corrected.
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

/// Unclaimed sandboxes that the partition or the pause keeps on the old revision.
fn kept(draft: &Draft, counts: &Counts, observed: &ObservedCounts, complete: bool) -> usize {
    let spec = &draft.snapshot.pool.spec;
    if complete || (observed.old() == 0 && draft.revisions.previous.is_none()) {
        return 0;
    }
    let paused = counts.updated_to_keep.unwrap_or(spec.replicas);
    spec.partition.max(spec.replicas.saturating_sub(paused))
}
