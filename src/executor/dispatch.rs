//! Starts the tasks of a plan and notes its writes as expected.

use crate::cache::index::ReconcileRequest;
use crate::cache::snapshot::PoolSnapshot;
use crate::executor::handle::Executor;
use crate::executor::store_revision;
use crate::executor::task::{BindOrder, CreateOrder, Task};
use crate::model::sandbox::Sandbox;
use crate::planner::{Plan, Step};
use std::sync::Arc;

impl Executor {
    /// Starts the tasks of a plan, bindings first.
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
            // Another pool may serve or have served a selector claim since the snapshot.
            let now = index.claim(&claim.key);
            let waits = now.is_some_and(|now| now.uid == claim.uid && now.waiting());
            if index.is_busy(claim) || !waits {
                continue;
            }
            // The watch may have shown more sandboxes of the claim since the snapshot.
            let held: Vec<_> = index.held_by(claim).collect();
            sandboxes.retain(|sandbox| held.iter().all(|held| held.uid != sandbox.uid));
            sandboxes.truncate(claim.wanted().saturating_sub(held.len()));
            // Later claims must not overtake this claim.
            if !index.bind_limit.take(snapshot.key(), sandboxes.len()) {
                break;
            }
            index.expectations.in_flight(&claim.uid);
            for sandbox in &sandboxes {
                index.expectations.binding(sandbox, &claim.uid);
                index.recent_claims.note(&snapshot.pool.uid, snapshot.now);
            }
            let stays = |sandbox: &Arc<Sandbox>| !index.expectations.is_deleting(&sandbox.uid);
            let order = BindOrder {
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
                // All bindings of a claim are one task, above.
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
                // A revision is stored before its first pod is created.
                Step::CreatePod { .. } if plan.revisions.store.is_some() => {}
                Step::CreatePod { name, revision } => {
                    let order = CreateOrder::new(snapshot, plan, name, revision, reason);
                    index
                        .expectations
                        .creating(order.pod.clone(), snapshot.key().clone(), revision.clone());
                    creations.push(order);
                }
            }
        }
        let is_requeued = index
            .later
            .contains(&ReconcileRequest::Pool(snapshot.key().clone()));
        if store_revision::due(snapshot, plan, is_requeued)
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
}
