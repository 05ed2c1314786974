//! How many of the sandboxes that have used up `warmUpDeadlineSeconds` are given up now.

use crate::cache::snapshot::Creation;
use crate::planner::actions::PlanPhase;
use crate::planner::desired_counts::Counts;
use crate::planner::draft::Draft;
use crate::planner::remove::Limit;
use crate::planner::unclaimed_sandbox::UnclaimedSandbox;
use crate::planner::warm_up_backoff;
use smol_str::SmolStr;
use std::collections::BTreeSet;

/// Gives up the sandboxes that are overdue: of each revision as many as may be created anew now.
pub(crate) fn give_up_overdue(draft: &mut Draft) {
    let overdue = draft.unclaimed.iter().filter(|u| u.overdue);
    let revisions: BTreeSet<SmolStr> = overdue.map(|u| u.sandbox.revision.clone()).collect();
    if !revisions.is_empty() {
        draft.order();
    }
    for revision in revisions {
        let rest = warm_up_backoff::width(draft, &revision).saturating_sub(to_be_replaced(draft));
        let count = warm_up_backoff::max_creatable(draft, &revision).min(rest);
        let of = |unclaimed: &UnclaimedSandbox| unclaimed.overdue && unclaimed.sandbox.revision == revision;
        let overdue = draft.unclaimed.iter().filter(|unclaimed| of(unclaimed));
        // A sandbox whose node has to go says nothing of its revision.
        let failed = overdue.filter(|unclaimed| !unclaimed.leaves_node());
        let reasons: Vec<_> = failed
            .map(|failed| failed.sandbox.not_running_reason.clone())
            .collect();
        let removed = draft.remove(PlanPhase::Eviction, "WarmUpDeadline", count, Limit::Budget, of);
        if removed > 0 && !reasons.is_empty() {
            let reason = reasons.into_iter().flatten().next();
            warm_up_backoff::note_warm_up_failure(draft, &revision, reason);
        }
    }
}

/// Sandboxes given up before, which are replaced first. Where nothing may be created, an overdue sandbox is not kept
/// for that reason: it may be what takes up the capacity.
fn to_be_replaced(draft: &Draft) -> usize {
    if draft.snapshot.creation != Creation::Open {
        return 0;
    }
    let counts = Counts::of(draft);
    counts.creatable_of(counts.desired)
}
