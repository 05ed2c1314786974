//! Phase *evict*: marks the unclaimed sandboxes that are leaving.

use crate::planner::draft::Draft;

/// Marks sandboxes whose replacement a user asked for with the label `warmpool.dev/evict`, sandboxes that did not become
/// available in their time, and draining sandboxes that no preDelete hook holds any more. Nothing is removed here, so that
/// claims are served before the budget is spent. Sandboxes that have ended stand in [`Draft::finished`] from the beginning.
pub(crate) fn mark(draft: &mut Draft) {
    let snapshot = draft.snapshot;
    let spec = &snapshot.pool.spec;
    let mut deadlines = Vec::new();
    for unclaimed in &mut draft.unclaimed {
        let sandbox = &unclaimed.sandbox;
        unclaimed.evict_requested = sandbox.evict;
        if sandbox.available_at(&spec.availability_rule).is_none() {
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
