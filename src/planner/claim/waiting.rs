//! A claim without all its sandboxes: it is published once it holds them, and says meanwhile why it waits.

use crate::api::claim::OnEmpty;
use crate::api::conditions;
use crate::api::conditions::claim as reasons;
use crate::cache::snapshot::{ClaimView, Server};
use crate::model::claim::{Claim, Target};
use crate::model::sandbox::Sandbox;
use crate::planner::claim::{ClaimPlan, binding, bound, expire, fail, pending, unpublished, write};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

/// How long a claim waits before its status says so. Most wait less, and a write saved here is a binding
/// served sooner there.
const PATIENCE: SignedDuration = SignedDuration::from_millis(500);

pub(crate) fn plan(view: &ClaimView) -> ClaimPlan {
    let claim = &view.claim;
    if let Some(end) = claim.expiration().filter(|time| *time <= view.now) {
        let message = match claim.status.wait_seconds {
            None => format!("shutdownTime {end} came before the claim was bound"),
            Some(_) => bound::lifetime_ended(end),
        };
        return expire(view, &message);
    }
    let usable = usable(view);
    let wanted = claim.wanted();
    let (kept, lost) = bound::kept_and_lost(view);
    let mut plan = if !lost.is_empty() {
        // One that waits for what it has lost to be replaced has lost more.
        bound::lose(view, &kept, &lost)
    } else if let Some(whole) = usable.get(..wanted) {
        let warm = |sandbox: &Sandbox| ready_before(sandbox, claim);
        write(claim, binding(claim, &view.terms, whole, warm, view.now))
    } else {
        wait(view)
    };
    // What has died before it was published is nobody's. What is too many is known once the status tells which are kept.
    plan.release = unpublished(view);
    plan.release.retain(|sandbox| sandbox.finished());
    let end = end(view).filter(|end| *end > view.now);
    plan.next = [plan.next, end].into_iter().flatten().min();
    plan
}

/// When the claim itself has to see to its end. The pool that is there fails it in its time, and one that is not understood
/// fails of itself never.
pub(crate) fn end(view: &ClaimView) -> Option<Timestamp> {
    let deadline = view.claim.deadline(&view.terms);
    let own = deadline.filter(|_| view.claim.spec.is_ok() && view.server != Server::Present);
    [view.claim.expiration(), own].into_iter().flatten().min()
}

/// The pods that the claim holds and may keep, those that its status names and then those that run first, and always in
/// the same order.
fn usable(view: &ClaimView) -> Vec<Arc<Sandbox>> {
    let usable = view.sandboxes.iter().filter(|s| view.claim.keeps(s));
    let mut usable: Vec<_> = usable.cloned().collect();
    usable.sort_by_cached_key(|s| (!view.claim.lists(s), s.ready_since.is_none(), s.key.name.clone()));
    usable
}

/// Whether the sandbox was Ready before the claim came, for a binding whose beginning nobody remembers. The API
/// tells readiness in whole seconds, so one of the same second is taken for later.
fn ready_before(sandbox: &Sandbox, claim: &Claim) -> bool {
    let second = claim.arrived.as_second();
    sandbox
        .ready_since
        .is_some_and(|since| since.as_second() < second)
}

/// Why an unbound claim waits. Written when the reason changes, not as the queue moves: a status write per
/// claim and per step of the queue would cost more than all bindings together.
fn wait(view: &ClaimView) -> ClaimPlan {
    let (claim, now) = (&view.claim, view.now);
    let deadline = claim.deadline(&view.terms);
    let (reason, message) = match (&claim.spec, &view.verdict) {
        (Err(fault), _) => (reasons::INVALID_SPEC, fault.clone()),
        (Ok(_), _) if view.server != Server::Present => {
            let missing = missing(view);
            if deadline.is_some_and(|deadline| deadline <= now) {
                let message = format!("{missing}, and none appeared within waitTimeoutSeconds");
                return fail(view, reasons::WAIT_TIMEOUT, &message);
            }
            if view.terms.on_empty == OnEmpty::Fail {
                let message = format!("{missing}, and onEmpty is Fail");
                return fail(view, reasons::POOL_NOT_FOUND, &message);
            }
            (reasons::POOL_NOT_FOUND, missing)
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
    let said =
        conditions::find(&claim.status.conditions, conditions::BOUND).is_some_and(|c| c.reason == reason);
    if said && claim.status.observed_generation == claim.generation {
        return ClaimPlan::default();
    }
    write(claim, pending(claim, reason, &message, now))
}

fn missing(view: &ClaimView) -> String {
    let namespace = &view.claim.key.namespace;
    match &view.claim.target {
        Target::Pool(name) if view.server == Server::Terminating => {
            format!("pool {name} in namespace {namespace} is being deleted")
        }
        Target::Pool(name) => format!("pool {name} does not exist in namespace {namespace}"),
        Target::AnyWith(_) if !view.sandboxes.is_empty() => {
            format!(
                "the pool in namespace {namespace} whose sandboxes the claim holds is gone or being deleted"
            )
        }
        Target::AnyWith(_) if view.server == Server::Terminating => {
            format!("every pool in namespace {namespace} that would do is being deleted")
        }
        Target::AnyWith(labels) => {
            let labels: Vec<_> = labels
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect();
            format!(
                "no pool in namespace {namespace} has the labels {}",
                labels.join(",")
            )
        }
    }
}
