//! What to do about one claim, beyond the binding itself: its status follows its sandboxes, half-done bindings are
//! finished, pods it may not keep are released, it expires, and in the end it goes.

mod bound;
mod finished;
mod say;
mod waiting;

use crate::api::SandboxClaimStatus;
use crate::api::claim::{BoundSandbox, Phase};
use crate::api::conditions;
use crate::api::conditions::claim as reasons;
use crate::cache::snapshot::ClaimSnapshot;
use crate::model::claim::Claim;
use crate::model::claim_spec::ResolvedClaimSpec;
use crate::model::sandbox::Sandbox;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::collections::HashSet;
use std::sync::Arc;

/// What to do about a claim now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimPlan {
    /// The status to write, when it differs from the stored one.
    pub status: Option<Box<SandboxClaimStatus>>,
    /// Pods of the claim that it may not keep: one too many bound by a second leader, one bound while the claim failed,
    /// one that died before it was published, and those of an expired claim.
    pub release: Vec<Arc<Sandbox>>,
    /// Published sandboxes that are not seen any more; a live read has to confirm that before `status` is written.
    pub confirm_loss: Vec<BoundSandbox>,
    /// The claim has ended and had its time; it is to be deleted.
    pub delete: bool,
    /// When time alone will change the plan.
    pub next: Option<Timestamp>,
}

/// How soon a claim that is over is looked at again while a binding is under way, or was and nobody knows what became of it:
/// nothing tells the claim when it turns out not to have been made.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(5);

/// Why pods of the claim that it may not keep are released.
pub fn release_reason(claim: &Claim) -> &'static str {
    match claim.status.phase {
        Some(Phase::Expired) => "ClaimExpired",
        _ => "NotPublished",
    }
}

/// Plans the next writes for the claim of `view`.
pub fn plan(snapshot: &ClaimSnapshot) -> ClaimPlan {
    if snapshot.claim.terminating {
        return ClaimPlan::default();
    }
    match snapshot.claim.status.phase {
        Some(Phase::Failed) => finished::failed(snapshot),
        Some(Phase::Expired) => finished::expired(snapshot),
        Some(Phase::Bound) => bound::plan(snapshot),
        None | Some(Phase::Pending) if snapshot.binding => ClaimPlan {
            next: waiting::end(snapshot).map(|end| end.max(snapshot.now + LOOK_AGAIN)),
            ..ClaimPlan::default()
        },
        None | Some(Phase::Pending) => waiting::plan(snapshot),
    }
}

/// The status that publishes `sandboxes`, all that the claim wants, as its own; those for which `warm` holds were available
/// as the claim came.
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
        bound_time: Time(conditions::whole_seconds(now)),
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
            say::waited(waited.as_millis())
        } else {
            before.wait.clone()
        },
        bound_time: before
            .bound_time
            .clone()
            .or_else(|| Some(Time(conditions::whole_seconds(now)))),
        expiration_time: None,
        defaults: Some(resolved_spec.defaults.clone()),
        finish_time: None,
        conditions: Vec::new(),
    };
    status.expiration_time = claim.expiration_with(&status).map(Time);
    let statements = vec![say::bound(sandboxes), say::readiness(sandboxes)];
    say::with_conditions(claim, status, statements, now)
}

/// The status of a claim that waits on.
pub fn pending(claim: &Claim, reason: &'static str, message: &str, now: Timestamp) -> SandboxClaimStatus {
    let status = SandboxClaimStatus {
        phase: Some(Phase::Pending),
        observed_generation: claim.generation,
        pool: claim.pool().to_string(),
        expiration_time: claim.expiration().map(Time),
        ..claim.status.clone()
    };
    say::with_conditions(claim, status, say::unbound(reason, message), now)
}

/// What the claim says of the binding that the API server refused last, until it has something else to say.
pub fn rejection(claim: &Claim) -> Option<&str> {
    let said = conditions::find(&claim.status.conditions, conditions::BOUND)?;
    (said.reason == reasons::BINDING_REFUSED).then_some(said.message.as_str())
}

/// The status of a claim that ends without keeping a sandbox; `pool` was to serve it, on these terms.
pub fn failure(
    claim: &Claim,
    pool: &str,
    resolved_spec: &ResolvedClaimSpec,
    reason: &'static str,
    message: &str,
    now: Timestamp,
) -> SandboxClaimStatus {
    let status = ended(claim, pool, resolved_spec, Phase::Failed, now);
    say::with_conditions(claim, status, say::unbound(reason, message), now)
}

fn ended(
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
        finish_time: Some(Time(conditions::whole_seconds(now))),
        defaults: Some(resolved_spec.defaults.clone()),
        ..before.clone()
    }
}

fn fail(snapshot: &ClaimSnapshot, reason: &'static str, message: &str) -> ClaimPlan {
    let claim = &snapshot.claim;
    let status = failure(
        claim,
        &snapshot.pool,
        &snapshot.resolved_spec,
        reason,
        message,
        snapshot.now,
    );
    write(claim, status)
}

fn expire(snapshot: &ClaimSnapshot, message: &str) -> ClaimPlan {
    let (claim, now) = (&snapshot.claim, snapshot.now);
    let status = ended(
        claim,
        &snapshot.pool,
        &snapshot.resolved_spec,
        Phase::Expired,
        now,
    );
    let statements = say::unbound(reasons::EXPIRED, message);
    write(claim, say::with_conditions(claim, status, statements, now))
}

/// Pods of the claim that its status does not name.
fn unpublished(snapshot: &ClaimSnapshot) -> Vec<Arc<Sandbox>> {
    let published: HashSet<&str> = snapshot
        .claim
        .status
        .sandboxes
        .iter()
        .map(|s| s.uid.as_str())
        .collect();
    let unknown = |s: &&Arc<Sandbox>| !s.terminating && !published.contains(s.uid.as_str());
    snapshot.sandboxes.iter().filter(unknown).cloned().collect()
}

fn write(claim: &Claim, status: SandboxClaimStatus) -> ClaimPlan {
    let status = (status != claim.status).then(|| Box::new(status));
    ClaimPlan {
        status,
        ..Default::default()
    }
}
