//! The statuses of a claim that waits, is bound or ends.

use crate::api::SandboxClaimStatus;
use crate::api::claim::Phase;
use crate::api::conditions as api_conditions;
use crate::api::conditions::claim as reasons;
use crate::model::claim::Claim;
use crate::model::resolved_claim_spec::ResolvedClaimSpec;
use crate::planner::claim::{conditions, ready_sandboxes};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The status of a claim that keeps waiting.
pub fn pending(claim: &Claim, reason: &'static str, message: &str, now: Timestamp) -> SandboxClaimStatus {
    let status = SandboxClaimStatus {
        phase: Some(Phase::Pending),
        observed_generation: claim.generation,
        pool: claim.pool().to_string(),
        ready: match claim.status.ready.as_str() {
            "" => none_ready(claim),
            kept => kept.to_string(),
        },
        expiration_time: claim.expiration().map(Time),
        ..claim.status.clone()
    };
    conditions::with_conditions(claim, status, conditions::unbound(reason, message), now)
}

fn none_ready(claim: &Claim) -> String {
    ready_sandboxes::of_wanted(claim, std::iter::empty())
}

/// What the claim says of the binding that the API server rejected last, until it has something else to say.
pub fn rejection(claim: &Claim) -> Option<&str> {
    let said = api_conditions::find(&claim.status.conditions, api_conditions::BOUND)?;
    (said.reason == reasons::BINDING_REFUSED).then_some(said.message.as_str())
}

/// The status of a claim that ends without a further sandbox. `pool` was to serve it, and `resolved_spec` holds for it.
pub fn failure(
    claim: &Claim,
    pool: &str,
    resolved_spec: &ResolvedClaimSpec,
    reason: &'static str,
    message: &str,
    now: Timestamp,
) -> SandboxClaimStatus {
    let status = ended(claim, pool, resolved_spec, Phase::Failed, now);
    conditions::with_conditions(claim, status, conditions::unbound(reason, message), now)
}

/// The status of a claim that ends in `phase`, its conditions not yet set.
pub(crate) fn ended(
    claim: &Claim,
    pool: &str,
    resolved_spec: &ResolvedClaimSpec,
    phase: Phase,
    now: Timestamp,
) -> SandboxClaimStatus {
    let before = &claim.status;
    // Until the first binding a user may have edited which pool is to serve the claim.
    let was_served = claim.was_bound() || pool.is_empty();
    let served_by = if was_served { &before.pool } else { pool };
    let expiration = match phase {
        Phase::Expired => claim.expiration().map(Time),
        _ => before.expiration_time.clone(),
    };
    SandboxClaimStatus {
        phase: Some(phase),
        observed_generation: claim.generation,
        pool: served_by.to_string(),
        ready: none_ready(claim),
        finish_time: Some(Time(api_conditions::whole_seconds(now))),
        defaults: Some(resolved_spec.defaults.clone()),
        expiration_time: expiration,
        ..before.clone()
    }
}
