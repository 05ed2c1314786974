//! How many of the missing sandboxes are created now, of which revision, and what their creation waits for.

use crate::cache::snapshot::Creation;
use crate::planner::actions::{PlanPhase, Shortfall, Step, WaitsFor};
use crate::planner::desired_counts::Counts;
use crate::planner::draft::Draft;
use crate::planner::pod_names::fresh_names;
use crate::planner::refill_while_binding;
use crate::planner::restore_draining::restore;
use crate::planner::warm_up_backoff;

/// Most creations of one pool in flight, as for a ReplicaSet (`BurstReplicas`). However many are wanted, one pool takes
/// no more of the memory that all pools share.
pub const BURST_REPLICAS: usize = 500;

/// Creates what is missing, as far as the limits allow. Draining sandboxes are restored first.
pub(crate) fn create_missing(draft: &mut Draft, counts: &Counts) {
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
    let mut sent = draft.snapshot.creating.iter().filter(|c| !c.is_answered).count();
    let count = allowed_now(draft, missing.min(headroom));
    let count = refill_while_binding::allowed(draft, count, sent);
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
    let mut fresh_name = fresh_names(draft.snapshot);
    for (share, revision) in [(updated, update), (old, previous)] {
        // If a revision fails to come up, its share is not made from the other revision: the rollout would only delete
        // those sandboxes again.
        for _ in 0..share.min(warm_up_backoff::max_creatable(draft, &revision)) {
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

/// After a rejected create nothing is created until the backoff ends, then one pod to find out.
fn allowed_now(draft: &Draft, count: usize) -> usize {
    match draft.snapshot.creation {
        Creation::Open => count,
        Creation::BackOff { until, .. } if until > draft.snapshot.now => 0,
        Creation::BackOff { .. } if draft.snapshot.creating.is_empty() => count.min(1),
        Creation::BackOff { .. } => 0,
    }
}
