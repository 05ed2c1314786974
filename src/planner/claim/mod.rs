//! The planner of claims: one pure function from the snapshot of a claim to a plan.

mod bound;
mod claim_plan;
mod conditions;
mod end;
mod finished;
mod status;
mod unpublished;
mod waiting;

use crate::api::claim::Phase;
use crate::cache::snapshot::ClaimSnapshot;
pub use claim_plan::{ClaimPlan, release_reason};
use jiff::SignedDuration;
pub use status::{binding, failure, pending, rejection};

/// How soon a claim that has ended is planned again while a binding is in flight, or was and nobody knows what became of
/// it. No event tells the claim that the binding was not made.
const REQUEUE_AFTER: SignedDuration = SignedDuration::from_secs(5);

/// Plans the next writes for a claim, beyond the binding itself.
pub fn plan(snapshot: &ClaimSnapshot) -> ClaimPlan {
    if snapshot.claim.terminating {
        return ClaimPlan::default();
    }
    match snapshot.claim.status.phase {
        Some(Phase::Failed) => finished::failed(snapshot),
        Some(Phase::Expired) => finished::expired(snapshot),
        Some(Phase::Bound) => bound::plan(snapshot),
        None | Some(Phase::Pending) if snapshot.binding => ClaimPlan {
            next: waiting::end(snapshot).map(|end| end.max(snapshot.now + REQUEUE_AFTER)),
            ..ClaimPlan::default()
        },
        None | Some(Phase::Pending) => waiting::plan(snapshot),
    }
}
