//! A claim that is bound: what its status says at first, and how it follows its sandboxes until it loses one or
//! expires.

use crate::api::SandboxClaimStatus;
use crate::api::claim::{BoundSandbox, OnSandboxLost, Phase};
use crate::api::conditions as api_conditions;
use crate::api::conditions::claim as reasons;
use crate::cache::snapshot::ClaimSnapshot;
use crate::model::claim::Claim;
use crate::model::known_nodes::KnownNodes;
use crate::model::resolved_claim_spec::ResolvedClaimSpec;
use crate::model::sandbox::{PodPhase, Sandbox};
use crate::planner::claim::claim_plan::{ClaimPlan, unpublished};
use crate::planner::claim::finished::{expire, fail};
use crate::planner::claim::{conditions, ready_sandboxes, wait_column};
use jiff::{SignedDuration, Timestamp, Unit};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::collections::HashMap;
use std::sync::Arc;

pub(crate) fn plan(snapshot: &ClaimSnapshot) -> ClaimPlan {
    let claim = &snapshot.claim;
    let expires_at = claim.expires_at();
    if expires_at.is_some_and(|at| at <= snapshot.now) {
        return expire(snapshot, &lifetime_ended(claim));
    }
    let (kept, lost) = kept_and_lost(snapshot);
    let mut plan = if lost.is_empty() && !kept.is_empty() {
        ClaimPlan::write(claim, following(snapshot, &kept))
    } else {
        lose(snapshot, &kept, &lost)
    };
    plan.release = unpublished(snapshot);
    plan.next = expires_at;
    plan
}

/// A published sandbox that the claim still has: the entry of its status, and the pod.
type Kept<'a> = (&'a BoundSandbox, Arc<Sandbox>);
/// A published sandbox that the claim has lost: the entry of its status, and the pod unless it is gone.
type Lost<'a> = (&'a BoundSandbox, Option<&'a Arc<Sandbox>>);

/// The sandboxes that the status lists.
pub(crate) fn kept_and_lost(snapshot: &ClaimSnapshot) -> (Vec<Kept<'_>>, Vec<Lost<'_>>) {
    let seen: HashMap<&str, &Arc<Sandbox>> = snapshot.sandboxes.iter().map(|s| (s.uid.as_str(), s)).collect();
    let (mut kept, mut lost) = (Vec::new(), Vec::new());
    for entry in &snapshot.claim.status.sandboxes {
        match seen.get(entry.uid.as_str()) {
            Some(sandbox) if !is_lost(snapshot, sandbox) => kept.push((entry, Arc::clone(sandbox))),
            sandbox => lost.push((entry, sandbox.copied())),
        }
    }
    (kept, lost)
}

/// Whether a sandbox that still exists is lost. On a node that does not answer, a sandbox may be terminating for ever,
/// so a claim with `onSandboxLost: Replace` does not wait for its end.
fn is_lost(snapshot: &ClaimSnapshot, sandbox: &Sandbox) -> bool {
    let replaced = snapshot.resolved_spec.on_sandbox_lost == OnSandboxLost::Replace;
    sandbox.phase == PodPhase::Failed || (sandbox.terminating && replaced)
}

pub(crate) fn lifetime_ended(claim: &Claim) -> String {
    let end = claim.expiration().map(|end| format!(" at {end}"));
    format!("the lifetime of the claim ended{}", end.unwrap_or_default())
}

