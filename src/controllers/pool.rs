//! Reconciles a pool: snapshot, plan, dispatch.

use crate::api::PoolStatus;
use crate::cache::index::ReconcileRequest;
use crate::cache::snapshot::PoolSnapshot;
use crate::controllers::context::{Context, requeue_at};
use crate::executor::task::Task;
use crate::model::Key;
use crate::model::stored;
use crate::model::stored::StoredPool;
use crate::planner;
use crate::planner::Plan;
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

/// Plans for one pool and starts the tasks. Returns when time alone will change the plan.
pub fn step(context: &Context, key: &Key, now: Timestamp) -> Option<Timestamp> {
    let snapshot = observe(context, key, now)?;
    let plan = context.executor.metrics.planning(|| planner::plan(&snapshot));
    apply(context, &snapshot, plan)
}

fn observe(context: &Context, key: &Key, now: Timestamp) -> Option<PoolSnapshot> {
    if !context.shared.synced() {
        return None;
    }
    let index = context.shared.lock();
    let pool = index.pool(key).filter(|p| !p.terminating)?;
    let creation = context.executor.backoff().of(&pool, now);
    index.pool_snapshot(key, now, (context.shared.inputs.seed)(), creation)
}

fn apply(context: &Context, snapshot: &PoolSnapshot, plan: Plan) -> Option<Timestamp> {
    context.executor.dispatch(snapshot, &plan);
    let changed_claims = context.shared.lock().record_wait_reasons(snapshot, plan.waiting);
    context.executor.trigger(changed_claims);
    let mut newly_assigned = context.shared.lock().assign_pools(&snapshot.selected_pools);
    newly_assigned.retain(|other| *other != ReconcileRequest::Pool(snapshot.key().clone()));
    context.executor.trigger(newly_assigned);
    let due = publish(context, snapshot, plan.status);
    [plan.next, due].into_iter().flatten().min()
}

/// Writes the status if it differs, at most once per [`INTERVAL`](crate::controllers::status_interval::INTERVAL). Returns
/// when it may be written otherwise.
fn publish(context: &Context, snapshot: &PoolSnapshot, status: PoolStatus) -> Option<Timestamp> {
    let pool = &snapshot.pool;
    if status == pool.status || context.shared.lock().awaits(&pool.uid) {
        return None;
    }
    if let Err(due) = context.statuses.start_write(&pool.uid, snapshot.now) {
        return Some(due);
    }
    context.executor.start(Task::PublishPool {
        pool: Arc::clone(pool),
        status: Box::new(status),
    });
    None
}
