//! Phase *scale*: trims or creates unclaimed sandboxes until there are as many as wanted.

use crate::cache::snapshot::Creation;
use crate::model::sandbox::Sandbox;
use crate::planner::counts::Counts;
use crate::planner::draft::{Draft, Limit};
use crate::planner::plan::{PlanPhase, Shortfall, Step, WaitsFor};
use crate::planner::warm_up;

/// Most creations of one pool in flight, as for a ReplicaSet (`BurstReplicas`). However many are wanted, one pool takes no
/// more of the memory that all pools share.
pub const BURST_REPLICAS: usize = 500;

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
        trim_old(draft, stale);
    } else if excess > 0 {
        trim(draft, &counts, excess);
        // `maxTotal` is a bound on what the pool costs, and no budget stands above it.
        let left = Counts::of(draft);
        let over_total = left.present.saturating_sub(left.total_capacity_left);
        draft.remove(PlanPhase::Scale, "AboveMaxTotal", over_total, Limit::None, |_| {
            true
        });
    } else {
        create(draft, &counts);
    }
}

/// Old sandboxes that do not stay go first, then updated sandboxes while a partition keeps the old. If the budget does not
/// let an old sandbox go yet, no updated sandbox that is still warming is deleted in its place.
fn trim(draft: &mut Draft, counts: &Counts, excess: usize) {
    let of_old = excess.min(counts.old.saturating_sub(counts.kept));
    trim_old(draft, of_old);
    let of_updated = if counts.kept > 0 {
        (excess - of_old).min(counts.updated)
    } else {
        0
    };
    let rest = excess - of_old - of_updated;
    draft.remove(
        PlanPhase::Scale,
        "AboveMaxWarm",
        of_updated,
        Limit::Budget,
        |unclaimed| unclaimed.updated,
    );
    draft.remove(PlanPhase::Scale, "AboveMaxWarm", rest, Limit::Budget, |_| true);
}

fn trim_old(draft: &mut Draft, count: usize) {
    draft.remove(
        PlanPhase::Scale,
        "AboveMaxWarm",
        count,
        Limit::Budget,
        |unclaimed| !unclaimed.updated,
    );
}

fn create(draft: &mut Draft, counts: &Counts) {
    // What is being deleted counts as present until the API server has confirmed that.
    let present = counts.present + draft.unconfirmed;
    let missing = (counts.desired + counts.surge).saturating_sub(present);
    // A restored sandbox above `maxTotal` would be trimmed again at once.
    let fit = counts.total_capacity_left.saturating_sub(counts.present);
    let of_old = missing.min(fit).min(counts.missing_old);
    let old_back = restore(draft, of_old, |updated| !updated);
    let back = old_back + restore(draft, missing.min(fit) - of_old, |updated| updated);
    let (missing, present) = (missing - back, present + back);
    // Draining sandboxes are restored, so the draft is counted anew.
    let after = Counts::of(draft);
    draft.shortfall = Shortfall {
        missing,
        total_headroom: after.total_headroom,
        warming_headroom: after.warming_headroom,
    };
    draft.forbidden = after
        .desired
        .saturating_sub(present)
        .saturating_sub(after.total_headroom);
    let burst_left = BURST_REPLICAS.saturating_sub(draft.snapshot.creating.len());
    let headroom = after.total_headroom.min(after.warming_headroom).min(burst_left);
    let count = allowed_now(draft, missing.min(headroom));
    if count == 0 {
        return;
    }
    let reason = if draft.demand > 0 { "Demand" } else { "Refill" };
    let missing_old = counts.missing_old - old_back;
    let updated = count.saturating_sub(missing_old).min(after.unproven_headroom);
    let old = (count - updated).min(missing_old.max(after.useful_old));
    let update = draft.revisions.update.hash.clone();
    let previous = draft.revisions.previous.as_ref();
    let previous = previous.map_or(update.clone(), |previous| previous.hash.clone());
    let mut fresh_name = draft.fresh_names();
    let mut sent = draft.snapshot.creating.iter().filter(|c| !c.is_answered).count();
    for (share, revision) in [(updated, update), (old, previous)] {
        // If a revision fails to come up, its share is not made from the other revision: the rollout would only delete
        // those sandboxes again.
        for _ in 0..share.min(warm_up::max_creatable(draft, &revision)) {
            let step = Step::CreatePod {
                name: fresh_name(&revision),
                revision: revision.clone(),
            };
            let waits_for = if draft.revisions.store.is_some() {
                Some(WaitsFor::RevisionStored)
            } else if sent > 0 && !draft.snapshot.creation_proven {
                Some(WaitsFor::FirstPodCreated)
            } else {
                None
            };
            sent += 1;
            draft.act_once(PlanPhase::Scale, reason, step, waits_for);
        }
    }
}

/// Makes up to `count` draining sandboxes warm again instead of creating new ones, if every preDelete hook is still on them
/// and they did not drain for their own sake. Returns how many.
fn restore(draft: &mut Draft, count: usize, of: impl Fn(bool) -> bool) -> usize {
    let (snapshot, update) = (draft.snapshot, &draft.revisions.update.hash);
    let spec = &snapshot.pool.spec;
    let wanted = |sandbox: &Sandbox| {
        let overdue = sandbox.up_at(&spec.availability_rule).is_none()
            && sandbox.overdue_at(spec.warm_up) <= snapshot.now;
        let worn = sandbox.evict || sandbox.finished() || overdue;
        of(sandbox.revision == *update) && !worn && spec.pre_delete.all_on(sandbox)
    };
    let back: Vec<_> = draft
        .draining
        .iter()
        .filter(|s| wanted(s))
        .take(count)
        .cloned()
        .collect();
    draft.draining.retain(|s| !back.iter().any(|b| b.uid == s.uid));
    let restored = back.len();
    for sandbox in back {
        draft.expect_to_return(&sandbox);
        draft.act(PlanPhase::Scale, "WantedAgain", Step::RestorePod { sandbox });
    }
    restored
}

/// After a rejected create nothing is created until the backoff ends, then one pod to find out.
fn allowed_now(draft: &Draft, count: usize) -> usize {
    match draft.snapshot.creation {
        Creation::Open => count,
        Creation::BackOff { until, .. } if until > draft.snapshot.now => 0,
        Creation::BackOff { .. } if draft.snapshot.creating.is_empty() => count.min(1),
        Creation::BackOff { .. } => 0,
    }
}
