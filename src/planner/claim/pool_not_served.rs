//! A claim that the operator of another shard serves: it is left alone, unless nobody has answered it.

use crate::api::claim::Phase;
use crate::api::conditions as api_conditions;
use crate::api::conditions::claim as reasons;
use crate::cache::snapshot::ClaimSnapshot;
use crate::planner::claim::claim_plan::ClaimPlan;
use crate::planner::claim::waiting;
use jiff::SignedDuration;

/// How long a claim stays without any status before another operator tells it that nobody serves its pool. The operator of
/// its shard answers within a second, and after a crash its standby does within 16 seconds.
const SILENCE: SignedDuration = SignedDuration::from_secs(60);

/// No operator knows the selectors of the others, so the silence is all that shows that a pool is in no shard. A claim that the
/// operator of its shard answers late is told so by that operator, whose write needs the latest version like any other.
pub(crate) fn plan(snapshot: &ClaimSnapshot) -> ClaimPlan {
    let claim = &snapshot.claim;
    let is_untouched = claim.status.sandboxes.is_empty() && snapshot.sandboxes.is_empty();
    let said = api_conditions::find(&claim.status.conditions, api_conditions::BOUND);
    match claim.status.phase {
        None if is_untouched => match claim.arrived.checked_add(SILENCE) {
            Ok(patience) if patience > snapshot.now => ClaimPlan {
                next: Some(patience),
                ..ClaimPlan::default()
            },
            _ => waiting::plan(snapshot),
        },
        Some(Phase::Pending)
            if is_untouched && said.is_some_and(|said| said.reason == reasons::POOL_NOT_SERVED) =>
        {
            waiting::plan(snapshot)
        }
        _ => ClaimPlan::default(),
    }
}
