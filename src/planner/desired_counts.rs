//! The numbers that decide how far a plan may go.

use crate::api::pool::UpdateStrategyType;
use crate::model::rollout_budget::RolloutBudget;
use crate::planner::draft::Draft;
use crate::planner::leave_nodes;
use crate::planner::paused_split::{self, Staying};
use crate::planner::unclaimed_sandbox::UnclaimedSandbox;

/// Numbers of unclaimed sandboxes as the draft stands. A phase counts again after it has removed or restored some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    /// `maxUnavailable` and `maxSurge` as they count beside what is claimed.
    pub(crate) budget: RolloutBudget,
    /// What `maxTotal` allows beside the claimed sandboxes; `usize::MAX` without a bound.
    pub(crate) total_capacity_left: usize,
    /// What `maxTotal` allows to be created beside every pod that exists; `usize::MAX` without a bound.
    pub(crate) total_headroom: usize,
    /// Sandboxes that will be there once the watch has shown every write in flight.
    pub(crate) present: usize,
    /// Of `present`, the sandboxes of the update revision.
    pub(crate) updated: usize,
    /// Of `present`, the sandboxes of old revisions.
    pub(crate) old: usize,
    /// Of `updated`, the sandboxes that are not available, creations in flight included.
    pub(crate) updated_warming: usize,
    /// Wanted sandboxes, whatever `maxTotal` allows: `replicas` and the demand of waiting claims, and never fewer than
    /// `minTotal` leaves to the unclaimed. What a claim for the update revision waits for comes on top of the old
    /// sandboxes that stay.
    pub(crate) desired: usize,
    /// Old sandboxes that would be there without the claims that only the update revision can serve.
    pub(crate) max_old: usize,
    /// Sandboxes above which the pool is trimmed, the surge not included.
    pub(crate) max_present: usize,
    /// Sandboxes that stay on an old revision: the partition, and what a paused rollout has not replaced.
    pub(crate) kept: usize,
    /// Sandboxes of the update revision that a paused rollout keeps; `None` while none is paused.
    pub(crate) updated_to_keep: Option<usize>,
    /// Old sandboxes above `kept`, without those that are leaving, which go by themselves.
    pub(crate) surplus_old: usize,
    /// Old sandboxes to be replaced in the end.
    pub(crate) to_replace: usize,
    /// Old sandboxes to be made, because fewer are left than stay, or will be once those that are leaving have gone.
    pub(crate) missing_old: usize,
    /// Sandboxes wanted above `desired` now, so that replacements are available before others go.
    pub(crate) surge: usize,
    /// Sandboxes that may start to warm up now under `scaleStrategy.maxUnavailable`.
    pub(crate) warming_headroom: usize,
    /// Sandboxes of the update revision that may be created before the first of them has been available. What claims
    /// take meanwhile is made up from the revision that works, so a template that never becomes ready cannot empty the
    /// pool. `usize::MAX` once it has been available.
    pub(crate) unproven_headroom: usize,
    /// More sandboxes of the old revision that would serve anything. A claim that only the update revision can serve
    /// gains nothing by one, and neither does the surge of the rollout.
    pub(crate) useful_old: usize,
}

