//! Reconciles a pool: snapshot, plan and commit under one lock, then send what follows.

use crate::cache::index::Index;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::snapshot::PoolSnapshot;
use crate::controllers::commit::{self, Committed};
use crate::controllers::context::{Context, requeue_at};
use crate::model::Key;
use crate::model::stored::{self, StoredPool};
use crate::planner::{self, Plan, plan_pace};
use crate::telemetry::metrics::Metrics;
use jiff::Timestamp;
use kube::runtime::controller::Action;
use std::convert::Infallible;
use std::sync::Arc;

/// Brings a pool one step nearer to its spec. It waits for no request.
///
/// # Errors
/// None: the outcome of a write is part of the next snapshot.
pub async fn reconcile(pool: Arc<StoredPool>, context: Arc<Context>) -> Result<Action, Infallible> {
    let key = stored::key(&pool.metadata);
    let now = context.shared.now();
    let next = step(&context, &key, now);
    Ok(requeue_at(now, next))
}

/// Decides on one pool and sends what follows. Returns when time alone changes the plan.
pub fn step(context: &Context, key: &Key, now: Timestamp) -> Option<Timestamp> {
    let metrics = &context.executor.metrics;
    let _timed = metrics.reconciling(ReconcileRequest::Pool(key.clone()));
    if !context.shared.synced() {
        return None;
    }
    let seed = (context.shared.inputs.seed)();
    let committed = decide_in_turn(&mut context.shared.lock(), key, now, seed, metrics);
    context.follow(committed)
}

/// Decides on one pool, unless that is postponed.
pub fn decide_in_turn(
    index: &mut Index,
    key: &Key,
    now: Timestamp,
    seed: u64,
    metrics: &Metrics,
) -> Committed {
    if let Some(at) = plan_pace::postponed(index, key, now) {
        return Committed {
            next: Some(at),
            ..Committed::default()
        };
    }
    let committed = decide(index, key, now, seed, metrics);
    if let Some(pool) = index.pool(key)
        && let Some(memory) = index.pool_memory_mut(&pool)
    {
        memory.planned_at = Some(now);
    }
    committed
}

/// Decides on one pool: snapshot, plan, commit. The requests that follow are queued.
pub fn decide(index: &mut Index, key: &Key, now: Timestamp, seed: u64, metrics: &Metrics) -> Committed {
    let Some(snapshot) = planner::pool_snapshot(index, key, now, seed) else {
        return Committed::default();
    };
    let plan = metrics.planning(|| planner::plan(&snapshot));
    log_warm_up_failures(&snapshot, &plan);
    commit::pool_plan(index, &snapshot, plan)
}

fn log_warm_up_failures(snapshot: &PoolSnapshot, plan: &Plan) {
    for (revision, failures) in &plan.failures {
        if snapshot.failures.get(revision) != Some(failures) {
            let (times, reason) = (failures.count, &failures.not_running_reason);
            tracing::warn!(pool = %snapshot.key(), revision, times, not_running_reason = reason, "sandboxes failed to become available");
        }
    }
}
