//! Reconciling a pool: observe, plan, apply.

use crate::api::PoolStatus;
use crate::cache::index::Trigger;
use crate::cache::snapshot::PoolView;
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
    let _timed = context.writer.metrics.reconciling(Trigger::Pool(key.clone()));
    let now = context.shared.now();
    let next = step(&context, &key, now);
    Ok(requeue(now, next))
}

/// Decides on one pool and starts all that follows. Answers when time alone will have changed something.
pub fn step(context: &Context, key: &Key, now: Timestamp) -> Option<Timestamp> {
    let view = observe(context, key, now)?;
    let plan = context.writer.metrics.planning(|| planner::plan(&view));
    apply(context, &view, plan)
}

fn observe(context: &Context, key: &Key, now: Timestamp) -> Option<PoolView> {
    if !context.shared.synced() {
        return None;
    }
    let index = context.shared.lock();
    let pool = index.pool(key).filter(|p| !p.terminating)?;
    let creation = context.writer.backoff().of(&pool, now);
    index.pool_view(key, now, (context.shared.inputs.seed)(), creation)
}

fn apply(context: &Context, view: &PoolView, plan: Plan) -> Option<Timestamp> {
    context.writer.dispatch(view, &plan);
    let changed_verdicts = context.shared.lock().judge(view, plan.waiting);
    context.writer.trigger(changed_verdicts);
    let mut newly_chosen = context.shared.lock().choose(&view.chosen);
    newly_chosen.retain(|other| *other != Trigger::Pool(view.key().clone()));
    context.writer.trigger(newly_chosen);
    let due = publish(context, view, plan.status);
    [plan.next, due].into_iter().flatten().min()
}

/// Writes the status if it says something new, but not more often than [`STATUS_INTERVAL`]. Answers when to
/// look again.
fn publish(context: &Context, view: &PoolView, status: PoolStatus) -> Option<Timestamp> {
    let pool = &view.pool;
    if status == pool.status || context.shared.lock().awaits(&pool.uid) {
        return None;
    }
    let mut written = context.statuses.0.lock().unwrap_or_else(PoisonError::into_inner);
    let due = written
        .get(&pool.uid)
        .and_then(|last| last.checked_add(STATUS_INTERVAL).ok());
    // A clock that was set back must not silence the status.
    if let Some(due) = due.filter(|due| *due > view.now && due.duration_since(view.now) <= STATUS_INTERVAL) {
        return Some(due);
    }
    written.retain(|_, last| view.now.duration_since(*last) < STATUS_INTERVAL);
    written.insert(pool.uid.clone(), view.now);
    context.writer.start(Task::PublishPool {
        pool: Arc::clone(pool),
        status: Box::new(status),
    });
    None
}
