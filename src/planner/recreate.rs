//! Phase *recreate*: removes leaving and outdated sandboxes, as far as the budget allows.

use crate::api::pool::UpdateStrategyType;
use crate::planner::desired_counts::Counts;
use crate::planner::draft::Draft;
use crate::planner::evict;
use crate::planner::remove::Limit;
use crate::planner::rolling_update::{remove_old, roll};

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
