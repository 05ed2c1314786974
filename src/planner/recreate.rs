//! Phase *recreate*: removes leaving and outdated sandboxes, as far as the budget allows.

use crate::api::pool::UpdateStrategyType;
use crate::planner::actions::PlanPhase;
use crate::planner::desired_counts::Counts;
use crate::planner::draft::{Draft, Limit};
use crate::planner::evict;
use crate::planner::leave_nodes;

/// Removes sandboxes that are leaving, then old sandboxes as the update strategy allows. The phase *scale* makes their
/// replacements. Returns the surge that the rollout wanted before the old sandboxes went.
pub(crate) fn run(draft: &mut Draft) -> usize {
    evict::remove_leaving(draft);
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

/// Replaces as many old sandboxes as new ones are missing, in the order of removal, and stops when
///
/// - the new sandboxes not yet available, with those being replaced now, reach `maxUnavailable` and what is there above
///   the wanted number. So a revision that never becomes ready cannot eat the pool, not even sandboxes that are broken
///   already.
/// - removing an available one would leave fewer than have to stay
///   ([`crate::model::resolved_pool_spec::ResolvedPoolSpec::min_available_beside`]).
fn roll(draft: &mut Draft, counts: &Counts) {
    let wanted = counts.within_total(counts.desired);
    // Where the wanted sandboxes fill `maxTotal`, no surge could ever go first. One at a time is replaced then, as far as
    // the budget lets it.
    let is_full = counts.within_total(counts.desired + 1) == wanted;
    let max_unavailable = counts.budget.max_unavailable.max(usize::from(is_full));
    // Where more sandboxes leave their nodes than the rollout may have extra, their replacements stand above its surge. To
    // replace an old sandbox for each would delete what has just been made.
    let replacements = leave_nodes::surge(draft).saturating_sub(counts.budget.max_surge);
    let to_stay = wanted + replacements.min(counts.present.saturating_sub(wanted));
    let max_replaced = (max_unavailable + counts.present).saturating_sub(to_stay + counts.updated_warming);
    let count = counts.to_replace.min(max_replaced);
    remove_old(draft, count, Limit::Budget);
}

fn remove_old(draft: &mut Draft, count: usize, limit: Limit) {
    draft.remove(PlanPhase::Recreate, "OldRevision", count, limit, |unclaimed| {
        !unclaimed.updated
    });
}
