//! What to do about one claim, beyond the binding itself: its status follows its sandboxes, half-done bindings are
//! finished, pods it may not keep are released, it expires, and in the end it goes.

mod bound;
mod finished;
mod say;
mod waiting;

use crate::api::SandboxClaimStatus;
use crate::api::claim::{BoundSandbox, Phase};
use crate::api::conditions::{self, claim as reasons};
use crate::observe::claim::Claim;
use crate::observe::sandbox::Sandbox;
use crate::observe::terms::Terms;
use crate::observe::view::ClaimView;
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

/// Why pods of the claim that it may not keep are released.
pub fn release_reason(claim: &Claim) -> &'static str {
    match claim.status.phase {
        Some(Phase::Expired) => "ClaimExpired",
        _ => "NotPublished",
    }
}

/// Plans the next writes for the claim of `view`.
pub fn plan(view: &ClaimView) -> ClaimPlan {
    if view.claim.terminating {
        return ClaimPlan::default();
    }
    match view.claim.status.phase {
        Some(Phase::Failed) => finished::failed(view),
        Some(Phase::Expired) => finished::expired(view),
        Some(Phase::Bound) => bound::plan(view),
        None | Some(Phase::Pending) if view.binding => ClaimPlan::default(),
        None | Some(Phase::Pending) => waiting::plan(view),
    }
}

/// The status that publishes `sandboxes`, all that the claim wants, as its own; those for which `warm` holds were available
/// as the claim came.
pub fn binding(
    claim: &Claim,
    terms: &Terms,
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
        bound_time: Time(now),
        warm: warm(sandbox),
    };
    let entry = |sandbox: &Arc<Sandbox>| {
        let stays = before.sandboxes.iter().find(|s| s.uid == sandbox.uid);
        stays.cloned().unwrap_or_else(|| published(sandbox))
    };
    let first = before.wait_seconds.is_none();
    let lifetime = terms.lifetime.and_then(|lifetime| now.checked_add(lifetime).ok());
    let expiration = if first {
        claim.shutdown().or(lifetime)
    } else {
        claim.expiration(terms)
    };
    let status = SandboxClaimStatus {
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
        expiration_time: expiration.map(Time),
        defaults: if first {
            terms.defaults.clone()
        } else {
            before.defaults.clone()
        },
        finish_time: None,
        conditions: Vec::new(),
    };
    let statements = vec![say::bound(sandboxes), say::readiness(sandboxes)];
    say::with_conditions(claim, status, statements, now)
}

/// The status of a claim that waits on.
pub fn pending(
    claim: &Claim,
    terms: &Terms,
    reason: &'static str,
    message: &str,
    now: Timestamp,
) -> SandboxClaimStatus {
    let status = SandboxClaimStatus {
        phase: Some(Phase::Pending),
        observed_generation: claim.generation,
        pool: claim.pool().to_string(),
        expiration_time: claim.expiration(terms).map(Time),
        ..claim.status.clone()
    };
    say::with_conditions(claim, status, say::unbound(reason, message), now)
}

/// What the claim says of the binding that the API server refused last, until it has something else to say.
pub fn refusal(claim: &Claim) -> Option<&str> {
    let said = conditions::find(&claim.status.conditions, conditions::BOUND)?;
    (said.reason == reasons::BINDING_REFUSED).then_some(said.message.as_str())
}

/// The status of a claim that ends without keeping a sandbox.
pub fn failure(claim: &Claim, reason: &'static str, message: &str, now: Timestamp) -> SandboxClaimStatus {
    ended(claim, Phase::Failed, reason, message, now)
}

fn ended(
    claim: &Claim,
    phase: Phase,
    reason: &'static str,
    message: &str,
    now: Timestamp,
) -> SandboxClaimStatus {
    let mut status = claim.status.clone();
    status.phase = Some(phase);
    status.observed_generation = claim.generation;
    status.finish_time = Some(Time(now));
    if status.pool.is_empty() {
        status.pool = claim.pool().to_string();
    }
    say::with_conditions(claim, status, say::unbound(reason, message), now)
}

fn expiry(claim: &Claim, message: &str, now: Timestamp) -> SandboxClaimStatus {
    ended(claim, Phase::Expired, reasons::EXPIRED, message, now)
}

/// Pods of the claim that its status does not name.
fn unpublished(view: &ClaimView) -> Vec<Arc<Sandbox>> {
    let published: HashSet<&str> = view
        .claim
        .status
        .sandboxes
        .iter()
        .map(|s| s.uid.as_str())
        .collect();
    let unknown = |s: &&Arc<Sandbox>| !s.terminating && !published.contains(s.uid.as_str());
    view.sandboxes.iter().filter(unknown).cloned().collect()
}

fn write(claim: &Claim, status: SandboxClaimStatus) -> ClaimPlan {
    let status = (status != claim.status).then(|| Box::new(status));
    ClaimPlan {
        status,
        ..Default::default()
    }
}
