//! Reconciling a pool: observe, plan, apply.

use crate::api::PoolStatus;
use crate::cache::index::ReconcileRequest;
use crate::cache::snapshot::PoolSnapshot;
use crate::controllers::{Context, requeue};
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

/// Brings a pool one step nearer to its goal. It sends no request itself and waits for none.
///
/// # Errors
/// None: what a write meets is part of the next view.
pub async fn reconcile(pool: Arc<StoredPool>, context: Arc<Context>) -> Result<Action, Infallible> {
    let key = stored::key(&pool.metadata);
    let _timed = context
        .writer
        .metrics
        .reconciling(ReconcileRequest::Pool(key.clone()));
    let now = context.shared.now();
    let next = step(&context, &key, now);
    Ok(requeue(now, next))
}

/// Decides on one pool and starts all that follows. Answers when time alone will have changed something.
pub fn step(context: &Context, key: &Key, now: Timestamp) -> Option<Timestamp> {
    let snapshot = observe(context, key, now)?;
    let plan = context.writer.metrics.planning(|| planner::plan(&snapshot));
    apply(context, &snapshot, plan)
}

fn observe(context: &Context, key: &Key, now: Timestamp) -> Option<PoolSnapshot> {
    if !context.shared.synced() {
        return None;
    }
    let index = context.shared.lock();
    let pool = index.pool(key).filter(|p| !p.terminating)?;
    index.pool_snapshot(&pool.key, now, (context.shared.inputs.seed)())
}

fn apply(context: &Context, snapshot: &PoolSnapshot, plan: Plan) -> Option<Timestamp> {
    context.writer.dispatch(snapshot, &plan);
    let changed_verdicts = context.shared.lock().record_wait_reasons(snapshot, plan.waiting);
    context.writer.trigger(changed_verdicts);
    let mut newly_chosen = context.shared.lock().assign_pools(&snapshot.selected_pools);
    newly_chosen.retain(|other| *other != ReconcileRequest::Pool(snapshot.key().clone()));
    context.writer.trigger(newly_chosen);
    let due = publish(context, snapshot, plan.status);
    [plan.next, due].into_iter().flatten().min()
}

/// Writes the status if it says something new and the last write is long enough ago. Returns when to try again.
fn publish(context: &Context, snapshot: &PoolSnapshot, status: PoolStatus) -> Option<Timestamp> {
    let pool = &snapshot.pool;
    let mut index = context.shared.lock();
    if status == pool.status || index.awaits(&pool.uid) {
        return None;
    }
    let memory = index.pool_memory_mut(pool)?;
    if let Some(due) = memory.status_due(snapshot.now) {
        return Some(due);
    }
    memory.note_status_write(snapshot.now);
    drop(index);
    context.writer.start(Task::PublishPool {
        pool: Arc::clone(pool),
        status: Box::new(status),
    });
    None
}
