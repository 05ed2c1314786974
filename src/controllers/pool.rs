//! Reconciles a pool: snapshot, plan and commit under one lock, then start what follows.

use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::snapshot::PoolSnapshot;
use crate::controllers::commit;
use crate::controllers::context::{Context, requeue_at};
use crate::model::Key;
use crate::model::stored::{self, StoredPool};
use crate::planner::{self, Plan};
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
    let _timed = context
        .executor
        .metrics
        .reconciling(ReconcileRequest::Pool(key.clone()));
    let now = context.shared.now();
    let next = step(&context, &key, now);
    Ok(requeue_at(now, next))
}

/// Decides on one pool and starts what follows. Returns when time alone changes the plan.
pub fn step(context: &Context, key: &Key, now: Timestamp) -> Option<Timestamp> {
    if !context.shared.synced() {
        return None;
    }
    let mut index = context.shared.lock();
    let pool = index.pool(key).filter(|pool| !pool.terminating)?;
    let snapshot = index.pool_snapshot(&pool.key, now, (context.shared.inputs.seed)())?;
    let plan = context.executor.metrics.planning(|| planner::plan(&snapshot));
    log_warm_up_failures(&snapshot, &plan);
    let committed = commit::pool_plan(&mut index, &snapshot, plan);
    drop(index);
    context.follow(committed)
}

fn log_warm_up_failures(snapshot: &PoolSnapshot, plan: &Plan) {
    for (revision, failures) in &plan.failures {
        if snapshot.failures.get(revision) != Some(failures) {
            let (times, reason) = (failures.count, &failures.not_running_reason);
            tracing::warn!(pool = %snapshot.key(), revision, times, not_running_reason = reason, "sandboxes failed to become available");
        }
    }
}