impl Counts {
    /// Counts the sandboxes of a draft.
    pub(crate) fn of(draft: &Draft) -> Self {
        let spec = &draft.snapshot.pool.spec;
        let creating = draft.snapshot.creating.len();
        let creating_updated = draft.creating_updated();
        let unclaimed = || draft.unclaimed.iter();
        let budget = spec.rollout_budget(draft.claimed + draft.set_aside.len());
        let total_capacity_left = spec.total_capacity_left(draft.claimed);

        let present = draft.unclaimed.len() + creating + draft.returning;
        let updated = unclaimed().filter(|u| u.updated).count() + creating_updated + draft.returning_updated;
        let old = present - updated;
        let warming = unclaimed().filter(|u| !u.available && !u.leaves_node()).count() + creating;
        let updated_warming = unclaimed().filter(|u| u.updated && !u.available).count() + creating_updated;
        // Where a drain has no capacity for a replacement, a sandbox that leaves its node stays for now, so it may be
        // rolled.
        let may_surge = total_capacity_left > spec.replicas;
        let leaves = |u: &&UnclaimedSandbox| u.evict_requested() || (may_surge && u.leaves_node());
        let old_leaving = unclaimed().filter(|u| !u.updated).filter(leaves).count();

        let desired_for =
            |demand: usize| (spec.replicas + demand).max(spec.min_total.saturating_sub(draft.claimed));
        let without_latest = desired_for(draft.demand - draft.demand_latest);
        let max_old = spec.max_warm.max(without_latest).min(total_capacity_left);
        let beside_old = match draft.demand_latest {
            0 => 0,
            latest => old.min(max_old) + latest,
        };
        let desired = desired_for(draft.demand).max(beside_old);
        let max_present = spec.max_warm.max(desired).min(total_capacity_left);

        let fitting = desired.min(total_capacity_left);
        let wanted = present.clamp(fitting, max_present.max(fitting));
        let rolling = old > 0 || draft.revisions.previous.is_some();
        let updated_to_keep = (rolling && spec.paused).then(|| {
            let staying = Staying {
                present: present - unclaimed().filter(|u| !u.stays()).count(),
                updated: updated - unclaimed().filter(|u| u.updated && !u.stays()).count(),
            };
            paused_split::updated_to_keep(draft, &staying, max_present)
        });
        let kept = match (rolling, updated_to_keep) {
            (false, _) => 0,
            // A claim for the update revision gets a sandbox of it even here, and no old sandbox is made for it.
            (true, Some(updated)) => spec.partition.max(wanted.saturating_sub(updated).min(max_old)),
            (true, None) => spec.partition,
        };
        // A leaving sandbox goes by itself, beside the sandboxes that stay. Replacing another sandbox for it would
        // remove its replacement.
        let going = if kept > 0 { old_leaving } else { 0 };
        let surplus_old = old.saturating_sub(kept + going);
        // Claims will soon take about as many updated sandboxes as they took recently. These updated sandboxes replace
        // no old sandbox.
        let recently_claimed = draft.snapshot.recent_claims.len();
        let to_replace = if recently_claimed > 0 {
            surplus_old
        } else {
            surplus_old.min(wanted.saturating_sub(kept).saturating_sub(updated))
        };
        let rolls = spec.strategy == UpdateStrategyType::RollingUpdate && !spec.paused && to_replace > 0;
        let for_update = if rolls { to_replace + recently_claimed } else { 0 };
        let surge = budget
            .max_surge
            .min(for_update.max(surge_for_evictions(draft, budget.max_unavailable)))
            .max(leave_nodes::surge(draft));

        let claims_of_update = draft
            .revisions
            .previous
            .as_ref()
            .map_or(0, |_| draft.demand_latest);
        let old_with_unconfirmed = old + draft.unconfirmed - draft.unconfirmed_unproven;
        let trusted = draft.proven
            || draft.revisions.previous.is_none()
            || spec.strategy == UpdateStrategyType::Recreate;
        Self {
            budget,
            total_capacity_left,
            total_headroom: spec
                .max_total
                .map_or(usize::MAX, |max| max.saturating_sub(draft.existing)),
            present,
            updated,
            old,
            updated_warming,
            desired,
            max_old,
            max_present,
            kept,
            updated_to_keep,
            surplus_old,
            to_replace,
            missing_old: kept.saturating_sub(old - old_leaving),
            surge,
            warming_headroom: spec.warming_ceiling(desired, surge).saturating_sub(warming),
            unproven_headroom: if trusted {
                usize::MAX
            } else {
                spec.rollout_width()
                    .saturating_sub(updated_warming + draft.unconfirmed_unproven)
            },
            useful_old: desired.saturating_sub(claims_of_update + old_with_unconfirmed),
        }
    }

    /// `unclaimed` sandboxes, as far as `maxTotal` allows them beside the claimed ones.
    pub(crate) fn within_total(&self, unclaimed: usize) -> usize {
        unclaimed.min(self.total_capacity_left)
    }

    /// How many of the sandboxes that are missing of `wanted` may be created now, if the API server accepts them.
    pub(crate) fn creatable_of(&self, wanted: usize) -> usize {
        let missing = self.within_total(wanted).saturating_sub(self.present);
        missing.min(self.warming_headroom).min(self.max_creatable())
    }

    /// How many of the wanted sandboxes that are missing the two revisions allow to be created now.
    pub(crate) fn max_creatable(&self) -> usize {
        self.unproven_headroom.saturating_add(self.useful_old)
    }
}

/// Evictions still to come that the budget does not allow without a replacement.
fn surge_for_evictions(draft: &Draft, max_unavailable: usize) -> usize {
    let evicted = draft.unclaimed.iter().filter(|u| u.evict_requested()).count();
    let warming = draft
        .unclaimed
        .iter()
        .filter(|u| !u.evict_requested() && !u.available)
        .count();
    let unavailable = warming + draft.snapshot.creating.len() + draft.unconfirmed;
    (unavailable + evicted)
        .saturating_sub(max_unavailable)
        .min(evicted)
}
