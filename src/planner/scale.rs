//! Phase *scale*: the number of unclaimed sandboxes is brought to the wanted one.

use crate::api::pool::UpdateStrategyType;
use crate::cache::snapshot::Creation;
use crate::model::sandbox::Sandbox;
use crate::planner::draft::{Draft, Limit};
use crate::planner::rollout::Rollout;
use crate::planner::{Phase, Step, warm_up};

/// Creations of one pool that are on their way at a time, as those of a ReplicaSet are (`BurstReplicas`): however many
/// are wanted, one pool takes no more of the memory that all of them share.
pub const AT_ONCE: usize = 500;

/// Unclaimed sandboxes that are missing, and how many the pool lets be made at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortfall {
    /// Missing sandboxes, those for waiting claims and for the surge of a rollout included.
    pub missing: usize,
    /// How many more `capacity.maxTotal` has room for; `usize::MAX` without one.
    pub room: usize,
    /// How many more may start to warm up under `scaleStrategy.maxUnavailable`.
    pub ceiling: usize,
}

/// Trims what is above the upper bound, or creates what is missing. `surge` is what the rollout wanted before this
/// plan took old sandboxes away: their replacements may be made at once, and not only when they are gone.
pub(crate) fn run(draft: &mut Draft, surge: usize) {
    let mut rollout = Rollout::of(draft);
    rollout.surge = rollout.surge.max(surge);
    let excess = draft
        .active()
        .saturating_sub(draft.within_total(draft.upper() + rollout.surge));
    // They would take the place of what claims for the update revision wait for.
    let stale = match draft.demand_latest {
        0 => 0,
        _ => draft.old().saturating_sub(draft.upper_of_old() + rollout.surge),
    };
    if stale > excess {
        draft.remove(Phase::Scale, "AboveMaxWarm", stale, Limit::Budget, |unclaimed| {
            !unclaimed.updated
        });
    } else if excess > 0 {
        trim(draft, &rollout, excess);
        // `maxTotal` is a bound on what the pool costs, and no budget stands above it.
        let over_total = draft.active().saturating_sub(draft.within_total(usize::MAX));
        draft.remove(Phase::Scale, "AboveMaxTotal", over_total, Limit::None, |_| true);
    } else {
        create(draft, &rollout);
    }
}

/// Old sandboxes that shall not stay go first, then new ones while a partition keeps the old. An old one that
/// the budget does not let go yet is waited for: a new one that is still warming is not deleted in its place.
fn trim(draft: &mut Draft, rollout: &Rollout, excess: usize) {
    let of_old = excess.min(rollout.old.saturating_sub(rollout.kept));
    draft.remove(Phase::Scale, "AboveMaxWarm", of_old, Limit::Budget, |unclaimed| {
        !unclaimed.updated
    });
    let of_new = if rollout.kept > 0 {
        (excess - of_old).min(rollout.new)
    } else {
        0
    };
    draft.remove(Phase::Scale, "AboveMaxWarm", of_new, Limit::Budget, |unclaimed| {
        unclaimed.updated
    });
    draft.remove(
        Phase::Scale,
        "AboveMaxWarm",
        excess - of_old - of_new,
        Limit::Budget,
        |_| true,
    );
}

fn create(draft: &mut Draft, rollout: &Rollout) {
    let spec = &draft.snapshot.pool.spec;
    let present = draft.active() + draft.leaving;
    let missing = (draft.desired() + rollout.surge).saturating_sub(present);
    // One above `maxTotal` would be trimmed again at once.
    let fit = draft.within_total(usize::MAX).saturating_sub(draft.active());
    let of_old = missing.min(fit).min(rollout.old_missing());
    let old_back = restore(draft, of_old, |updated| !updated);
    let back = old_back + restore(draft, missing.min(fit) - of_old, |updated| updated);
    let (missing, present) = (missing - back, present + back);
    let room = spec
        .max_total
        .map_or(usize::MAX, |max| max.saturating_sub(draft.existing));
    let ceiling = draft.ceiling();
    draft.shortfall = Shortfall {
        missing,
        room,
        ceiling,
    };
    draft.forbidden = draft.desired().saturating_sub(present).saturating_sub(room);
    let begins = AT_ONCE.saturating_sub(draft.snapshot.creating.len());
    let count = allowed_now(draft, missing.min(room).min(ceiling).min(begins));
    if count == 0 {
        return;
    }
    let reason = if draft.demand > 0 { "Demand" } else { "Refill" };
    let old_missing = rollout.old_missing() - old_back;
    let new = count.saturating_sub(old_missing).min(unproven_room(draft));
    let update = draft.revisions.update.hash.clone();
    let previous = draft
        .revisions
        .previous
        .as_ref()
        .map_or(update.clone(), |p| p.hash.clone());
    let old = (count - new).min(old_missing.max(useful_of_old(draft)));
    // What a revision that fails to come up is denied is not made from the other one: the rollout would only
    // delete it again.
    let shares = [(new, update), (old, previous)];
    let mut fresh = draft.fresh_names();
    for (share, revision) in shares {
        for _ in 0..share.min(warm_up::room(draft, &revision)) {
            let step = Step::CreatePod {
                name: fresh(&revision),
                revision: revision.clone(),
            };
            draft.act(Phase::Scale, reason, step);
        }
    }
}

/// How many more sandboxes of the old revision would serve anything: a claim that only the update revision can serve
/// gains nothing by one, and neither does the surge of the rollout.
fn useful_of_old(draft: &Draft) -> usize {
    let latest = match draft.revisions.previous {
        Some(_) => draft.demand_latest,
        None => 0,
    };
    let present = draft.old() + draft.leaving - draft.leaving_unproven;
    draft.desired().saturating_sub(latest + present)
}

/// How many of the wanted sandboxes that are missing the two revisions allow to be made now.
pub(crate) fn makeable(draft: &Draft) -> usize {
    unproven_room(draft).saturating_add(useful_of_old(draft))
}

/// Makes up to `count` draining sandboxes warm again instead of creating new ones: those that are as they were, with
/// none of their preDelete hooks taken off, and that were not to go for their own sake. Returns how many.
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
        draft.restore(&sandbox);
        draft.act(Phase::Scale, "WantedAgain", Step::RestorePod { sandbox });
    }
    restored
}

/// After a refusal nothing is created until the backoff ends, then one pod to find out.
fn allowed_now(draft: &Draft, count: usize) -> usize {
    match draft.snapshot.creation {
        Creation::Open => count,
        Creation::BackOff { until, .. } if until > draft.snapshot.now => 0,
        Creation::BackOff { .. } if draft.snapshot.creating.is_empty() => count.min(1),
        Creation::BackOff { .. } => 0,
    }
}

/// How many sandboxes of the update revision may be created now. While a rollout has yet to bring up its
/// first one, no more than `maxUnavailable + maxSurge` of them may be warming: what claims take meanwhile is made up
/// from the revision that works, so a template that never becomes ready cannot empty the pool.
fn unproven_room(draft: &Draft) -> usize {
    let spec = &draft.snapshot.pool.spec;
    if draft.proven || draft.revisions.previous.is_none() || spec.strategy == UpdateStrategyType::Recreate {
        return usize::MAX;
    }
    let open = draft.updated_unavailable() + draft.leaving_unproven;
    spec.rollout_width().saturating_sub(open)
}
