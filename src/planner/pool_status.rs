//! Phase *status*: what the status of the pool says, from what is seen and not what is planned.

use crate::api::conditions::{self, Statement, Truth, available, exhausted, replica_failure};
use crate::api::{PoolStatus, labels};
use crate::cache::snapshot::Creation;
use crate::model::pool_error::PoolError;
use crate::model::warming_reason::{self, WarmingReason, without_detail};
use crate::planner::autoscale;
use crate::planner::availability_remarks;
use crate::planner::commonest_warming_reason::WarmingReasons;
use crate::planner::desired_counts::Counts;
use crate::planner::draft::Draft;
use crate::planner::observed_counts::{ObservedCounts, number};
use crate::planner::rollout_progress::Progress;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::sync::Arc;

/// Conditions that a pool may have at one time.
const MOST_CONDITIONS: usize = 5;

pub(crate) fn run(draft: &mut Draft, warming_reasons: &WarmingReasons) -> PoolStatus {
    let pool = &draft.snapshot.pool;
    let update = &draft.revisions.update.hash;
    let observed = draft.observed;
    let counts = Counts::of(draft);
    let progress = Progress::of(draft, &counts, &observed);
    for at in [progress.deadline, warming_reasons.next].into_iter().flatten() {
        draft.wake(at);
    }
    let said = &pool.status.current_revision;
    let current = if progress.complete {
        update.clone()
    } else if pool.error.is_some() && said == update {
        // A rollout was undone, and sandboxes have yet to be replaced. While the pool has an error, only the empty
        // value distinguishes this from a complete rollout.
        String::new()
    } else {
        said.clone()
    };
    let why = warming_reasons.commonest(draft.snapshot);
    let mut statements = Vec::with_capacity(MOST_CONDITIONS);
    statements.push(availability(draft, &counts, &observed, why));
    statements.push(progress.statement(draft, &counts, &observed, why));
    if let Some(message) = rejection(draft) {
        statements.push(Statement {
            type_: conditions::REPLICA_FAILURE,
            status: Truth::True,
            reason: replica_failure::FAILED_CREATE,
            message,
        });
    }
    let max = pool.spec.max_total.unwrap_or(usize::MAX);
    let too_large = draft.unserved.iter().any(|waiting| waiting.claim.wanted() > max);
    if too_large || (draft.forbidden > 0 && !draft.unserved.is_empty()) {
        statements.push(Statement {
            type_: conditions::EXHAUSTED,
            status: Truth::True,
            reason: exhausted::MAX_TOTAL,
            message: format!("claims wait, and capacity.maxTotal {max} forbids more sandboxes"),
        });
    }
    statements.extend(autoscale::status::statement(
        draft.snapshot,
        counts.total_capacity_left,
    ));
    let desired_replicas = match pool.error {
        Some(PoolError::Spec(_)) => pool.status.desired_replicas,
        _ => number(pool.spec.replicas),
    };
    let status = PoolStatus {
        observed_generation: pool.generation,
        desired_replicas,
        replicas: number(observed.replicas),
        ready: number(observed.ready),
        available: number(observed.available),
        updated: number(observed.updated),
        updated_available: number(observed.updated_available),
        expected_updated: number(pool.spec.replicas - progress.kept),
        claimed: number(draft.claimed),
        total: number(observed.replicas + draft.claimed + draft.set_aside.len()),
        draining: number(observed.draining),
        pending_claims: number(draft.snapshot.claims.iter().filter(|w| w.waits()).count()),
        current_revision: current,
        update_revision: update.clone(),
        rollout_start_time: draft.rollout_start.map(Time),
        last_progress_time: progress.last.map(Time),
        collision_count: Some(draft.revisions.collision_count).filter(|c| *c > 0),
        autoscaling: autoscale::status::said(draft.snapshot),
        selector: format!(
            "{}={},{}={}",
            labels::POOL,
            pool.key.name,
            labels::STATE,
            labels::WARM
        ),
        conditions: conditions::set_all(
            &pool.status.conditions,
            statements,
            Some(pool.generation),
            draft.snapshot.now,
        ),
    };
    with_said_detail(&pool.status, status)
}

/// Keeps the stored message when only the detail about sandboxes that do not run has changed, because schedulers,
/// kubelets and registries reword it again and again.
fn with_said_detail(stored: &PoolStatus, mut status: PoolStatus) -> PoolStatus {
    let available = |status: &PoolStatus| {
        let mut conditions = status.conditions.iter();
        conditions.find(|c| c.type_ == conditions::AVAILABLE).cloned()
    };
    let (Some(said), Some(now)) = (available(stored), available(&status)) else {
        return status;
    };
    if Arc::ptr_eq(&said, &now) || without_detail(&said.message) != without_detail(&now.message) {
        return status;
    }
    let mut set = |message: &str| {
        let mut conditions = status.conditions.iter_mut();
        if let Some(condition) = conditions.find(|c| c.type_ == conditions::AVAILABLE) {
            Arc::make_mut(condition).message = message.into();
        }
        status == *stored
    };
    if !set(&said.message) {
        set(&now.message);
    }
    status
}

/// The message with which the API server rejects what the pool wants. When the pool wants nothing more, the condition
/// stays until the backoff ends: otherwise selector claims would return to the pool at once.
fn rejection(draft: &mut Draft) -> Option<String> {
    let snapshot = draft.snapshot;
    let Creation::BackOff { until, message } = &snapshot.creation else {
        return None;
    };
    let pauses = *until > snapshot.now;
    let missing = draft.shortfall.missing.min(draft.shortfall.total_headroom);
    let wanted = missing > 0 || !snapshot.creating.is_empty() || draft.revisions.store.is_some();
    if pauses {
        draft.wake(*until);
    }
    (pauses || wanted).then(|| message.clone())
}

/// Whether enough sandboxes are available. A pool that wants any and has none available is of no use to a claim,
/// whatever a rollout may take.
fn availability(
    draft: &Draft,
    counts: &Counts,
    observed: &ObservedCounts,
    why: Option<&WarmingReason>,
) -> Statement {
    let replicas = draft.snapshot.pool.spec.replicas;
    let least = replicas.saturating_sub(counts.budget.max_unavailable);
    let min_available = least.max(replicas.min(1));
    let known = !matches!(draft.snapshot.pool.error, Some(PoolError::Spec(_)));
    let enough = known && observed.available >= min_available;
    Statement {
        type_: conditions::AVAILABLE,
        status: enough.into(),
        reason: if enough {
            available::MINIMUM
        } else {
            available::BELOW_MINIMUM
        },
        message: warming_reason::append(
            &format!(
                "{} of {replicas} unclaimed sandboxes are available, at least {min_available} are wanted{}{}",
                observed.available,
                availability_remarks::clauses(draft),
                set_aside(draft)
            ),
            why.map(WarmingReason::sentence),
        ),
    }
}

/// A clause on the pods of the pool with a state label that the operator does not understand; empty without any.
fn set_aside(draft: &Draft) -> String {
    let Some(first) = draft.set_aside.first() else {
        return String::new();
    };
    let (name, label) = (&first.key.name, labels::STATE);
    let which = match draft.set_aside.len() {
        1 => format!("pod {name} is neither claimed nor deleted"),
        count => format!("{count} pods are neither claimed nor deleted, pod {name} among them"),
    };
    let value = match first.state.as_str() {
        "" => "is missing".to_string(),
        state => format!("is {state:?}"),
    };
    let warm = labels::WARM;
    format!("; {which}: its label {label} {value}; set the label to {warm:?} or delete the pod")
}
