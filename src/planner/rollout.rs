//! How far a rollout is and how far it may go now: the numbers that the phases *recreate* and *scale* share.

use crate::api::pool::UpdateStrategyType;
use crate::planner::draft::Draft;

/// A rollout, in unclaimed sandboxes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rollout {
    /// Sandboxes of old revisions, creations on their way included.
    pub(crate) old: usize,
    /// Of those, the ones that are to be evicted and have not gone yet.
    evicting: usize,
    /// Sandboxes of the update revision, creations on their way included.
    pub(crate) new: usize,
    /// Sandboxes that shall stay on an old revision.
    pub(crate) kept: usize,
    /// Old sandboxes that are more than shall stay, those to be evicted aside that go by themselves.
    pub(crate) too_many: usize,
    /// Sandboxes wanted, surge not included: as many as there are, between the wanted number and the one
    /// above which the pool is trimmed.
    pub(crate) wanted: usize,
    /// Old sandboxes to be replaced in the end.
    pub(crate) to_replace: usize,
    /// Sandboxes wanted above `wanted` now, so that replacements are available before others go.
    pub(crate) surge: usize,
}

impl Rollout {
    /// The rollout as the draft stands now.
    pub(crate) fn of(draft: &Draft) -> Self {
        let spec = &draft.snapshot.pool.spec;
        let (active, old) = (draft.active(), draft.old());
        let new = active - old;
        let evicting = draft
            .unclaimed
            .iter()
            .filter(|i| !i.updated && i.sandbox.evict)
            .count();
        let desired = draft.within_total(draft.desired());
        let wanted = active.clamp(desired, draft.upper().max(desired));
        let rolling = old > 0 || draft.revisions.previous.is_some();
        let kept = match (rolling, spec.paused) {
            (false, _) => 0,
            // What a claim for the update revision waits for is not made up from old ones: there it is made all the same,
            // since the old template is gone.
            (true, true) => {
                let old = wanted.saturating_sub(new).min(draft.upper_of_old());
                spec.partition.max(old)
            }
            (true, false) => spec.partition,
        };
        let missing = wanted.saturating_sub(kept).saturating_sub(new);
        // Beside those that shall stay, one to be evicted goes by itself: to replace one more would take away what was made
        // in its place.
        let going = if kept > 0 { evicting } else { 0 };
        let too_many = old.saturating_sub(kept + going);
        // The claims of the next while are served from the new ones, as those of the last while were: as many new ones
        // replace no old one.
        let taken = draft.snapshot.recent_claims.len();
        let to_replace = if taken > 0 {
            too_many
        } else {
            too_many.min(missing)
        };
        let rolls = spec.strategy == UpdateStrategyType::RollingUpdate && !spec.paused;
        let for_update = if rolls && to_replace > 0 {
            to_replace + taken
        } else {
            0
        };
        let surge = draft
            .rollout_budget()
            .max_surge
            .min(for_update.max(for_evictions(draft)));
        Self {
            old,
            evicting,
            new,
            kept,
            too_many,
            wanted,
            to_replace,
            surge,
        }
    }

    /// Sandboxes that are to be made from the old revision, because fewer are left than shall stay, or will be once
    /// the evicted ones have gone.
    pub(crate) fn old_missing(&self) -> usize {
        self.kept.saturating_sub(self.old - self.evicting)
    }
}

/// Evictions still to come that the budget does not allow without a replacement.
fn for_evictions(draft: &Draft) -> usize {
    let evicted = draft.unclaimed.iter().filter(|i| i.sandbox.evict).count();
    let warming = draft
        .unclaimed
        .iter()
        .filter(|i| !i.sandbox.evict && !i.available)
        .count();
    let unavailable = warming + draft.snapshot.creating.len() + draft.leaving;
    (unavailable + evicted)
        .saturating_sub(draft.rollout_budget().max_unavailable)
        .min(evicted)
}
