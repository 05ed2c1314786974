//! How a claim ends: Failed or Expired.

use crate::api::claim::Phase;
use crate::api::conditions::claim as reasons;
use crate::cache::snapshot::ClaimSnapshot;
use crate::planner::claim::claim_plan::ClaimPlan;
use crate::planner::claim::{conditions, status};

pub(crate) fn fail(snapshot: &ClaimSnapshot, reason: &'static str, message: &str) -> ClaimPlan {
    let claim = &snapshot.claim;
    let status = status::failure(
        claim,
        &snapshot.pool,
        &snapshot.resolved_spec,
        reason,
        message,
        snapshot.now,
    );
    ClaimPlan::write(claim, status)
}

pub(crate) fn expire(snapshot: &ClaimSnapshot, message: &str) -> ClaimPlan {
    let (claim, now) = (&snapshot.claim, snapshot.now);
    let status = status::ended(
        claim,
        &snapshot.pool,
        &snapshot.resolved_spec,
        Phase::Expired,
        now,
    );
    let statements = conditions::unbound(reasons::EXPIRED, message);
    ClaimPlan::write(claim, conditions::with_conditions(claim, status, statements, now))
}
