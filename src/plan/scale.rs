//! Phase *scale*: the number of unclaimed sandboxes is brought to the wanted one.

use super::draft::Draft;
use super::{Phase, Step};
use crate::observe::view::Creation;

/// Trims what is above the upper bound, or creates what is missing.
pub(super) fn run(draft: &mut Draft) {
    let excess = draft.active().saturating_sub(draft.upper());
    if excess > 0 {
        let removed = draft.remove(Phase::Scale, "AboveMaxWarm", excess, |idle| !idle.updated);
        draft.remove(Phase::Scale, "AboveMaxWarm", excess - removed, |_| true);
    } else {
        create(draft);
    }
}

fn create(draft: &mut Draft) {
    let targets = &draft.view.pool.targets;
    let missing = draft.desired().saturating_sub(draft.active() + draft.leaving);
    let room = targets
        .max_total
        .map_or(usize::MAX, |max| max.saturating_sub(draft.existing));
    let warming = draft.idle.iter().filter(|i| !i.available).count() + draft.view.creating.len();
    let ceiling = targets.warming_ceiling.saturating_sub(warming);
    draft.forbidden = missing.saturating_sub(room);
    let count = allowed_now(draft, missing.min(room).min(ceiling));
    let reason = if draft.demand > 0 { "Demand" } else { "Refill" };
    let new = count.min(unproven_room(draft));
    let mut fresh = draft.fresh_names();
    let update = draft.revisions.update.hash.clone();
    let previous = draft
        .revisions
        .previous
        .as_ref()
        .map_or(update.clone(), |p| p.hash.clone());
    for index in 0..count {
        let revision = if index < new { &update } else { &previous }.clone();
        let step = Step::CreatePod {
            name: fresh(&revision),
            revision,
        };
        draft.act(Phase::Scale, reason, step);
    }
}

/// After a refusal nothing is created until the backoff ends, then one pod to find out.
fn allowed_now(draft: &mut Draft, count: usize) -> usize {
    match draft.view.creation {
        Creation::Open => count,
        Creation::BackOff { until, .. } if until > draft.view.now => {
            if count > 0 {
                draft.wake(until);
            }
            0
        }
        Creation::BackOff { .. } if draft.view.creating.is_empty() => count.min(1),
        Creation::BackOff { .. } => 0,
    }
}

/// How many sandboxes of the update revision may be created now. While a rollout has yet to bring up its
/// first one, no more than `maxUnavailable` of them may be warming: what claims take meanwhile is made up
/// from the revision that works, so a template that never becomes ready cannot empty the pool.
fn unproven_room(draft: &Draft) -> usize {
    if draft.proven || draft.revisions.previous.is_none() {
        return usize::MAX;
    }
    draft
        .view
        .pool
        .targets
        .max_unavailable
        .saturating_sub(draft.updated_unavailable())
}
