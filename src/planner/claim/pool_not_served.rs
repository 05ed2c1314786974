//! A claim in the shard of another operator: it is left alone, unless no operator has written its status.

use crate::api::claim::Phase;
use crate::api::conditions as api_conditions;
use crate::api::conditions::claim as reasons;
use crate::cache::snapshot::ClaimSnapshot;
use crate::planner::claim::claim_plan::ClaimPlan;
use crate::planner::claim::waiting;
use jiff::SignedDuration;

/// How long a claim has no status before an operator of another shard writes that no operator serves its pool. The
/// operator of its shard answers within a second; after a crash, its standby answers within 16 seconds.
const SILENCE: SignedDuration = SignedDuration::from_secs(60);

/// No operator knows the selectors of the others, so only a claim that keeps no status shows that its pool is in no
/// shard. An operator that answers late replaces this status: its write needs the latest version of the claim, as every
/// write does.
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
