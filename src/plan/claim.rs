//! What to do about one claim, beyond the binding itself: its status follows its pod, half-done bindings are
//! finished, pods it may not keep are released, and a claim whose pool is missing says so.

use crate::api::claim::{BoundSandbox, Phase};
use crate::api::conditions::{self, Statement, Truth, claim as reasons};
use crate::api::{SandboxClaimStatus, claim::OnEmpty};
use crate::observe::claim::Claim;
use crate::observe::sandbox::{PodPhase, Sandbox};
use crate::observe::view::ClaimView;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::sync::Arc;

/// How long a claim waits before its status says so. Most wait less, and a write saved here is a binding
/// served sooner there.
const PATIENCE: SignedDuration = SignedDuration::from_millis(500);

/// What to do about a claim now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimPlan {
    /// The status to write, when it differs from the stored one.
    pub status: Option<Box<SandboxClaimStatus>>,
    /// Pods of the claim that it may not keep: a second one bound by a second leader, or one bound while the
    /// claim failed. None of them was ever published to the tenant.
    pub release: Vec<Arc<Sandbox>>,
    /// The published sandbox is not seen any more; a live read has to confirm that before `status` is written.
    pub confirm_loss: Option<BoundSandbox>,
    /// When time alone will change the plan.
    pub next: Option<Timestamp>,
}

/// Plans the next writes for the claim of `view`.
pub fn plan(view: &ClaimView) -> ClaimPlan {
    let claim = &view.claim;
    if claim.terminating {
        return ClaimPlan::default();
    }
    match claim.status.phase {
        Some(Phase::Failed) => ClaimPlan {
            release: unpublished(view),
            ..Default::default()
        },
        Some(Phase::Bound) => bound(view),
        None | Some(Phase::Pending) if view.binding => ClaimPlan::default(),
        None | Some(Phase::Pending) => match best(view) {
            Some(sandbox) => write(
                claim,
                binding(claim, sandbox, ready_before(sandbox, claim), view.now),
            ),
            None => waiting(view),
        },
    }
}

/// The status that publishes `sandbox` as the claim's own; `warm` when it was available as the claim came.
pub fn binding(claim: &Claim, sandbox: &Sandbox, warm: bool, now: Timestamp) -> SandboxClaimStatus {
    let waited = now.duration_since(claim.arrived).max(SignedDuration::ZERO);
    let status = SandboxClaimStatus {
        phase: Some(Phase::Bound),
        observed_generation: claim.generation,
        pool: sandbox.pool.clone(),
        sandboxes: vec![BoundSandbox {
            name: sandbox.key.name.clone(),
            uid: sandbox.uid.clone(),
            ip: sandbox.ip.clone(),
            node: sandbox.node.clone().unwrap_or_default(),
            revision: sandbox.revision.clone(),
            bound_time: Time(now),
            warm,
        }],
        wait_seconds: Some(waited.as_millis_f64().round() / 1000.0),
        wait: shown(waited.as_millis()),
        conditions: Vec::new(),
    };
    with_conditions(
        claim,
        status,
        vec![say_bound(&sandbox.key.name), readiness(sandbox)],
        now,
    )
}

/// The status of a claim that ends without keeping a sandbox.
pub fn failure(claim: &Claim, reason: &'static str, message: &str, now: Timestamp) -> SandboxClaimStatus {
    let mut status = claim.status.clone();
    status.phase = Some(Phase::Failed);
    status.observed_generation = claim.generation;
    if status.pool.is_empty() {
        status.pool.clone_from(&claim.pool);
    }
    with_conditions(claim, status, unbound(reason, message), now)
}

/// A bound claim: its status follows its pod.
fn bound(view: &ClaimView) -> ClaimPlan {
    let claim = &view.claim;
    let Some(published) = claim.status.sandboxes.first() else {
        return lost(claim, None, view.now);
    };
    let Some(sandbox) = view.sandboxes.iter().find(|s| s.uid == published.uid) else {
        return lost(claim, Some(published), view.now);
    };
    let mut plan = if sandbox.phase == PodPhase::Failed {
        let message = format!(
            "sandbox {} has failed; delete the claim to remove it",
            sandbox.key.name
        );
        write(claim, failure(claim, reasons::SANDBOX_LOST, &message, view.now))
    } else {
        let mut status = claim.status.clone();
        status.observed_generation = claim.generation;
        if let Some(entry) = status.sandboxes.first_mut().filter(|_| !sandbox.ip.is_empty()) {
            entry.ip.clone_from(&sandbox.ip);
        }
        write(
            claim,
            with_conditions(
                claim,
                status,
                vec![say_bound(&sandbox.key.name), readiness(sandbox)],
                view.now,
            ),
        )
    };
    plan.release = unpublished(view);
    plan
}

fn lost(claim: &Claim, published: Option<&BoundSandbox>, now: Timestamp) -> ClaimPlan {
    let name = published.map_or("of the claim", |p| p.name.as_str());
    let message = format!("sandbox {name} is gone");
    let mut plan = write(claim, failure(claim, reasons::SANDBOX_LOST, &message, now));
    plan.confirm_loss = published.cloned();
    plan
}

