//! The executor: starts tasks, bounds their requests and requeues objects.

use crate::cache::bind_limit;
use crate::cache::reconcile_request::{ReconcileRequest, ReconcileSender};
use crate::cache::shared::SharedCache;
use crate::client::call::{CallError, Class};
use crate::executor::request_limit::RequestLimit;
use crate::executor::retry::{RETRY_DELAY, retry_delay};
use crate::executor::shutdown::run_until_stopped;
use crate::executor::task::Task;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use crate::model::sandbox::{Owner, Sandbox};
use crate::telemetry::events::Events;
use crate::telemetry::metrics::Metrics;
use futures::future::BoxFuture;
use jiff::SignedDuration;
use kube::Client;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Concurrent bindings. They start in the order in which claims are served.
pub(crate) const BINDINGS: usize = bind_limit::AT_ONCE;
/// Concurrent creations and deletions. Their limit is separate, so that no binding waits for them.
const CHANGES: usize = 32;

/// The state that tasks share. Cheap to clone.
#[derive(Clone)]
pub struct Executor {
    pub(crate) client: Client,
    pub(crate) shared: SharedCache,
    pub(crate) to_reconcile: ReconcileSender,
    pub(crate) events: Events,
    pub(crate) metrics: Metrics,
    pub(crate) bindings: Arc<RequestLimit>,
    pub(crate) changes: Arc<RequestLimit>,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Runs a task. The executor does not know the code of the kinds, which knows the executor.
    run_task: fn(Task, Executor) -> BoxFuture<'static, ()>,
    /// Receives the tasks in place of the runtime.
    starter: Option<Arc<dyn Fn(Task) + Send + Sync>>,
}

impl Executor {
    /// An executor whose tasks `run_task` runs.
    pub(crate) fn with_runner(
        client: Client,
        shared: SharedCache,
        to_reconcile: ReconcileSender,
        metrics: Metrics,
        run_task: fn(Task, Executor) -> BoxFuture<'static, ()>,
    ) -> Self {
        Self {
            events: Events::new(client.clone()),
            metrics,
            client,
            shared,
            to_reconcile,
            bindings: Arc::new(RequestLimit::new(BINDINGS)),
            changes: Arc::new(RequestLimit::new(CHANGES)),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            run_task,
            starter: None,
        }
    }

    /// The same executor, but it hands its tasks to `starter` and does not run them.
    #[must_use]
    pub fn handing_tasks_to(self, starter: impl Fn(Task) + Send + Sync + 'static) -> Self {
        Self {
            starter: Some(Arc::new(starter)),
            ..self
        }
    }

    /// Waits until every request in flight has been answered and its answer handled. Tasks that wait for a slot or back off end
    /// at once.
    pub async fn finish(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The API server rejected a write that pods of `pool` wait for. The pool creates none for the pause that this returns.
    pub(crate) fn creation_failed(&self, pool: &Pool, error: &CallError) -> SignedDuration {
        let asks = match error.class() {
            Class::Throttled(pause) => Some(pause),
            _ => None,
        };
        let now = self.shared.now();
        let mut index = self.shared.lock();
        let memory = index.pool_memory_mut(pool);
        memory.map_or(SignedDuration::ZERO, |memory| {
            memory.creation_backoff.failed(pool, error.message(), asks, now)
        })
    }

    /// The API server created a pod of `pool`.
    pub(crate) fn creation_succeeded(&self, pool: &Pool) {
        if let Some(memory) = self.shared.lock().pool_memory_mut(pool) {
            memory.creation_backoff.succeeded(pool);
        }
    }

    pub(crate) fn trigger(&self, to_reconcile: Vec<ReconcileRequest>) {
        self.to_reconcile.send(to_reconcile);
    }

    /// Starts a task. A task that only waits does not delay a shutdown.
    pub(crate) fn start(&self, task: Task) {
        match &self.starter {
            Some(starter) => starter(task),
            None if task.waits() => drop(tokio::spawn((self.run_task)(task, self.clone()))),
            None => drop(self.spawn(task)),
        }
    }

    /// Runs a task to its end. The task continues when the caller is dropped.
    pub(crate) async fn run_to_end(&self, task: Task) {
        // A panic is in the log already.
        _ = self.spawn(task).await;
    }

    fn spawn(&self, task: Task) -> JoinHandle<()> {
        let task = (self.run_task)(task, self.clone());
        self.tasks.spawn(run_until_stopped(task, self.stop.clone()))
    }

    /// Requeues the pool of `sandbox` and the claim that now owns it.
    pub(crate) fn requeue(&self, sandbox: &Sandbox) {
        let namespace = &sandbox.key.namespace;
        let mut to_reconcile = vec![ReconcileRequest::Pool(sandbox.pool_key())];
        let now = self.shared.lock().pod(&sandbox.key);
        if let Owner::Claim { name, .. } = now.as_ref().map_or(&sandbox.owner, |pod| &pod.owner) {
            to_reconcile.push(ReconcileRequest::Claim(Key::new(namespace, name)));
        }
        self.to_reconcile.send(to_reconcile);
    }

    /// Requeues `claim` after a delay, at least as long as the API server asks for in `error`.
    pub(crate) fn requeue_claim_after(&self, claim: &Claim, error: Option<&CallError>) {
        let mut again = self.shared.lock().pools_for(claim);
        again.push(ReconcileRequest::Claim(claim.key.clone()));
        self.requeue_after(again, retry_delay(error));
    }

    /// Requeues objects after a delay. An object that is to be requeued already is not added twice.
    pub(crate) fn requeue_after(&self, mut again: Vec<ReconcileRequest>, after: Duration) {
        let mut index = self.shared.lock();
        again.retain(|trigger| index.later.insert(trigger.clone()));
        drop(index);
        if !again.is_empty() {
            self.start(Task::Requeue { again, after });
        }
    }

    /// Forgets `sandbox`, which the API server says is gone or terminating, before the watch shows it.
    pub(crate) fn gone(&self, sandbox: &Sandbox) {
        self.shared.lock().expectations.deleted(sandbox);
        self.requeue(sandbox);
    }

    /// Excludes `sandbox` from plans until the watch shows a change of it, at most for [`RETRY_DELAY`].
    pub(crate) fn hold_until_changed(&self, sandbox: &Arc<Sandbox>) {
        let mut index = self.shared.lock();
        let is_newer =
            |now: &Sandbox| now.uid == sandbox.uid && now.resource_version != sandbox.resource_version;
        let has_changed = index.pod(&sandbox.key).is_some_and(|now| is_newer(&now));
        if has_changed {
            index.expectations.forget(sandbox);
        } else {
            index.expectations.conflicted(sandbox);
        }
        drop(index);
        self.requeue(sandbox);
        if has_changed {
            return;
        }
        let sandbox = Arc::clone(sandbox);
        let after = RETRY_DELAY;
        self.start(Task::EndHold { sandbox, after });
    }

    /// Excludes `claim`, which is noted as in flight, from plans for a while. Other claims are served meanwhile.
    pub(crate) fn pause(&self, claim: Arc<Claim>, after: Duration) {
        self.shared.lock().expectations.pausing(&claim.uid);
        self.start(Task::EndPause { claim, after });
    }
}
