//! The planner of claims: one pure function from the snapshot of a claim to a plan.

mod bound;
mod claim_plan;
mod conditions;
mod confirm_loss;
mod disruption;
mod finished;
mod next_requests;
mod orphaned_pod_disruption_budget;
mod pool_not_served;
mod ready_sandboxes;
mod release_unpublished;
mod status;
mod wait_column;
mod waiting;

use crate::api::claim::Phase;
use crate::cache::snapshot::{ClaimSnapshot, PoolPresence};
pub use bound::binding;
pub use claim_plan::{ClaimPlan, release_reason};
pub use next_requests::{ClaimRequests, purpose, requests};
pub use status::{failure, pending, rejection};

/// Plans the next writes for a claim, beyond the binding itself.
pub fn plan(snapshot: &ClaimSnapshot) -> ClaimPlan {
    if snapshot.claim.terminating {
        return ClaimPlan::default();
    }
    if snapshot.pool_presence == PoolPresence::Elsewhere {
        return pool_not_served::plan(snapshot);
    }
    let plan = match snapshot.claim.status.phase {
        Some(Phase::Failed) => finished::failed(snapshot),
        Some(Phase::Expired) => finished::expired(snapshot),
        Some(Phase::Bound) => bound::plan(snapshot),
        None | Some(Phase::Pending) if snapshot.binding => waiting::being_bound(snapshot),
        None | Some(Phase::Pending) => waiting::plan(snapshot),
    };
    let mut plan = disruption::follow(snapshot, plan);
    let (step, due) = orphaned_pod_disruption_budget::next_step(snapshot);
    plan.budget_step = step;
    plan.next = plan.next.into_iter().chain(due).min();
    plan
}
