//! The statuses of a claim that waits, is bound or ends.

use crate::api::SandboxClaimStatus;
use crate::api::claim::{BoundSandbox, Phase};
use crate::api::conditions as api_conditions;
use crate::api::conditions::claim as reasons;
use crate::model::claim::Claim;
use crate::model::claim_spec::ResolvedClaimSpec;
use crate::model::sandbox::Sandbox;
use crate::planner::claim::conditions;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::sync::Arc;

/// The status that publishes `sandboxes`, all that the claim wants. `warm` says which of them were available when the claim
/// came.
pub fn binding(
    claim: &Claim,
    resolved_spec: &ResolvedClaimSpec,
    sandboxes: &[Arc<Sandbox>],
    warm: impl Fn(&Sandbox) -> bool,
    now: Timestamp,
) -> SandboxClaimStatus {
    let waited = now.duration_since(claim.arrived).max(SignedDuration::ZERO);
    let before = &claim.status;
    let published = |sandbox: &Arc<Sandbox>| BoundSandbox {
        name: sandbox.key.name.clone(),
        uid: sandbox.uid.clone(),
        ip: sandbox.ip.clone(),
        node: sandbox.node.clone().unwrap_or_default(),
        revision: sandbox.revision.clone(),
        bound_time: Time(api_conditions::whole_seconds(now)),
        warm: warm(sandbox),
    };
    let entry = |sandbox: &Arc<Sandbox>| {
        let stays = before.sandboxes.iter().find(|s| s.uid == sandbox.uid);
        stays.cloned().unwrap_or_else(|| published(sandbox))
    };
    let first = before.wait_seconds.is_none();
    let mut status = SandboxClaimStatus {
        phase: Some(Phase::Bound),
        observed_generation: claim.generation,
        pool: sandboxes.first().map(|s| s.pool.clone()).unwrap_or_default(),
        sandboxes: sandboxes.iter().map(entry).collect(),
        wait_seconds: before
            .wait_seconds
            .or(Some(waited.as_millis_f64().round() / 1000.0)),
        wait: if first {
            conditions::waited(waited.as_millis())
        } else {
            before.wait.clone()
        },
        bound_time: before
            .bound_time
            .clone()
            .or_else(|| Some(Time(api_conditions::whole_seconds(now)))),
        expiration_time: None,
        defaults: Some(resolved_spec.defaults.clone()),
        finish_time: None,
        conditions: Vec::new(),
    };
    status.expiration_time = claim.expiration_with(&status).map(Time);
    let statements = vec![conditions::bound(sandboxes), conditions::readiness(sandboxes)];
    conditions::with_conditions(claim, status, statements, now)
}

/// The status of a claim that keeps waiting.
pub fn pending(claim: &Claim, reason: &'static str, message: &str, now: Timestamp) -> SandboxClaimStatus {
    let status = SandboxClaimStatus {
        phase: Some(Phase::Pending),
        observed_generation: claim.generation,
        pool: claim.pool().to_string(),
        expiration_time: claim.expiration().map(Time),
        ..claim.status.clone()
    };
    conditions::with_conditions(claim, status, conditions::unbound(reason, message), now)
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
    let served_by = if before.pool.is_empty() {
        pool
    } else {
        &before.pool
    };
    SandboxClaimStatus {
        phase: Some(phase),
        observed_generation: claim.generation,
        pool: served_by.to_string(),
        finish_time: Some(Time(api_conditions::whole_seconds(now))),
        defaults: Some(resolved_spec.defaults.clone()),
        ..before.clone()
    }
}
