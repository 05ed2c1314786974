//! The only code that writes to the API server. Every write is noted as pending before it is sent, and runs
//! in a task of its own: a plan is applied without waiting for any answer, so a claim never waits behind a
//! creation. What the answers say reaches the next plan through the index.

pub mod backoff;
pub mod bind;
pub mod create;
pub mod delete;
pub mod drain;
pub mod events;
pub mod outcome;
mod patch;
pub mod publish;
pub mod revise;
mod tell;
mod turns;

use crate::metrics::Metrics;
use crate::observe::Key;
use crate::observe::claim::Claim;
use crate::observe::feed::{Shared, Triggers};
use crate::observe::index::Trigger;
use crate::observe::pool::Pool;
use crate::observe::sandbox::{Owner, Sandbox};
use crate::observe::view::{Creation, OwnWrite, PoolView};
use crate::plan::{Plan, Step};
use backoff::Backoff;
use events::Events;
use kube::Client;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use turns::Turns;

/// Bindings under way at once. More would only queue in the API server, which answers slower the more it
/// holds; they start in order of service.
const BINDINGS: usize = 32;
/// Creations and deletions under way at once, apart from the bindings so that none of those waits for them.
const CHANGES: usize = 32;
/// How soon a refused or failed write may be tried again when nothing about its object changes.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// What every write needs. Cheap to clone.
#[derive(Clone)]
pub struct Writer {
    pub(crate) client: Client,
    pub(crate) shared: Shared,
    pub(crate) triggers: Triggers,
    pub(crate) backoff: Backoff,
    pub(crate) events: Events,
    pub(crate) metrics: Metrics,
    bindings: Arc<Semaphore>,
    turns: Turns,
    changes: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Writer {
    /// A writer over `client` that reports to `shared` and `triggers`, and has `metrics` count what it does.
    pub fn new(client: Client, shared: Shared, triggers: Triggers, metrics: Metrics) -> Self {
        Self {
            events: Events::new(client.clone()),
            metrics,
            client,
            shared,
            turns: Turns::new(triggers.clone()),
            triggers,
            backoff: Backoff::default(),
            bindings: Arc::new(Semaphore::new(BINDINGS)),
            changes: Arc::new(Semaphore::new(CHANGES)),
            tasks: TaskTracker::new(),
        }
    }

    /// Carries out a plan. Bindings go first.
    pub fn dispatch(&self, view: &PoolView, plan: &Plan) {
        let mut creations = Vec::new();
        let mut index = self.shared.lock();
        for (revision, failures) in &plan.failures {
            if view.failures.get(revision) != Some(failures) {
                let (times, obstacle) = (failures.count, &failures.obstacle);
                tracing::warn!(pool = %view.key(), revision, times, obstacle, "sandboxes failed to become available");
            }
        }
        index.failures.note(&view.pool.uid, &plan.failures);
        for (claim, sandboxes) in plan.bindings() {
            // Another pool may have begun to serve a claim that several may, or be done with it.
            if index.is_busy(claim) || index.claim(&claim.key).is_none_or(|now| !now.waiting()) {
                continue;
            }
            // Those behind it must not pass it.
            let Some(turn) = self.turns.take(view.key(), sandboxes.len()) else {
                break;
            };
            index.pending.serving(&claim.uid);
            for sandbox in &sandboxes {
                index.pending.binding(sandbox, &claim.uid);
                index.takings.note(&view.pool.uid, view.now);
            }
            let order = bind::Order {
                warm: !index.has_waited(claim),
                held: index.held_by(claim).collect(),
                claim: index.as_written(claim),
                pool: Arc::clone(&view.pool),
                sandboxes,
            };
            let binding = bind::run(self.clone(), order);
            self.spawn(async move {
                binding.await;
                drop(turn);
            });
        }
        for action in &plan.actions {
            match &action.step {
                // Those of one claim are bound together, above.
                Step::BindClaim { .. } => {}
                Step::FailClaim { claim, message } => {
                    index.pending.serving(&claim.uid);
                    let (claim, message) = (index.as_written(claim), message.clone());
                    self.spawn(publish::fail_claim(self.clone(), claim, action.reason, message));
                }
                Step::DeletePod { sandbox } => {
                    index.pending.deleting(sandbox);
                    self.spawn(delete::run(self.clone(), Arc::clone(sandbox), action.reason));
                }
                Step::DrainPod { sandbox } => {
                    index.pending.draining(sandbox);
                    self.spawn(drain::mark(self.clone(), Arc::clone(sandbox), action.reason));
                }
                Step::RestorePod { sandbox } => {
                    index.pending.restoring(sandbox);
                    let hook = view.pool.targets.pre_delete.clone();
                    let restored = drain::restore(self.clone(), Arc::clone(sandbox), hook, action.reason);
                    self.spawn(restored);
                }
                // No pod is made from a template that is not on record yet.
                Step::CreatePod { .. } if plan.revisions.store.is_some() => {}
                Step::CreatePod { name, revision } => {
                    let order = create::Order::new(view, plan, name, revision, action.reason);
                    index
                        .pending
                        .creating(order.pod.clone(), view.key().clone(), revision.clone());
                    creations.push(order);
                }
            }
        }
        if revise::due(view, plan) && index.pending.start_revising(&view.pool.uid) {
            self.spawn(revise::run(
                self.clone(),
                Arc::clone(&view.pool),
                plan.revisions.clone(),
            ));
        }
        drop(index);
        if !creations.is_empty() {
            self.spawn(create::run(self.clone(), Arc::clone(&view.pool), creations));
        }
    }

    /// Waits until every write under way has been answered. New ones may still be spawned.
    pub async fn finish(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Whether pods of `pool` may be created, after what the API server said to the last ones.
    pub(crate) fn creation(&self, pool: &Pool) -> Creation {
        self.backoff.of(pool)
    }

    pub(crate) fn trigger(&self, triggers: Vec<Trigger>) {
        self.triggers.send(triggers);
    }

    pub(crate) fn spawn(&self, write: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(write);
    }

    /// Deletes a pod that a claim owns but may not keep, unless that is under way.
    pub(crate) fn release(&self, sandbox: Arc<Sandbox>, reason: &'static str) {
        let mut index = self.shared.lock();
        if index.pending.on(&sandbox.uid).is_none() {
            index.pending.deleting(&sandbox);
            self.spawn(delete::run(self.clone(), sandbox, reason));
        }
    }

    /// Has the pool of `sandbox` and the claim that owns it by now looked at again.
    pub(crate) fn look_again(&self, sandbox: &Sandbox) {
        let namespace = &sandbox.key.namespace;
        let mut triggers = vec![Trigger::Pool(sandbox.pool_key())];
        let now = self.shared.lock().pod(&sandbox.key);
        if let Owner::Claim { name, .. } = now.as_ref().map_or(&sandbox.owner, |pod| &pod.owner) {
            triggers.push(Trigger::Claim(Key::new(namespace, name)));
        }
        self.triggers.send(triggers);
    }

    /// Has `claim` looked at again after a while. What waits so does not hold up a shutdown.
    pub(crate) fn revisit(&self, claim: &Claim) {
        let triggers = self.triggers.clone();
        let mut again = self.shared.lock().pools_for(claim);
        again.push(Trigger::Claim(claim.key.clone()));
        tokio::spawn(async move {
            tokio::time::sleep(RETRY_AFTER).await;
            triggers.send(again);
        });
    }

    /// Leaves `sandbox` alone until the watch shows a change of it, or for a while when none comes.
    pub(crate) fn set_aside(&self, sandbox: &Arc<Sandbox>) {
        self.shared.lock().pending.refused(sandbox);
        self.look_again(sandbox);
        let (writer, sandbox) = (self.clone(), Arc::clone(sandbox));
        tokio::spawn(async move {
            tokio::time::sleep(RETRY_AFTER).await;
            let mut index = writer.shared.lock();
            if index.pending.on(&sandbox.uid) == Some(OwnWrite::Refused) {
                index.pending.forget(&sandbox.uid);
                drop(index);
                writer.look_again(&sandbox);
            }
        });
    }
}
