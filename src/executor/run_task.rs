//! Runs each task with the code of its kind.

use crate::cache::reconcile_request::{ReconcileRequest, ReconcileSender};
use crate::cache::shared::SharedCache;
use crate::executor::handle::Executor;
use crate::executor::task::Task;
use crate::executor::{bind, create_pod, delete_pod, drain_pod, live_read, publish_status, store_revision};
use crate::model::claim::Claim;
use crate::model::sandbox::Sandbox;
use crate::telemetry::metrics::Metrics;
use futures::future::{BoxFuture, FutureExt};
use kube::Client;
use std::sync::Arc;
use std::time::Duration;

impl Executor {
    /// An executor that writes through `client`, reports to `shared` and `to_reconcile` and counts in `metrics`.
    pub fn new(client: Client, shared: SharedCache, to_reconcile: ReconcileSender, metrics: Metrics) -> Self {
        Self::with_runner(client, shared, to_reconcile, metrics, Task::run)
    }
}

impl Task {
    /// Runs the task to its end.
    pub fn run(self, executor: Executor) -> BoxFuture<'static, ()> {
        match self {
            Self::Bind(order) => bind::run(executor, order).boxed(),
            Self::FailClaim {
                claim,
                pool,
                reason,
                message,
            } => publish_status::fail_claim(executor, claim, pool, reason, message).boxed(),
            Self::UpdateClaim {
                claim,
                status,
                confirm_loss,
            } => async move {
                if live_read::all_lost(&executor, &claim, &confirm_loss).await {
                    publish_status::update_claim(&executor, &claim, *status).await;
                }
            }
            .boxed(),
            Self::DeleteClaim { claim } => {
                async move { publish_status::delete_claim(&executor, &claim).await }.boxed()
            }
            Self::Create { pool, orders } => create_pod::run(executor, pool, orders).boxed(),
            Self::Delete { sandbox, reason } => delete_pod::run(executor, sandbox, reason).boxed(),
            Self::Release {
                claim,
                sandbox,
                reason,
            } => live_read::release(executor, claim, sandbox, reason).boxed(),
            Self::Drain { sandbox, reason } => drain_pod::mark(executor, sandbox, reason).boxed(),
            Self::Restore {
                sandbox,
                hook,
                reason,
            } => drain_pod::restore(executor, sandbox, hook, reason).boxed(),
            Self::Revise { pool, revisions } => store_revision::run(executor, pool, revisions).boxed(),
            Self::PublishPool { pool, status } => {
                publish_status::pool_status(executor, pool, *status).boxed()
            }
            Self::LiveRead { pod } => async move { live_read::confirm(&executor, &pod).await }.boxed(),
            Self::Requeue { again, after } => async move {
                tokio::time::sleep(after).await;
                executor
                    .shared
                    .lock()
                    .later
                    .retain(|other| !again.contains(other));
                executor.trigger(again);
            }
            .boxed(),
            Self::EndHold { sandbox, after } => end_hold(executor, sandbox, after).boxed(),
            Self::EndPause { claim, after } => end_pause(executor, claim, after).boxed(),
        }
    }
}

async fn end_pause(executor: Executor, claim: Arc<Claim>, after: Duration) {
    tokio::time::sleep(after).await;
    let mut index = executor.shared.lock();
    index.expectations.end_pause(&claim.uid);
    index.expectations.end_in_flight(&claim.uid);
    let mut again = index.pools_for(&claim);
    drop(index);
    again.push(ReconcileRequest::Claim(claim.key.clone()));
    executor.trigger(again);
}

async fn end_hold(executor: Executor, sandbox: Arc<Sandbox>, after: Duration) {
    tokio::time::sleep(after).await;
    let mut index = executor.shared.lock();
    if index.expectations.is_conflicted(&sandbox) {
        index.expectations.forget(&sandbox);
        drop(index);
        executor.requeue(&sandbox);
    }
}
