//! The executor: starts tasks, bounds their requests and requeues objects.

use crate::api::claim::Phase;
use crate::cache::bind_limit;
use crate::cache::index::ReconcileRequest;
use crate::cache::watch::{ReconcileSender, SharedCache};
use crate::client::call::CallError;
use crate::executor::creation_backoff::Backoff;
use crate::executor::request_limit::RequestLimit;
use crate::executor::retry::{RETRY_DELAY, retry_delay};
use crate::executor::shutdown::run_until_stopped;
use crate::executor::task::Task;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::sandbox::{Owner, Sandbox};
use crate::telemetry::events::Events;
use crate::telemetry::metrics::Metrics;
use futures::future::BoxFuture;
use kube::Client;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Bindings under way at once; they start in order of service.
pub(crate) const BINDINGS: usize = bind_limit::AT_ONCE;
/// Creations and deletions under way at once, apart from the bindings so that none of those waits for them.
const CHANGES: usize = 32;

/// What every write needs. Cheap to clone.
#[derive(Clone)]
pub struct Executor {
    pub(crate) client: Client,
    pub(crate) shared: SharedCache,
    pub(crate) to_reconcile: ReconcileSender,
    pub(crate) events: Events,
    pub(crate) metrics: Metrics,
    /// Shared between the tasks that create and the controller that plans.
    backoff: Arc<Mutex<Backoff>>,
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
            backoff: Arc::default(),
            bindings: Arc::new(RequestLimit::new(BINDINGS)),
            changes: Arc::new(RequestLimit::new(CHANGES)),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            run_task,
            starter: None,
        }
    }

    /// The same executor, whose tasks are handed to `starter` and left to it.
    #[must_use]
    pub fn handing_tasks_to(self, starter: impl Fn(Task) + Send + Sync + 'static) -> Self {
        Self {
            starter: Some(Arc::new(starter)),
            ..self
        }
    }

    /// Waits until every request on the wire has been answered, and what follows from the answer, too. Tasks that only
    /// wait for their turn or pause before they try again end at once.
    pub async fn finish(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Which pools create nothing for a while.
    pub fn backoff(&self) -> MutexGuard<'_, Backoff> {
        self.backoff.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn trigger(&self, to_reconcile: Vec<ReconcileRequest>) {
        self.to_reconcile.send(to_reconcile);
    }

    /// Starts a task. One that only waits does not hold up a shutdown.
    pub(crate) fn start(&self, task: Task) {
        match &self.starter {
            Some(starter) => starter(task),
            None if task.waits() => drop(tokio::spawn((self.run_task)(task, self.clone()))),
            None => drop(self.spawn(task)),
        }
    }

    /// Carries a task out. It goes on also when nobody waits for that any more.
    pub(crate) async fn carry_out(&self, task: Task) {
        // One that panicked has told the log.
        _ = self.spawn(task).await;
    }

    fn spawn(&self, task: Task) -> JoinHandle<()> {
        let task = (self.run_task)(task, self.clone());
        self.tasks.spawn(run_until_stopped(task, self.stop.clone()))
    }

    /// Deletes a pod that `claim` owns but may not keep, unless that is under way. What a claim lists that has not ended
    /// may be more by now than is seen.
    pub(crate) fn release(&self, claim: &Arc<Claim>, sandbox: Arc<Sandbox>, reason: &'static str) {
        let mut index = self.shared.lock();
        if index.expectations.on(&sandbox.uid).is_some() {
            return;
        }
        index.expectations.deleting(&sandbox);
        let claim = Arc::clone(claim);
        self.start(match claim.status.phase {
            Some(Phase::Failed | Phase::Expired) => Task::Delete { sandbox, reason },
            Some(Phase::Pending | Phase::Bound) | None => Task::Release {
                claim,
                sandbox,
                reason,
            },
        });
    }

    /// Has the pool of `sandbox` and the claim that owns it by now looked at again.
    pub(crate) fn requeue(&self, sandbox: &Sandbox) {
        let namespace = &sandbox.key.namespace;
        let mut to_reconcile = vec![ReconcileRequest::Pool(sandbox.pool_key())];
        let now = self.shared.lock().pod(&sandbox.key);
        if let Owner::Claim { name, .. } = now.as_ref().map_or(&sandbox.owner, |pod| &pod.owner) {
            to_reconcile.push(ReconcileRequest::Claim(Key::new(namespace, name)));
        }
        self.to_reconcile.send(to_reconcile);
    }

    /// Has `claim` looked at again after a while, which is as long as the API server asks for in `error` at least.
    pub(crate) fn requeue_claim_after(&self, claim: &Claim, error: Option<&CallError>) {
        let mut again = self.shared.lock().pools_for(claim);
        again.push(ReconcileRequest::Claim(claim.key.clone()));
        self.requeue_after(again, retry_delay(error));
    }

    /// Has objects looked at again after a while, each once however often that is asked for meanwhile.
    pub(crate) fn requeue_after(&self, mut again: Vec<ReconcileRequest>, after: Duration) {
        let mut index = self.shared.lock();
        again.retain(|trigger| index.later.insert(trigger.clone()));
        drop(index);
        if !again.is_empty() {
            self.start(Task::Requeue { again, after });
        }
    }

    /// The API server has said that `sandbox` is gone or going: it counts for nothing any more, before the watch shows it.
    pub(crate) fn gone(&self, sandbox: &Sandbox) {
        self.shared.lock().expectations.deleted(sandbox);
        self.requeue(sandbox);
    }

    /// Leaves `sandbox` alone until the watch shows a change of it, or for a while when none comes.
    pub(crate) fn hold_until_changed(&self, sandbox: &Arc<Sandbox>) {
        let mut index = self.shared.lock();
        let is_newer =
            |now: &Sandbox| now.uid == sandbox.uid && now.resource_version != sandbox.resource_version;
        let has_changed = index.pod(&sandbox.key).is_some_and(|now| is_newer(&now));
        if has_changed {
            index.expectations.forget(sandbox);
        } else {
            index.expectations.refused(sandbox);
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

    /// Leaves `claim`, which is noted as being served, alone for a while, and others are served meanwhile.
    pub(crate) fn pause(&self, claim: Arc<Claim>, after: Duration) {
        self.shared.lock().expectations.pausing(&claim.uid);
        self.start(Task::EndPause { claim, after });
    }
}