fn following(snapshot: &ClaimSnapshot, kept: &[Kept<'_>]) -> SandboxClaimStatus {
    let claim = &snapshot.claim;
    let sandboxes: Vec<_> = kept.iter().map(|(_, sandbox)| Arc::clone(sandbox)).collect();
    let entries: Vec<_> = kept
        .iter()
        .map(|(entry, sandbox)| with_ip(entry, sandbox))
        .collect();
    let status = SandboxClaimStatus {
        observed_generation: claim.generation,
        ready: ready_sandboxes::of_wanted(claim, sandboxes.iter()),
        sandbox_names: ready_sandboxes::names(&entries),
        sandboxes: entries,
        expiration_time: claim.expiration().map(Time),
        ..claim.status.clone()
    };
    let statements = vec![
        conditions::bound(&sandboxes, &snapshot.nodes, snapshot.now),
        conditions::readiness(&sandboxes),
    ];
    conditions::with_conditions(claim, status, statements, snapshot.now)
}

fn with_ip(entry: &BoundSandbox, sandbox: &Sandbox) -> BoundSandbox {
    let mut entry = entry.clone();
    if !sandbox.ip.is_empty() {
        entry.ip = sandbox.ip.to_string();
    }
    entry
}

/// Sandboxes of the claim are gone or have failed: it ends, or it waits again for as many others.
pub(crate) fn lose(snapshot: &ClaimSnapshot, kept: &[Kept<'_>], lost: &[Lost<'_>]) -> ClaimPlan {
    let claim = &snapshot.claim;
    let loss = match lost {
        [(entry, Some(sandbox)), ..] if sandbox.terminating => {
            format!("sandbox {} is being deleted", entry.name)
        }
        [(entry, Some(_)), ..] => format!("sandbox {} has failed", entry.name),
        [(entry, None), ..] => format!("sandbox {} is gone", entry.name),
        [] => "the status names no sandbox".to_string(),
    };
    let gone = lost.iter().filter(|(_, sandbox)| sandbox.is_none());
    let confirm_loss = gone.map(|(entry, _)| (*entry).clone()).collect();
    let plan = match snapshot.resolved_spec.on_sandbox_lost {
        OnSandboxLost::Fail => {
            let failed = lost.iter().any(|(_, sandbox)| sandbox.is_some());
            let hint = if failed {
                "; delete the claim to remove it"
            } else {
                ""
            };
            fail(snapshot, reasons::SANDBOX_LOST, &format!("{loss}{hint}"))
        }
        OnSandboxLost::Replace => {
            let entries: Vec<_> = kept.iter().map(|(entry, _)| (*entry).clone()).collect();
            let status = SandboxClaimStatus {
                phase: Some(Phase::Pending),
                observed_generation: claim.generation,
                ready: ready_sandboxes::of_wanted(claim, kept.iter().map(|(_, sandbox)| sandbox)),
                sandbox_names: ready_sandboxes::names(&entries),
                sandboxes: entries,
                expiration_time: claim.expiration().map(Time),
                ..claim.status.clone()
            };
            let message = format!("{loss} and is being replaced");
            let statements = conditions::unbound(reasons::SANDBOX_LOST, &message);
            ClaimPlan::write(
                claim,
                conditions::with_conditions(claim, status, statements, snapshot.now),
            )
        }
    };
    ClaimPlan { confirm_loss, ..plan }
}

/// How long the claim waited until `now`, to the millisecond.
fn waited(claim: &Claim, now: Timestamp) -> SignedDuration {
    let waited = now.duration_since(claim.arrived).max(SignedDuration::ZERO);
    waited.round(Unit::Millisecond).unwrap_or(waited)
}

/// The status that publishes `sandboxes`, all that the claim wants. `warm` says which of them were available when the
/// claim came, and `nodes` which of them leave their nodes.
pub fn binding(
    claim: &Claim,
    resolved_spec: &ResolvedClaimSpec,
    sandboxes: &[Arc<Sandbox>],
    nodes: &KnownNodes,
    warm: impl Fn(&Sandbox) -> bool,
    now: Timestamp,
) -> SandboxClaimStatus {
    let waited = waited(claim, now);
    let before = &claim.status;
    let published = |sandbox: &Arc<Sandbox>| BoundSandbox {
        name: sandbox.key.name.to_string(),
        uid: sandbox.uid.to_string(),
        ip: sandbox.ip.to_string(),
        node: sandbox.node.as_deref().unwrap_or_default().into(),
        revision: sandbox.revision.to_string(),
        bound_time: Time(api_conditions::whole_seconds(now)),
        warm: warm(sandbox),
    };
    let entry = |sandbox: &Arc<Sandbox>| {
        let stays = before.sandboxes.iter().find(|s| s.uid == sandbox.uid);
        stays.cloned().unwrap_or_else(|| published(sandbox))
    };
    let first = before.wait_seconds.is_none();
    let entries: Vec<_> = sandboxes.iter().map(entry).collect();
    let mut status = SandboxClaimStatus {
        phase: Some(Phase::Bound),
        observed_generation: claim.generation,
        pool: sandboxes.first().map(|s| s.pool.to_string()).unwrap_or_default(),
        ready: ready_sandboxes::of_wanted(claim, sandboxes.iter()),
        reason: String::new(),
        sandbox_names: ready_sandboxes::names(&entries),
        sandboxes: entries,
        wait_seconds: before.wait_seconds.or(Some(waited.as_millis_f64() / 1000.0)),
        wait: if first {
            wait_column::duration(waited)
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
    let statements = vec![
        conditions::bound(sandboxes, nodes, now),
        conditions::readiness(sandboxes),
    ];
    conditions::with_conditions(claim, status, statements, now)
}
