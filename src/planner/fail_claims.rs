//! Which waiting claims fail: those whose `waitTimeoutSeconds` are over, and those with `onEmpty: Fail` that find
//! nothing.

use crate::api::claim::{OnEmpty, RevisionPolicy};
use crate::api::conditions::claim as reasons;
use crate::cache::waiting_claim::Waiting;
use crate::planner::actions::{PlanPhase, Step};
use crate::planner::claim;
use crate::planner::draft::Draft;
use crate::planner::unclaimed_sandbox::UnclaimedSandbox;
use std::sync::Arc;

/// Fails a claim whose time is over, unless bindings are in flight: their answers come first. Returns whether its time
/// is over.
pub(crate) fn fail_overdue(draft: &mut Draft, waiting: &Waiting) -> bool {
    let now = draft.snapshot.now;
    let is_overdue = waiting.deadline().is_some_and(|deadline| deadline <= now);
    if is_overdue && waiting.binding == 0 {
        let message = match claim::rejection(&waiting.claim) {
            Some(rejection) => format!("not bound within waitTimeoutSeconds: {rejection}"),
            None => format!("{} became available within waitTimeoutSeconds", nothing(waiting)),
        };
        fail(draft, waiting, reasons::WAIT_TIMEOUT, message);
    }
    is_overdue
}

/// Fails a claim with `onEmpty: Fail` that finds too few sandboxes. A sandbox whose write met a conflict may be back in
/// a moment, and the claim waits for that. Returns whether it fails.
pub(crate) fn fail_unwilling_to_wait(draft: &mut Draft, waiting: &Waiting) -> bool {
    let spec = &waiting.resolved_spec;
    let fails = spec.on_empty == OnEmpty::Fail && !may_be_back(draft, spec.revision_policy);
    if fails {
        let missing = match waiting.claim.wanted() {
            1 => "no sandbox of an accepted revision is available".to_string(),
            wanted => format!("fewer than {wanted} sandboxes of an accepted revision are available"),
        };
        let message = format!("{missing}, and onEmpty is Fail");
        fail(draft, waiting, reasons::POOL_EMPTY, message);
    }
    fails
}

/// A sandbox of an accepted revision is unavailable only until the watch shows why a write on it met a conflict.
fn may_be_back(draft: &Draft, policy: RevisionPolicy) -> bool {
    let is_accepted = |unclaimed: &UnclaimedSandbox| unclaimed.updated || policy != RevisionPolicy::Latest;
    let mut unclaimed = draft.unclaimed.iter();
    unclaimed.any(|u| u.available && u.conflicted && !u.evict_requested() && is_accepted(u))
}

fn nothing(waiting: &Waiting) -> String {
    match waiting.claim.wanted() {
        1 => "no sandbox".to_string(),
        wanted => format!("no {wanted} sandboxes together"),
    }
}

fn fail(draft: &mut Draft, waiting: &Waiting, reason: &'static str, message: String) {
    let step = Step::FailClaim {
        claim: Arc::clone(&waiting.claim),
        message,
    };
    draft.act(PlanPhase::Scheduling, reason, step);
}
