//! Phase *recreate*: sandboxes of old revisions are deleted as the update strategy allows; the phase *scale*
//! makes up for them with the update revision.

use crate::api::pool::UpdateStrategyType;
use crate::planner::Phase;
use crate::planner::draft::{Draft, Limit};
use crate::planner::rollout::Rollout;

/// Deletes old sandboxes that shall not stay. Returns the surge that the rollout wanted before they went.
pub(crate) fn run(draft: &mut Draft) -> usize {
    if draft.snapshot.pool.spec.paused {
        return 0;
    }
    match draft.snapshot.pool.spec.strategy {
        UpdateStrategyType::RollingUpdate => roll(draft),
        UpdateStrategyType::Recreate => {
            let count = Rollout::of(draft).too_many;
            draft.remove(Phase::Recreate, "OldRevision", count, Limit::None, |unclaimed| {
                !unclaimed.updated
            });
            0
        }
        UpdateStrategyType::OnReplenish => 0,
    }
}

/// Replaces as many old sandboxes as new ones are missing, old ones in the order of removal, and stops when
///
/// - the new ones not yet available, with those being replaced now, reach `maxUnavailable` and what is there
///   above the wanted number (so that a revision that never becomes ready cannot eat the pool, not even
///   sandboxes that are broken already), or
/// - taking an available one would leave fewer than have to stay ([`crate::model::pool_spec::ResolvedPoolSpec::min_available_beside`]).
fn roll(draft: &mut Draft) -> usize {
    let rollout = Rollout::of(draft);
    let desired = draft.within_total(draft.desired());
    // Where the wanted sandboxes fill `maxTotal`, no surge could ever go first. One at a time is replaced then, as far as the
    // budget lets it.
    let is_full = draft.within_total(draft.desired() + 1) == desired;
    let max_unavailable = draft.rollout_budget().max_unavailable.max(usize::from(is_full));
    let room = (max_unavailable + draft.active()).saturating_sub(desired + draft.updated_unavailable());
    let count = rollout.to_replace.min(room);
    draft.remove(
        Phase::Recreate,
        "OldRevision",
        count,
        Limit::Budget,
        |unclaimed| !unclaimed.updated,
    );
    rollout.surge
}
