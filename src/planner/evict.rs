//! Phase *evict*: which unclaimed sandboxes are leaving, and how many of them may go now.

use crate::model::leaving_reason::LeavingReason;
use crate::model::sandbox::PodPhase;
use crate::planner::actions::{PlanPhase, Step};
use crate::planner::draft::Draft;
use crate::planner::give_up_overdue::give_up_overdue;
use crate::planner::leave_nodes;
use crate::planner::remove::Limit;
use crate::planner::warm_up_backoff;

/// Marks sandboxes that are leaving, because a user requested it or because of their node, sandboxes that did not
/// become available in their time, and draining sandboxes that no preDelete hook holds any more. Nothing is removed
/// here, so that claims are served before the budget is spent. Sandboxes that have ended stand in [`Draft::finished`]
/// from the beginning.
pub(crate) fn mark(draft: &mut Draft) {
    leave_nodes::mark(draft);
    let snapshot = draft.snapshot;
    let spec = &snapshot.pool.spec;
    let mut deadlines = Vec::new();
    for unclaimed in &mut draft.unclaimed {
        let sandbox = unclaimed.sandbox;
        // A replacement would find no node either, and a deletion on a node that is not ready would not finish.
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

/// Removes what [`mark`] has marked, once claims are served. Sandboxes that no claim can use go at once, those that a
/// user wants replaced go within the budget, and those that leave their nodes go once they are replaced.
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
        if sandbox.failed_to_warm_up(draft.snapshot.pool.spec.warm_up) {
            warm_up_backoff::note_warm_up_failure(
                draft,
                &sandbox.revision,
                sandbox.not_running_reason.clone(),
            );
        }
        draft.discard(PlanPhase::Eviction, reason, sandbox);
    }
}
