//! A claim without all its sandboxes: when it is published, and why it waits.

use crate::api::claim::OnEmpty;
use crate::api::conditions as api_conditions;
use crate::api::conditions::claim as reasons;
use crate::cache::snapshot::{ClaimSnapshot, PoolPresence};
use crate::model::claim::Target;
use crate::model::queue_position::without_position;
use crate::model::sandbox::Sandbox;
use crate::model::warming_reason::is_no_news;
use crate::planner::claim::bound;
use crate::planner::claim::bound::binding;
use crate::planner::claim::claim_plan::{ClaimPlan, unpublished};
use crate::planner::claim::finished::{expire, fail};
use crate::planner::claim::status::pending;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

/// How long a claim waits before its status says so. Most claims wait less, and a write that is saved lets another
/// claim be bound sooner.
const PATIENCE: SignedDuration = SignedDuration::from_millis(500);

/// What to do about a pool that no operator serves.
const HOW_TO_SERVE: &str = ": start the operator of its shard, or give the pool labels that the --pool-selector of an operator selects";

/// When a claim that has ended is planned again while a binding is in flight, or while its outcome is unknown.
const REQUEUE_AFTER: SignedDuration = SignedDuration::from_secs(5);

pub(crate) fn plan(snapshot: &ClaimSnapshot) -> ClaimPlan {
    let claim = &snapshot.claim;
    if let Some(end) = claim.expires_at().filter(|time| *time <= snapshot.now) {
        let message = match claim.status.wait_seconds {
            None => format!("shutdownTime {end} came before the claim was bound"),
            Some(_) => bound::lifetime_ended(claim),
        };
        return expire(snapshot, &message);
    }
    let usable = usable(snapshot);
    let wanted = claim.wanted();
    let (kept, lost) = bound::kept_and_lost(snapshot);
    let mut plan = if let Some(message) = &snapshot.invalid_metadata {
        let message = format!("podMetadata cannot be added to a sandbox: {message}");
        fail(snapshot, reasons::INVALID_SPEC, &message)
    } else if !lost.is_empty() {
        // The claim waits for the replacement of a lost sandbox and has lost another.
        bound::lose(snapshot, &kept, &lost)
    } else if let Some(whole) = usable.get(..wanted) {
        publish(snapshot, whole)
    } else {
        wait(snapshot)
    };
    // A sandbox that ended before it was published is of no use. Surplus sandboxes are released after the status is
    // published, because only the status says which ones the claim keeps.
    plan.release = unpublished(snapshot);
    plan.release.retain(|sandbox| sandbox.finished());
    let end = end(snapshot).filter(|end| *end > snapshot.now);
    plan.next = [plan.next, end].into_iter().flatten().min();
    plan
}

/// Publishes `whole`, the sandboxes that the claim is to have. A second leader may still see the claim as bound, and
/// delete sandboxes that its status does not list. So a replacement sandbox first records the version of the claim on
/// which it was chosen: a deletion in flight then fails, and no other follows while the claim has that version. The
/// status is written on that version only.
fn publish(snapshot: &ClaimSnapshot, whole: &[Arc<Sandbox>]) -> ClaimPlan {
    let claim = &snapshot.claim;
    let is_unmarked = |s: &&Arc<Sandbox>| claim.was_bound() && !claim.lists(s) && !claim.has_chosen(s);
    let replacements: Vec<_> = whole.iter().filter(is_unmarked).cloned().collect();
    if !replacements.is_empty() {
        return ClaimPlan {
            replacements,
            ..ClaimPlan::default()
        };
    }
    let warm = |sandbox: &Sandbox| was_warm(snapshot, sandbox);
    let (spec, nodes) = (&snapshot.resolved_spec, &snapshot.nodes);
    ClaimPlan::write(claim, binding(claim, spec, whole, nodes, warm, snapshot.now))
}

/// The plan while bindings are in flight: their answers decide. What keeps a binding from happening is said meanwhile.
pub(crate) fn being_bound(snapshot: &ClaimSnapshot) -> ClaimPlan {
    let reason = snapshot.wait_reason.as_ref().map(|why| why.reason);
    let plan = match reason {
        Some(reasons::BINDING_REFUSED) => wait(snapshot),
        _ => ClaimPlan::default(),
    };
    ClaimPlan {
        next: end(snapshot).map(|end| end.max(snapshot.now + REQUEUE_AFTER)),
        ..plan
    }
}

/// When the claim's own plan ends it. A pool that is present fails its waiting claims itself, and a claim that is not
/// understood never times out.
fn end(snapshot: &ClaimSnapshot) -> Option<Timestamp> {
    let deadline = snapshot.claim.deadline(&snapshot.resolved_spec);
    let own =
        deadline.filter(|_| snapshot.claim.spec.is_ok() && snapshot.pool_presence != PoolPresence::Present);
    [snapshot.claim.expires_at(), own].into_iter().flatten().min()
}

