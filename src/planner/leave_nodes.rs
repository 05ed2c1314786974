//! Sandboxes that cannot stay on their nodes: how many replacements are made first, and which of them go now (I6).

use crate::api::disruption::DrainPolicy;
use crate::cache::snapshot::PoolSnapshot;
use crate::model::leaving_reason::{Leaving, LeavingReason};
use crate::planner::actions::PlanPhase;
use crate::planner::draft::Draft;
use crate::planner::missing_under_load;
use crate::planner::remove::Limit;
use crate::planner::unclaimed_sandbox::UnclaimedSandbox;
use jiff::Timestamp;

/// Reason of a deletion that waits for no replacement, because `drainPolicy` is Break.
pub const POLICY_BREAK: &str = "DrainPolicyBreak";
/// Reason of a deletion that waits for no replacement any more, because `drainDeadlineSeconds` have passed.
pub const DEADLINE_EXCEEDED: &str = "DrainDeadlineExceeded";

/// Marks the sandboxes that are leaving. Those that leave their node go before others of the same worth.
pub(crate) fn mark(draft: &mut Draft) {
    let snapshot = draft.snapshot;
    let mut moments = Vec::new();
    for unclaimed in &mut draft.unclaimed {
        let sandbox = &unclaimed.sandbox;
        unclaimed.leaving = snapshot.nodes.leaving_from(unclaimed.node, sandbox, snapshot.now);
        moments.extend(snapshot.nodes.gone_at(sandbox));
        if unclaimed.leaves_node() {
            moments.extend(
                unclaimed
                    .leaving
                    .and_then(|leaving| deadline(draft.snapshot, leaving)),
            );
        }
    }
    for moment in moments {
        draft.wake(moment);
    }
}

/// When a leaving sandbox goes even without a replacement. Never on a node that is not ready: a deletion would end
/// nothing there, and every node looks not ready while the control plane cannot reach it.
fn deadline(snapshot: &PoolSnapshot, leaving: Leaving) -> Option<Timestamp> {
    let after = |since: Timestamp| since.checked_add(snapshot.pool.spec.drain_deadline).ok();
    after(leaving.since).filter(|_| leaving.reason != LeavingReason::NodeNotReady)
}

/// When the first of the sandboxes that leave their nodes goes unreplaced; `None` if none does.
pub(crate) fn first_deadline(draft: &Draft) -> Option<Timestamp> {
    let leaving = draft.unclaimed.iter().filter(|unclaimed| unclaimed.leaves_node());
    let deadlines = leaving.filter_map(|unclaimed| deadline(draft.snapshot, unclaimed.leaving?));
    deadlines.min()
}

/// Sandboxes wanted above `replicas`, so that replacements are available before sandboxes leave their nodes: one for
/// each, and no more at once than a rollout may have missing and extra, when all nodes of a zone go.
pub(crate) fn surge(draft: &Draft) -> usize {
    let leaving = draft.unclaimed.iter().filter(|unclaimed| unclaimed.leaves_node());
    leaving.count().min(draft.snapshot.pool.spec.rollout_width())
}

/// Removes sandboxes whose nodes are gone or that wait for no replacement, whatever the budget is. Removes as many of
/// the others as have replacements.
pub(crate) fn remove(draft: &mut Draft) {
    if !draft.unclaimed.iter().any(|unclaimed| unclaimed.leaves_node()) {
        return;
    }
    let snapshot = draft.snapshot;
    let breaks = |unclaimed: &UnclaimedSandbox| {
        let leaving = unclaimed.leaving.filter(|_| unclaimed.leaves_node())?;
        let is_late = deadline(snapshot, leaving).is_some_and(|deadline| deadline <= snapshot.now);
        match leaving.reason {
            LeavingReason::NodeGone => Some(leaving.reason.as_str()),
            LeavingReason::NodeNotReady => None,
            _ if snapshot.pool.spec.drain_policy == DrainPolicy::Break => Some(POLICY_BREAK),
            _ => is_late.then_some(DEADLINE_EXCEEDED),
        }
    };
    draft.remove_for(PlanPhase::Eviction, usize::MAX, Limit::Forced, breaks);
    let wanted = wanted(draft);
    let leaves = |unclaimed: &UnclaimedSandbox| {
        let leaving = unclaimed.leaving.filter(|_| unclaimed.leaves_node());
        leaving.map(|leaving| leaving.reason.as_str())
    };
    let replaced = replaced(draft, wanted);
    draft.remove_for(PlanPhase::Eviction, replaced, Limit::AtLeast(wanted), leaves);
}

/// Sandboxes that leave their nodes and whose replacements are available: with the available sandboxes that stay, they
/// are more than `wanted`. This follows from what is seen, so a restart forgets no replacement and makes none twice.
fn replaced(draft: &Draft, wanted: usize) -> usize {
    let unclaimed = draft.unclaimed.iter().filter(|unclaimed| !unclaimed.conflicted);
    let counts =
        |unclaimed: &&UnclaimedSandbox| unclaimed.leaves_node() || (unclaimed.stays() && unclaimed.available);
    unclaimed.filter(counts).count().saturating_sub(wanted)
}

/// How many sandboxes must be available: `replicas`, as far as `maxTotal` allows, less those that claims have just
/// taken and that are being replaced, because a pool under load is hardly ever full.
fn wanted(draft: &Draft) -> usize {
    let spec = &draft.snapshot.pool.spec;
    let capacity = spec.total_capacity_left(draft.claimed + draft.set_aside.len());
    let unclaimed = draft.unclaimed.iter();
    let warming = unclaimed.filter(|unclaimed| unclaimed.stays() && !unclaimed.available);
    let refills = warming.count() + draft.snapshot.creating.len() + draft.unconfirmed;
    let taken = missing_under_load::claimed_meanwhile(draft).min(refills);
    spec.replicas.min(capacity).saturating_sub(taken)
}
