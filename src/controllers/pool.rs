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
use jiff::{SignedDuration, Timestamp};
use kube::runtime::controller::Action;
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

/// Least time between two writes of one pool's status. Claims and rollouts change it many times a second;
/// nobody reads it as fast, and each write takes the API server as long as a binding.
const STATUS_INTERVAL: SignedDuration = SignedDuration::from_secs(1);

/// When each pool's status was written last, by UID.
#[derive(Debug, Default)]
pub struct Statuses(Mutex<HashMap<String, Timestamp>>);

impl Clone for Statuses {
    fn clone(&self) -> Self {
        let written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Self(Mutex::new(written.clone()))
    }
}

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
    let creation = context.writer.backoff().of(&pool, now);
    index.pool_snapshot(key, now, (context.shared.inputs.seed)(), creation)
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

/// Writes the status if it says something new, but not more often than [`STATUS_INTERVAL`]. Answers when to
/// look again.
fn publish(context: &Context, snapshot: &PoolSnapshot, status: PoolStatus) -> Option<Timestamp> {
    let pool = &snapshot.pool;
    if status == pool.status || context.shared.lock().awaits(&pool.uid) {
        return None;
    }
    let mut written = context.statuses.0.lock().unwrap_or_else(PoisonError::into_inner);
    let due = written
        .get(&pool.uid)
        .and_then(|last| last.checked_add(STATUS_INTERVAL).ok());
    // A clock that was set back must not silence the status.
    if let Some(due) =
        due.filter(|due| *due > snapshot.now && due.duration_since(snapshot.now) <= STATUS_INTERVAL)
    {
        return Some(due);
    }
    written.retain(|_, last| snapshot.now.duration_since(*last) < STATUS_INTERVAL);
    written.insert(pool.uid.clone(), snapshot.now);
    context.writer.start(Task::PublishPool {
        pool: Arc::clone(pool),
        status: Box::new(status),
    });
    None
}
