//! Phase *evict*: which unclaimed sandboxes are leaving, and how many of them may go now.

use crate::cache::snapshot::Creation;
use crate::model::leaving::LeavingReason;
use crate::model::sandbox::PodPhase;
use crate::planner::actions::{PlanPhase, Step};
use crate::planner::desired_counts::Counts;
use crate::planner::draft::{Draft, Limit};
use crate::planner::leave_nodes;
use crate::planner::unclaimed_sandbox::UnclaimedSandbox;
use crate::planner::warm_up_backoff;
use smol_str::SmolStr;
use std::collections::BTreeSet;

/// Marks sandboxes that are leaving, because a user asked for it or because of their node, sandboxes that did not become
/// available in their time, and draining sandboxes that no preDelete hook holds any more. Nothing is removed here, so that
/// claims are served before the budget is spent. Sandboxes that have ended stand in [`Draft::finished`] from the beginning.
pub(crate) fn mark(draft: &mut Draft) {
    leave_nodes::mark(draft);
    let snapshot = draft.snapshot;
    let spec = &snapshot.pool.spec;
    let mut deadlines = Vec::new();
    for unclaimed in &mut draft.unclaimed {
        let sandbox = unclaimed.sandbox;
        // Another try would not change that no node has room, and nothing that is deleted on a node that is not ready would end.
        let is_held =
            sandbox.scheduling.waits_for_node() || unclaimed.is_leaving_for(LeavingReason::NodeNotReady);
        if !unclaimed.available && sandbox.available_at(&spec.availability_rule).is_none() && !is_held {
            let deadline = sandbox.overdue_at(spec.warm_up);
            unclaimed.overdue = deadline <= snapshot.now;
            deadlines.push(deadline);
        }
    }
    for deadline in deadlines {
        draft.wake(deadline);
    }
    (draft.draining, draft.drained) = std::mem::take(&mut draft.draining)
        .into_iter()
        .partition(|sandbox| spec.pre_delete.any_on(sandbox));
}

/// Removes what [`mark`] has marked, once claims are served: at once what is no use to a claim, within the budget what a user
/// asked for, and what has to leave its node once it is replaced.
pub(crate) fn remove_leaving(draft: &mut Draft) {
    remove_finished(draft);
    for sandbox in std::mem::take(&mut draft.drained) {
        draft.act(PlanPhase::Eviction, "Drained", Step::DeletePod { sandbox });
    }
    give_up_overdue(draft);
    draft.remove(
        PlanPhase::Eviction,
        "EvictRequested",
        usize::MAX,
        Limit::Budget,
        |unclaimed| unclaimed.evict_requested(),
    );
    leave_nodes::remove(draft);
}

/// Deletes sandboxes that have ended. They would fill the pool for ever.
fn remove_finished(draft: &mut Draft) {
    for sandbox in std::mem::take(&mut draft.finished) {
        let reason = if sandbox.phase == PodPhase::Failed {
            "PodFailed"
        } else {
            "PodSucceeded"
        };
        if sandbox.came_to_nothing(draft.snapshot.pool.spec.warm_up) {
            warm_up_backoff::note_warm_up_failure(
                draft,
                &sandbox.revision,
                sandbox.not_running_reason.clone(),
            );
        }
        draft.discard(PlanPhase::Eviction, reason, sandbox);
    }
}

/// Gives up the sandboxes that are overdue: of each revision as many as may be created anew now.
fn give_up_overdue(draft: &mut Draft) {
    let overdue = draft.unclaimed.iter().filter(|u| u.overdue);
    let revisions: BTreeSet<SmolStr> = overdue.map(|u| u.sandbox.revision.clone()).collect();
    if !revisions.is_empty() {
        draft.order();
    }
    for revision in revisions {
        let rest = warm_up_backoff::width(draft, &revision).saturating_sub(to_be_replaced(draft));
        let count = warm_up_backoff::max_creatable(draft, &revision).min(rest);
        let of = |unclaimed: &UnclaimedSandbox| unclaimed.overdue && unclaimed.sandbox.revision == revision;
        let overdue = draft.unclaimed.iter().filter(|unclaimed| of(unclaimed));
        // A sandbox whose node has to go says nothing of its revision.
        let failed = overdue.filter(|unclaimed| !unclaimed.leaves_node());
        let reasons: Vec<_> = failed
            .map(|failed| failed.sandbox.not_running_reason.clone())
            .collect();
        let removed = draft.remove(PlanPhase::Eviction, "WarmUpDeadline", count, Limit::Budget, of);
        if removed > 0 && !reasons.is_empty() {
            let reason = reasons.into_iter().flatten().next();
            warm_up_backoff::note_warm_up_failure(draft, &revision, reason);
        }
    }
}

/// Sandboxes given up before, which are replaced first. Where nothing may be created, an overdue sandbox is not kept for
/// that reason: it may be what takes up the capacity.
fn to_be_replaced(draft: &Draft) -> usize {
    if draft.snapshot.creation != Creation::Open {
        return 0;
    }
    let counts = Counts::of(draft);
    counts.creatable_of(counts.desired)
}