/// Why an unbound claim waits. Written when the reason changes, not as the queue moves: a status write per
/// claim and per step of the queue would cost more than all bindings together.
fn waiting(view: &ClaimView) -> ClaimPlan {
    let claim = &view.claim;
    let now = view.now;
    let (reason, message) = match (&claim.spec, &view.verdict) {
        (Err(fault), _) => (reasons::INVALID_SPEC, fault.clone()),
        (Ok(spec), _) if !view.pool_exists => {
            if claim.deadline().is_some_and(|deadline| deadline <= now) {
                let message = format!("pool {} did not appear within waitTimeoutSeconds", claim.pool);
                return write(claim, failure(claim, reasons::WAIT_TIMEOUT, &message, now));
            }
            if spec.on_empty == OnEmpty::Fail {
                let message = format!("pool {} does not exist, and onEmpty is Fail", claim.pool);
                return write(claim, failure(claim, reasons::POOL_NOT_FOUND, &message, now));
            }
            (
                reasons::POOL_NOT_FOUND,
                format!(
                    "pool {} does not exist in namespace {}",
                    claim.pool, claim.key.namespace
                ),
            )
        }
        (Ok(_), Some(verdict)) => (verdict.reason, verdict.message.clone()),
        (Ok(_), None) => return ClaimPlan::default(),
    };
    let patience = claim.arrived.checked_add(PATIENCE).unwrap_or(now);
    if claim.status.phase.is_none() && now < patience {
        return ClaimPlan {
            next: Some(patience),
            ..Default::default()
        };
    }
    let next = claim.deadline().filter(|_| !view.pool_exists);
    let said =
        conditions::find(&claim.status.conditions, conditions::BOUND).is_some_and(|c| c.reason == reason);
    if said && claim.status.observed_generation == claim.generation {
        return ClaimPlan {
            next,
            ..Default::default()
        };
    }
    let status = SandboxClaimStatus {
        phase: Some(Phase::Pending),
        observed_generation: claim.generation,
        pool: claim.pool.clone(),
        ..claim.status.clone()
    };
    ClaimPlan {
        next,
        ..write(
            claim,
            with_conditions(claim, status, unbound(reason, &message), now),
        )
    }
}

/// Pods of the claim that its status does not name.
fn unpublished(view: &ClaimView) -> Vec<Arc<Sandbox>> {
    let published = |uid: &str| view.claim.status.sandboxes.iter().any(|s| s.uid == uid);
    view.sandboxes
        .iter()
        .filter(|s| !s.terminating && !published(&s.uid))
        .cloned()
        .collect()
}

/// The pod to publish for a claim whose binding was left half done: one that runs, and always the same one.
fn best(view: &ClaimView) -> Option<&Arc<Sandbox>> {
    let usable = view.sandboxes.iter().filter(|s| !s.terminating && !s.finished());
    usable.min_by_key(|s| (s.ready_since.is_none(), s.key.name.clone()))
}

/// Whether the sandbox was Ready before the claim came, for a binding whose beginning nobody remembers. The API
/// tells readiness in whole seconds, so one of the same second is taken for later.
fn ready_before(sandbox: &Sandbox, claim: &Claim) -> bool {
    let second = claim.arrived.as_second();
    sandbox
        .ready_since
        .is_some_and(|since| since.as_second() < second)
}

fn write(claim: &Claim, status: SandboxClaimStatus) -> ClaimPlan {
    let status = (status != claim.status).then(|| Box::new(status));
    ClaimPlan {
        status,
        ..Default::default()
    }
}

fn with_conditions(
    claim: &Claim,
    mut status: SandboxClaimStatus,
    statements: Vec<Statement>,
    now: Timestamp,
) -> SandboxClaimStatus {
    let set = |s| conditions::set(&claim.status.conditions, s, Some(claim.generation), now);
    status.conditions = statements.into_iter().map(set).collect();
    status
}

fn say_bound(sandbox: &str) -> Statement {
    let message = format!("sandbox {sandbox} belongs to this claim");
    Statement {
        type_: conditions::BOUND,
        status: Truth::True,
        reason: reasons::BOUND,
        message,
    }
}

fn unbound(reason: &'static str, message: &str) -> Vec<Statement> {
    let message = message.to_string();
    vec![
        Statement {
            type_: conditions::BOUND,
            status: Truth::False,
            reason,
            message: message.clone(),
        },
        Statement {
            type_: conditions::READY,
            status: Truth::False,
            reason: reasons::NOT_BOUND,
            message,
        },
    ]
}

fn readiness(sandbox: &Sandbox) -> Statement {
    let name = &sandbox.key.name;
    let (status, reason, message) = if sandbox.terminating {
        (
            false,
            reasons::SANDBOX_NOT_READY,
            format!("sandbox {name} is being deleted"),
        )
    } else if sandbox.phase == PodPhase::Succeeded {
        (
            false,
            reasons::SANDBOX_COMPLETED,
            format!("sandbox {name} has ended with success"),
        )
    } else if sandbox.ready_since.is_some() {
        (true, reasons::SANDBOX_READY, format!("sandbox {name} is ready"))
    } else {
        (
            false,
            reasons::SANDBOX_NOT_READY,
            format!("sandbox {name} is not ready"),
        )
    };
    Statement {
        type_: conditions::READY,
        status: status.into(),
        reason,
        message,
    }
}

/// A waiting time for the column WAIT: `12ms`, `3.4s`, `2m5s`.
fn shown(milliseconds: i128) -> String {
    match milliseconds {
        ..1_000 => format!("{milliseconds}ms"),
        1_000..60_000 => format!("{}.{}s", milliseconds / 1_000, milliseconds % 1_000 / 100),
        _ => format!("{}m{}s", milliseconds / 60_000, milliseconds / 1_000 % 60),
    }
}