/// The pods that the claim holds and may keep: those that its status names first, then Ready ones, then by name.
fn usable(snapshot: &ClaimSnapshot) -> Vec<Arc<Sandbox>> {
    let usable = snapshot.sandboxes.iter().filter(|s| snapshot.claim.keeps(s));
    let mut usable: Vec<_> = usable.cloned().collect();
    usable.sort_by_cached_key(|s| {
        (
            !snapshot.claim.lists(s),
            s.ready_since.is_none(),
            s.key.name.clone(),
        )
    });
    usable
}

/// Whether the sandbox was available when the claim was created. The API stores both times in whole seconds, so a
/// sandbox that became available in the second of the creation counts only for a claim that is known not to have waited.
/// The time at which this process saw the claim says less: a busy process sees it late.
fn was_warm(snapshot: &ClaimSnapshot, sandbox: &Sandbox) -> bool {
    let created = snapshot.claim.created.as_second();
    let latest = if snapshot.bound_at_once {
        created
    } else {
        created - 1
    };
    let available = match &snapshot.availability_rule {
        Some(rule) => sandbox.up_at(rule),
        None => sandbox.ready_since,
    };
    available.is_some_and(|at| at.as_second() <= latest)
}

/// Says why an unbound claim waits. The status is written when the reason changes, not when the queue moves: a write
/// for each claim and each move would cost more than all bindings together.
fn wait(snapshot: &ClaimSnapshot) -> ClaimPlan {
    let (claim, now) = (&snapshot.claim, snapshot.now);
    let deadline = claim.deadline(&snapshot.resolved_spec);
    let (reason, message, position) = match (&claim.spec, &snapshot.wait_reason) {
        (Err(error), _) => (reasons::INVALID_SPEC, error.clone(), None),
        (Ok(_), _) if snapshot.pool_presence != PoolPresence::Present => {
            let missing = missing(snapshot);
            let (reason, hint) = match snapshot.pool_presence {
                PoolPresence::Elsewhere => (reasons::POOL_NOT_SERVED, HOW_TO_SERVE),
                _ => (reasons::POOL_NOT_FOUND, ""),
            };
            if deadline.is_some_and(|deadline| deadline <= now) {
                let message = format!("{missing}, and none appeared within waitTimeoutSeconds");
                return fail(snapshot, reasons::WAIT_TIMEOUT, &message);
            }
            if snapshot.resolved_spec.on_empty == OnEmpty::Fail {
                let message = format!("{missing}, and onEmpty is Fail");
                return fail(snapshot, reason, &message);
            }
            (reason, missing + hint, None)
        }
        (Ok(_), Some(why)) => (why.reason, why.message.to_string(), why.position),
        (Ok(_), None) => return ClaimPlan::default(),
    };
    // A rejected binding needs a person, so the status shows it at once.
    let patience = match reason {
        reasons::BINDING_REFUSED => now,
        _ => claim.arrived.checked_add(PATIENCE).unwrap_or(now),
    };
    if claim.status.phase.is_none() && now < patience {
        return ClaimPlan {
            next: Some(patience),
            ..Default::default()
        };
    }
    // The API server may say the same of each try in other words.
    let is_same =
        |stored: &str| reason == reasons::BINDING_REFUSED || is_no_news(&message, without_position(stored));
    let said = api_conditions::find(&claim.status.conditions, api_conditions::BOUND)
        .is_some_and(|c| c.reason == reason && is_same(&c.message));
    if said && claim.status.observed_generation == claim.generation {
        return ClaimPlan::default();
    }
    let message = position.map_or(message.clone(), |position| position.append_to(&message));
    ClaimPlan::write(claim, pending(claim, reason, &message, now))
}

fn missing(snapshot: &ClaimSnapshot) -> String {
    let namespace = &snapshot.claim.key.namespace;
    match &snapshot.claim.target {
        Target::Pool(name) if snapshot.pool_presence == PoolPresence::Elsewhere => {
            format!("no operator serves pool {name} in namespace {namespace}")
        }
        Target::AnyWith(_) if snapshot.pool_presence == PoolPresence::Elsewhere => {
            format!("no operator serves the pool in namespace {namespace} that poolSelector selects")
        }
        Target::Pool(name) if snapshot.pool_presence == PoolPresence::Terminating => {
            format!("pool {name} in namespace {namespace} is being deleted")
        }
        Target::Pool(name) => format!("pool {name} does not exist in namespace {namespace}"),
        Target::AnyWith(_) if !snapshot.sandboxes.is_empty() => {
            format!(
                "the pool in namespace {namespace} whose sandboxes the claim holds is gone or being deleted"
            )
        }
        Target::AnyWith(_) if snapshot.pool_presence == PoolPresence::Terminating => {
            format!("every pool in namespace {namespace} that poolSelector selects is being deleted")
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
