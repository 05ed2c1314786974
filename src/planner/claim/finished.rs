//! How a claim ends, Failed or Expired, which sandboxes it releases then, and when it is deleted.

use crate::api::SandboxClaimStatus;
use crate::api::claim::{Phase, ReleasePolicy};
use crate::api::conditions::claim as reasons;
use crate::cache::snapshot::ClaimSnapshot;
use crate::planner::claim::claim_plan::{ClaimPlan, unpublished};
use crate::planner::claim::ready_sandboxes::without_dead;
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
    ClaimPlan::write(claim, without_dead(snapshot, status, false))
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
    let released = snapshot.resolved_spec.release_policy == ReleasePolicy::Delete;
    let status = without_dead(snapshot, status, released);
    let statements = conditions::unbound(reasons::EXPIRED, message);
    ClaimPlan::write(claim, conditions::with_conditions(claim, status, statements, now))
}

/// A Failed claim keeps the sandboxes that its tenant knows of until it is deleted.
pub(crate) fn failed(snapshot: &ClaimSnapshot) -> ClaimPlan {
    ClaimPlan {
        release: unpublished(snapshot),
        ..delete_after_ttl(snapshot, false)
    }
}

pub(crate) fn expired(snapshot: &ClaimSnapshot) -> ClaimPlan {
    let policy = snapshot.resolved_spec.release_policy;
    let release = match policy {
        ReleasePolicy::Delete => snapshot
            .sandboxes
            .iter()
            .filter(|s| !s.terminating)
            .cloned()
            .collect(),
        ReleasePolicy::Retain => unpublished(snapshot),
    };
    ClaimPlan {
        release,
        ..delete_after_ttl(snapshot, policy == ReleasePolicy::Delete)
    }
}

/// Deletes the claim when `ttlSecondsAfterFinished` has passed. Until then, removes dead addresses from its status.
fn delete_after_ttl(snapshot: &ClaimSnapshot, released: bool) -> ClaimPlan {
    let claim = &snapshot.claim;
    let due = claim.deletion(&snapshot.resolved_spec);
    let delete = due.is_some_and(|due| due <= snapshot.now);
    let following = if delete {
        ClaimPlan::default()
    } else {
        let status = SandboxClaimStatus {
            observed_generation: claim.generation,
            ..claim.status.clone()
        };
        ClaimPlan::write(claim, without_dead(snapshot, status, released))
    };
    ClaimPlan {
        delete,
        next: due.filter(|due| *due > snapshot.now),
        ..following
    }
}
