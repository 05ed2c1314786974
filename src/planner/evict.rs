//! Phase *evict*: unclaimed sandboxes that cannot or shall not stay.

use crate::model::sandbox::PodPhase;
use crate::planner::draft::{Draft, Limit};
use crate::planner::{Phase, Step, warm_up};

/// Deletes sandboxes that have ended (they would fill the pool for ever), those that do not become available,
/// and, within the budget, those whose replacement a user asked for with the label `warmpool.dev/evict`.
pub(crate) fn run(draft: &mut Draft) {
    for sandbox in std::mem::take(&mut draft.finished) {
        let reason = if sandbox.phase == PodPhase::Failed {
            "PodFailed"
        } else {
            "PodSucceeded"
        };
        if sandbox.came_to_nothing(draft.snapshot.pool.spec.warm_up) {
            warm_up::note_warm_up_failure(draft, &sandbox.revision, sandbox.not_running_reason.clone());
        }
        draft.discard(Phase::Eviction, reason, sandbox);
    }
    release_drained(draft);
    warm_up::give_up_overdue(draft);
    draft.remove(
        Phase::Eviction,
        "EvictRequested",
        usize::MAX,
        Limit::Budget,
        |unclaimed| unclaimed.sandbox.evict,
    );
}

/// Deletes draining sandboxes whose preDelete hooks have all been taken off.
fn release_drained(draft: &mut Draft) {
    let pre_delete = &draft.snapshot.pool.spec.pre_delete;
    let (held, free): (Vec<_>, Vec<_>) = std::mem::take(&mut draft.draining)
        .into_iter()
        .partition(|sandbox| pre_delete.any_on(sandbox));
    draft.draining = held;
    for sandbox in free {
        draft.act(Phase::Eviction, "Drained", Step::DeletePod { sandbox });
    }
}
