//! The only code that writes to the API server. Every write is noted as pending before it is sent, and runs
//! in a task of its own: a plan is applied without waiting for any answer, so a claim never waits behind a
//! creation. What the answers say reaches the next plan through the index.

pub mod bind;
mod claim_log;
mod claim_pod;
pub mod create_pod;
pub mod creation_backoff;
pub mod delete_pod;
pub mod drain_pod;
pub mod events;
pub mod live_read;
pub mod pod_patch;
pub mod publish_status;
mod request_limit;
mod retry;
mod shutdown;
pub mod store_revision;
pub mod task;

use crate::api::claim::Phase;
use crate::cache::bind_limit;
use crate::cache::index::ReconcileRequest;
use crate::cache::snapshot::PoolSnapshot;
use crate::cache::watch::{ReconcileSender, SharedCache};
use crate::client::call::{CallError, Class};
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::sandbox::{Owner, Sandbox};
use crate::planner::{Plan, Step};
use crate::telemetry::metrics::Metrics;
use creation_backoff::Backoff;
use events::Events;
use kube::Client;
use request_limit::RequestLimit;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use task::{RETRY_AFTER, Task};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Bindings under way at once; they start in order of service.
const BINDINGS: usize = bind_limit::AT_ONCE;
/// Creations and deletions under way at once, apart from the bindings so that none of those waits for them.
const CHANGES: usize = 32;

/// What every write needs. Cheap to clone.
#[derive(Clone)]
pub struct Writer {
    pub(crate) client: Client,
    pub(crate) shared: SharedCache,
    pub(crate) to_reconcile: ReconcileSender,
    pub(crate) events: Events,
    pub(crate) metrics: Metrics,
    /// Shared between the tasks that create and the controller that plans.
    backoff: Arc<Mutex<Backoff>>,
    bindings: Arc<RequestLimit>,
    changes: Arc<RequestLimit>,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Who starts tasks in place of the runtime.
    starter: Option<Arc<dyn Fn(Task) + Send + Sync>>,
}

