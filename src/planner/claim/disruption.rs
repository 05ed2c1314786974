//! Claimed sandboxes that cannot stay on their nodes: what the claim says of them, and when they may be evicted.

use crate::api::claim::Disruption;
use crate::api::conditions::{self, Statement, Truth};
use crate::cache::snapshot::ClaimSnapshot;
use crate::model::disruption_mark::DisruptionMark;
use crate::model::leaving_reason::{Leaving, LeavingReason};
use crate::model::sandbox::Sandbox;
use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use std::sync::Arc;

/// The condition `DisruptionPending`, while a sandbox of the claim cannot stay on its node. It names the first.
pub(crate) fn statement(snapshot: &ClaimSnapshot, sandboxes: &[Arc<Sandbox>]) -> Option<Statement> {
    let mut leaving = sandboxes.iter().filter_map(|s| Some((s, leaving(snapshot, s)?)));
    let (sandbox, leaving) = leaving.next()?;
    Some(Statement {
        type_: conditions::DISRUPTION_PENDING,
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

/// The marks to be written on the sandboxes of a claim that gives its tenant a grace. The first says when the grace
/// ends, the second that the sandbox may be evicted; a node that stays after all takes both back.
pub(crate) fn marks(
    snapshot: &ClaimSnapshot,
    sandboxes: &[Arc<Sandbox>],
) -> Vec<(Arc<Sandbox>, DisruptionMark)> {
    if snapshot.resolved_spec.disruption != Disruption::Notify {
        return Vec::new();
    }
    let marks = sandboxes.iter().filter(|sandbox| !sandbox.terminating);
    let marks = marks.map(|sandbox| (Arc::clone(sandbox), mark(snapshot, sandbox)));
    marks
        .filter(|(sandbox, mark)| sandbox.disruption_mark() != *mark)
        .collect()
}

/// When the next grace ends.
pub(crate) fn next(snapshot: &ClaimSnapshot, sandboxes: &[Arc<Sandbox>]) -> Option<Timestamp> {
    let deadlines = sandboxes.iter().filter_map(|sandbox| sandbox.disruption_deadline);
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
        (Disruption::Block, _) => match snapshot.claim.expiration() {
            Some(end) => format!(
                "disruption is Block, so nothing evicts it before the claim expires at {end}; delete the claim to let it go"
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
