//! Claimed sandboxes that cannot stay on their nodes: what the claim says of them, and when they may be evicted.

use crate::api::SandboxClaimStatus;
use crate::api::claim::Disruption;
use crate::api::conditions::{self, DISRUPTION_PENDING, Statement, Truth};
use crate::cache::snapshot::ClaimSnapshot;
use crate::model::disruption_mark::DisruptionMark;
use crate::model::leaving_reason::{Leaving, LeavingReason};
use crate::model::sandbox::Sandbox;
use crate::planner::claim::claim_plan::ClaimPlan;
use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use std::sync::Arc;

/// Adds to the plan of a claim what its sandboxes on leaving nodes need, whether the claim is bound, waits for a
/// replacement or has ended: a drain waits for the sandbox, not for the claim.
pub(crate) fn follow(snapshot: &ClaimSnapshot, mut plan: ClaimPlan) -> ClaimPlan {
    if plan.delete {
        return plan;
    }
    let kept = kept(snapshot, &plan.release);
    plan.marks = marks(snapshot, &kept);
    plan.next = plan.next.into_iter().chain(next(snapshot, &kept)).min();
    // While a binding is decided, the status is its own.
    if !snapshot.binding && plan.replacements.is_empty() {
        plan.status = with_statement(snapshot, plan.status, statement(snapshot, &kept));
    }
    plan
}

/// The published sandboxes that run and are not to be deleted.
fn kept(snapshot: &ClaimSnapshot, released: &[Arc<Sandbox>]) -> Vec<Arc<Sandbox>> {
    let is_released = |sandbox: &Sandbox| released.iter().any(|released| released.uid == sandbox.uid);
    let is_kept = |sandbox: &&Arc<Sandbox>| {
        snapshot.claim.lists(sandbox) && !sandbox.terminating && !sandbox.finished() && !is_released(sandbox)
    };
    snapshot.sandboxes.iter().filter(is_kept).cloned().collect()
}

/// The condition `DisruptionPending`, while a sandbox of the claim cannot stay on its node. It names the first.
fn statement(snapshot: &ClaimSnapshot, kept: &[Arc<Sandbox>]) -> Option<Statement> {
    let mut leaving = kept.iter().filter_map(|s| Some((s, leaving(snapshot, s)?)));
    let (sandbox, leaving) = leaving.next()?;
    Some(Statement {
        type_: DISRUPTION_PENDING,
        status: Truth::True,
        reason: leaving.reason.as_str(),
        message: format!(
            "sandbox {} cannot stay on node {}: {}; {}",
            sandbox.key.name,
            sandbox.node.as_deref().unwrap_or_default(),
            leaving.reason.clause(),
            until_when(snapshot, sandbox)
        ),
    })
}

/// The status to write so that the claim makes this statement, or none.
fn with_statement(
    snapshot: &ClaimSnapshot,
    planned: Option<Box<SandboxClaimStatus>>,
    statement: Option<Statement>,
) -> Option<Box<SandboxClaimStatus>> {
    let claim = &snapshot.claim;
    let stored = conditions::find(&claim.status.conditions, DISRUPTION_PENDING);
    if statement.is_none() && stored.is_none() {
        return planned;
    }
    let mut status = planned.unwrap_or_else(|| Box::new(claim.status.clone()));
    status.conditions.retain(|c| c.type_ != DISRUPTION_PENDING);
    let set = |statement| {
        let generation = Some(claim.generation);
        conditions::set(&claim.status.conditions, statement, generation, snapshot.now)
    };
    status.conditions.extend(statement.map(set));
    (*status != claim.status).then_some(status)
}

/// The marks to be written on the sandboxes of a claim that gives its tenant a grace. The first says when the grace
/// ends, the second that the sandbox may be evicted; a node that stays after all takes both back.
fn marks(snapshot: &ClaimSnapshot, kept: &[Arc<Sandbox>]) -> Vec<(Arc<Sandbox>, DisruptionMark)> {
    if snapshot.resolved_spec.disruption != Disruption::Notify {
        return Vec::new();
    }
    let marks = kept
        .iter()
        .map(|sandbox| (Arc::clone(sandbox), mark(snapshot, sandbox)));
    marks
        .filter(|(sandbox, mark)| sandbox.disruption_mark() != *mark)
        .collect()
}

/// When the next grace ends.
fn next(snapshot: &ClaimSnapshot, kept: &[Arc<Sandbox>]) -> Option<Timestamp> {
    let deadlines = kept.iter().filter_map(|sandbox| sandbox.disruption_deadline);
    deadlines.filter(|deadline| *deadline > snapshot.now).min()
}

fn mark(snapshot: &ClaimSnapshot, sandbox: &Sandbox) -> DisruptionMark {
    if leaving(snapshot, sandbox).is_none() {
        return DisruptionMark::default();
    }
    // The annotation has whole seconds, and the grace is a promise of at least so many.
    let end = snapshot.now.checked_add(snapshot.resolved_spec.disruption_grace);
    let end =
        end.and_then(|end| end.round(TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Ceil)));
    // The annotation remembers the grace across restarts.
    let deadline = sandbox.disruption_deadline.or(end.ok());
    DisruptionMark {
        deadline,
        allowed: deadline.is_some_and(|deadline| deadline <= snapshot.now),
    }
}

/// Why the sandbox cannot stay on its node. The label that asks for a replacement is for unclaimed sandboxes alone.
fn leaving(snapshot: &ClaimSnapshot, sandbox: &Sandbox) -> Option<Leaving> {
    let leaving = snapshot.nodes.leaving(sandbox, snapshot.now)?;
    (leaving.reason != LeavingReason::EvictRequested).then_some(leaving)
}

fn until_when(snapshot: &ClaimSnapshot, sandbox: &Sandbox) -> String {
    let spec = &snapshot.resolved_spec;
    match (spec.disruption, sandbox.disruption_deadline) {
        (Disruption::Block, _) => match snapshot.claim.lets_go(spec) {
            Some(end) => format!(
                "disruption is Block, so nothing evicts it before the claim {end}; delete the claim to let it go"
            ),
            None => "disruption is Block, so nothing evicts it; delete the claim to let it go".into(),
        },
        (Disruption::Allow, _) => "disruption is Allow, so it may be evicted at any time".into(),
        (Disruption::Notify, Some(deadline)) => {
            format!("disruption is Notify, so it may be evicted from {deadline} on")
        }
        (Disruption::Notify, None) => format!(
            "disruption is Notify, so it may be evicted in disruptionGracePeriodSeconds ({})",
            spec.disruption_grace.as_secs()
        ),
    }
}
