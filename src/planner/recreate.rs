//! Phase *recreate*: removes leaving and outdated sandboxes, as far as the budget allows.

use crate::api::pool::UpdateStrategyType;
use crate::model::sandbox::PodPhase;
use crate::planner::counts::Counts;
use crate::planner::draft::{Draft, Limit};
use crate::planner::plan::{PlanPhase, Step};
use crate::planner::warm_up;

/// Removes sandboxes that are leaving, then old sandboxes as the update strategy allows. The phase *scale* makes their
/// replacements. Returns the surge that the rollout wanted before the old sandboxes went.
pub(crate) fn run(draft: &mut Draft) -> usize {
    remove_leaving(draft);
    if draft.snapshot.pool.spec.paused {
        return 0;
    }
    // The leaving sandboxes have left the draft, so it is counted anew.
    let counts = Counts::of(draft);
    match draft.snapshot.pool.spec.strategy {
        UpdateStrategyType::RollingUpdate => {
            roll(draft, &counts);
            counts.surge
        }
        UpdateStrategyType::Recreate => {
            remove_old(draft, counts.surplus_old, Limit::None);
            0
        }
        UpdateStrategyType::OnReplenish => 0,
    }
}

/// Removes what the phase *evict* has marked: at once what is no use to a claim, within the budget what a user asked for.
fn remove_leaving(draft: &mut Draft) {
    remove_finished(draft);
    for sandbox in std::mem::take(&mut draft.drained) {
        draft.act(PlanPhase::Eviction, "Drained", Step::DeletePod { sandbox });
    }
    warm_up::give_up_overdue(draft);
    draft.remove(
        PlanPhase::Eviction,
        "EvictRequested",
        usize::MAX,
        Limit::Budget,
        |unclaimed| unclaimed.evict_requested,
    );
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
            warm_up::note_warm_up_failure(draft, &sandbox.revision, sandbox.not_running_reason.clone());
        }
        draft.discard(PlanPhase::Eviction, reason, sandbox);
    }
}

/// Replaces as many old sandboxes as new ones are missing, in the order of removal, and stops when
///
/// - the new sandboxes not yet available, with those being replaced now, reach `maxUnavailable` and what is there above
///   the wanted number. So a revision that never becomes ready cannot eat the pool, not even sandboxes that are broken
///   already.
/// - removing an available one would leave fewer than have to stay
///   ([`crate::model::pool_spec::ResolvedPoolSpec::min_available_beside`]).
fn roll(draft: &mut Draft, counts: &Counts) {
    let wanted = counts.within_total(counts.desired);
    // Where the wanted sandboxes fill `maxTotal`, no surge could ever go first. One at a time is replaced then, as far as
    // the budget lets it.
    let is_full = counts.within_total(counts.desired + 1) == wanted;
    let max_unavailable = counts.budget.max_unavailable.max(usize::from(is_full));
    let max_replaced = (max_unavailable + counts.present).saturating_sub(wanted + counts.updated_warming);
    let count = counts.to_replace.min(max_replaced);
    remove_old(draft, count, Limit::Budget);
}

fn remove_old(draft: &mut Draft, count: usize, limit: Limit) {
    draft.remove(PlanPhase::Recreate, "OldRevision", count, limit, |unclaimed| {
        !unclaimed.updated
    });
}
