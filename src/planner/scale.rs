//! Phase *scale*: trims or creates unclaimed sandboxes until there are as many as wanted.

use crate::planner::actions::PlanPhase;
use crate::planner::create::create_missing;
use crate::planner::desired_counts::Counts;
use crate::planner::draft::Draft;
use crate::planner::remove::Limit;

/// Trims what is above the upper bound, or creates what is missing. `surge` is what the rollout wanted before this
/// plan removed old sandboxes: their replacements may be made at once, and not only when they are gone.
pub(crate) fn run(draft: &mut Draft, surge: usize) {
    // The phase *recreate* has removed sandboxes, so the draft is counted anew.
    let mut counts = Counts::of(draft);
    counts.surge = counts.surge.max(surge);
    let excess = counts
        .present
        .saturating_sub(counts.within_total(counts.max_present + counts.surge));
    // Old sandboxes that take the place of what claims for the update revision wait for.
    let stale = match draft.demand_latest {
        0 => 0,
        _ => counts.old.saturating_sub(counts.max_old + counts.surge),
    };
    if stale > excess {
        trim_old(draft, stale, Limit::Budget);
    } else if excess > 0 {
        trim(draft, &counts, excess);
        // `maxTotal` limits the cost of the pool, so it overrides the budget.
        let left = Counts::of(draft);
        let over_total = left.present.saturating_sub(left.total_capacity_left);
        draft.remove(PlanPhase::Scale, "AboveMaxTotal", over_total, Limit::None, |_| {
            true
        });
    } else {
        create_missing(draft, &counts);
    }
}

/// Old sandboxes that do not stay go first, then updated sandboxes while a partition keeps the old. If the budget does
/// not let an old sandbox go yet, no updated sandbox that is still warming is deleted in its place.
fn trim(draft: &mut Draft, counts: &Counts, excess: usize) {
    let limit = trim_limit(draft, counts);
    let of_old = excess.min(counts.old.saturating_sub(counts.kept));
    trim_old(draft, of_old, limit);
    let of_updated = if counts.kept > 0 {
        (excess - of_old).min(counts.updated)
    } else {
        0
    };
    let rest = excess - of_old - of_updated;
    let reason = reason(draft);
    draft.remove(PlanPhase::Scale, reason, of_updated, limit, |unclaimed| {
        unclaimed.updated
    });
    draft.remove(PlanPhase::Scale, reason, rest, limit, |_| true);
}

/// Why sandboxes are trimmed: the pool has more than `capacity.maxWarm`, or simply more than it wants.
fn reason(draft: &Draft) -> &'static str {
    let spec = &draft.snapshot.pool.spec;
    if spec.max_warm > spec.replicas {
        "AboveMaxWarm"
    } else {
        "ScaledDown"
    }
}

/// The limit of a trim. While a creation is in flight, all wanted sandboxes stay available: the new sandbox cannot be
/// removed yet, but is worth less than an available sandbox, so a later plan removes it, as when a cordon is undone at
/// once.
fn trim_limit(draft: &Draft, counts: &Counts) -> Limit {
    if draft.snapshot.creating.is_empty() {
        Limit::Budget
    } else {
        Limit::AtLeast(counts.within_total(counts.desired))
    }
}

fn trim_old(draft: &mut Draft, count: usize, limit: Limit) {
    let reason = reason(draft);
    draft.remove(PlanPhase::Scale, reason, count, limit, |unclaimed| {
        !unclaimed.updated
    });
}