impl Writer {
    /// A writer over `client` that reports to `shared` and `triggers`, and has `metrics` count what it does.
    pub fn new(client: Client, shared: SharedCache, to_reconcile: ReconcileSender, metrics: Metrics) -> Self {
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
            starter: None,
        }
    }

    /// The same writer, whose tasks are handed to `starter` and left to it.
    #[must_use]
    pub fn handing_tasks_to(self, starter: impl Fn(Task) + Send + Sync + 'static) -> Self {
        Self {
            starter: Some(Arc::new(starter)),
            ..self
        }
    }

    /// Carries out a plan. Bindings go first.
    pub fn dispatch(&self, snapshot: &PoolSnapshot, plan: &Plan) {
        let mut creations = Vec::new();
        let mut index = self.shared.lock();
        for (revision, failures) in &plan.failures {
            if snapshot.failures.get(revision) != Some(failures) {
                let (times, not_running_reason) = (failures.count, &failures.not_running_reason);
                tracing::warn!(pool = %snapshot.key(), revision, times, not_running_reason, "sandboxes failed to become available");
            }
        }
        index.failures.note(&snapshot.pool.uid, &plan.failures);
        for (claim, mut sandboxes) in plan.bindings() {
            // Another pool may have begun to serve a claim that several may, or be done with it.
            let now = index.claim(&claim.key);
            let waits = now.is_some_and(|now| now.uid == claim.uid && now.waiting());
            if index.is_busy(claim) || !waits {
                continue;
            }
            // The watch may have shown more of what it holds.
            let held: Vec<_> = index.held_by(claim).collect();
            sandboxes.retain(|sandbox| held.iter().all(|held| held.uid != sandbox.uid));
            sandboxes.truncate(claim.wanted().saturating_sub(held.len()));
            // Those behind it must not pass it.
            if !index.bind_limit.take(snapshot.key(), sandboxes.len()) {
                break;
            }
            index.expectations.in_flight(&claim.uid);
            for sandbox in &sandboxes {
                index.expectations.binding(sandbox, &claim.uid);
                index.recent_claims.note(&snapshot.pool.uid, snapshot.now);
            }
            let stays = |sandbox: &Arc<Sandbox>| !index.expectations.is_deleting(&sandbox.uid);
            let order = bind::BindOrder {
                warm: !index.has_waited(claim),
                held: held.into_iter().filter(stays).collect(),
                claim: index.as_written(claim),
                pool: Arc::clone(&snapshot.pool),
                sandboxes,
            };
            self.start(Task::Bind(Arc::new(order)));
        }
        for action in &plan.actions {
            let reason = action.reason;
            match &action.step {
                // Those of one claim are bound together, above.
                Step::BindClaim { .. } => {}
                Step::FailClaim { claim, message } => {
                    index.expectations.in_flight(&claim.uid);
                    self.start(Task::FailClaim {
                        claim: index.as_written(claim),
                        pool: Arc::clone(&snapshot.pool),
                        reason,
                        message: message.clone(),
                    });
                }
                Step::DeletePod { sandbox } => {
                    index.expectations.deleting(sandbox);
                    let sandbox = Arc::clone(sandbox);
                    self.start(Task::Delete { sandbox, reason });
                }
                Step::DrainPod { sandbox } => {
                    index.expectations.draining(sandbox);
                    let sandbox = Arc::clone(sandbox);
                    self.start(Task::Drain { sandbox, reason });
                }
                Step::RestorePod { sandbox } => {
                    index.expectations.restoring(sandbox);
                    let sandbox = Arc::clone(sandbox);
                    let hook = snapshot.pool.spec.pre_delete.clone();
                    self.start(Task::Restore {
                        sandbox,
                        hook,
                        reason,
                    });
                }
                // No pod is made from a template that is not on record yet.
                Step::CreatePod { .. } if plan.revisions.store.is_some() => {}
                Step::CreatePod { name, revision } => {
                    let order = create_pod::CreateOrder::new(snapshot, plan, name, revision, reason);
                    index
                        .expectations
                        .creating(order.pod.clone(), snapshot.key().clone(), revision.clone());
                    creations.push(order);
                }
            }
        }
        let is_looked_at_later = index
            .later
            .contains(&ReconcileRequest::Pool(snapshot.key().clone()));
        if store_revision::due(snapshot, plan, is_looked_at_later)
            && index.expectations.start_revising(&snapshot.pool.uid)
        {
            let pool = Arc::clone(&snapshot.pool);
            let revisions = plan.revisions.clone();
            self.start(Task::Revise { pool, revisions });
        }
        drop(index);
        if !creations.is_empty() {
            let pool = Arc::clone(&snapshot.pool);
            let orders = creations;
            self.start(Task::Create { pool, orders });
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
            None if task.waits() => drop(tokio::spawn(task.run(self.clone()))),
            None => drop(self.spawn(task)),
        }
    }

    /// Carries a task out. It goes on also when nobody waits for that any more.
    pub(crate) async fn carry_out(&self, task: Task) {
        // One that panicked has told the log.
        _ = self.spawn(task).await;
    }

    fn spawn(&self, task: Task) -> JoinHandle<()> {
        let task = task.run(self.clone());
        self.tasks
            .spawn(shutdown::run_until_stopped(task, self.stop.clone()))
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
        self.requeue_after(again, pause_after(error));
    }

    /// Has objects looked at again after a while, each once however often that is asked for meanwhile.
    pub(crate) fn requeue_after(&self, mut again: Vec<ReconcileRequest>, after: Duration) {
        let mut index = self.shared.lock();
        again.retain(|trigger| index.later.insert(trigger.clone()));
        drop(index);
        if !again.is_empty() {
            self.start(Task::LookAgain { again, after });
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
        let after = RETRY_AFTER;
        self.start(Task::TryAgain { sandbox, after });
    }

    /// Leaves `claim`, which is noted as being served, alone for a while, and others are served meanwhile.
    pub(crate) fn pause(&self, claim: Arc<Claim>, after: Duration) {
        self.shared.lock().expectations.pausing(&claim.uid);
        self.start(Task::ServeAgain { claim, after });
    }
}

/// How long to wait before a write that failed is made again.
fn pause_after(error: Option<&CallError>) -> Duration {
    match error.map(CallError::class) {
        Some(Class::Throttled(pause)) => pause.max(RETRY_AFTER),
        _ => RETRY_AFTER,
    }
}
