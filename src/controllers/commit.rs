//! Notes the writes of a plan as expectations, under the lock that its snapshot was taken under.

use crate::api::PoolStatus;
use crate::api::claim::Phase;
use crate::cache::index::Index;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::snapshot::{ClaimSnapshot, PoolSnapshot};

use crate::executor::store_revision;
use crate::executor::task::{BindOrder, CreateOrder, Task};
use crate::model::claim::Claim;
use crate::model::sandbox::Sandbox;
use crate::planner::claim::{ClaimPlan, release_reason};
use crate::planner::{Action, Plan, Step};
use jiff::Timestamp;
use std::sync::Arc;

/// What follows from a committed plan.
#[derive(Default)]
pub(crate) struct Committed {
    /// Tasks to start, in order.
    pub(crate) tasks: Vec<Task>,
    /// Objects to reconcile because of the plan.
    pub(crate) to_reconcile: Vec<ReconcileRequest>,
    /// When time alone changes the plan.
    pub(crate) next: Option<Timestamp>,
}

/// Commits the plan of a pool.
pub(crate) fn pool_plan(index: &mut Index, snapshot: &PoolSnapshot, plan: Plan) -> Committed {
    let mut committed = Committed::default();
    if let Some(memory) = index.pool_memory_mut(&snapshot.pool) {
        memory.warm_up_failures.clone_from(&plan.failures);
    }
    bind(index, snapshot, &plan, &mut committed.tasks);
    let mut creations = Vec::new();
    for action in &plan.actions {
        match &action.step {
            Step::CreatePod { name, revision } => {
                // A revision is stored before its first pod is created.
                if plan.revisions.store.is_none() {
                    let order = CreateOrder::new(snapshot, &plan, name, revision, action.reason);
                    let pool = snapshot.key().clone();
                    index
                        .expectations
                        .creating(order.pod.clone(), pool, revision.clone());
                    creations.push(order);
                }
            }
            _ => committed.tasks.extend(single(index, snapshot, action)),
        }
    }
    let has_timer = index
        .later
        .contains(&ReconcileRequest::Pool(snapshot.key().clone()));
    if store_revision::due(snapshot, &plan, has_timer)
        && index.expectations.start_revising(&snapshot.pool.uid)
    {
        committed.tasks.push(Task::Revise {
            pool: Arc::clone(&snapshot.pool),
            revisions: plan.revisions.clone(),
        });
    }
    if !creations.is_empty() {
        committed.tasks.push(Task::Create {
            pool: Arc::clone(&snapshot.pool),
            orders: creations,
        });
    }
    committed.to_reconcile = index.record_wait_reasons(snapshot, plan.waiting);
    let mut assigned = index.assign_pools(&snapshot.selected_pools);
    assigned.retain(|other| *other != ReconcileRequest::Pool(snapshot.key().clone()));
    committed.to_reconcile.extend(assigned);
    let due = publish(index, snapshot, plan.status, &mut committed.tasks);
    committed.next = [plan.next, due].into_iter().flatten().min();
    committed
}

/// All bindings of one claim are one task. Where the limit is reached, no later claim overtakes the one that is held back.
fn bind(index: &mut Index, snapshot: &PoolSnapshot, plan: &Plan, tasks: &mut Vec<Task>) {
    for (claim, sandboxes) in plan.bindings() {
        if !index.bind_limit.start(snapshot.key(), sandboxes.len()) {
            break;
        }
        index.expectations.in_flight(&claim.uid);
        for sandbox in &sandboxes {
            index.expectations.binding(sandbox, &claim.uid);
        }
        if let Some(memory) = index.pool_memory_mut(&snapshot.pool) {
            sandboxes
                .iter()
                .for_each(|_| memory.recent_claims.note(snapshot.now));
        }
        let stays = |sandbox: &Arc<Sandbox>| !index.expectations.is_deleting(&sandbox.uid);
        let order = BindOrder {
            warm: !index.has_waited(claim),
            held: index.held_by(claim).filter(stays).collect(),
            claim: index.as_written(claim),
            pool: Arc::clone(&snapshot.pool),
            sandboxes,
        };
        tasks.push(Task::Bind(Arc::new(order)));
    }
}

/// The task of an action that has one of its own.
fn single(index: &mut Index, snapshot: &PoolSnapshot, action: &Action) -> Option<Task> {
    let reason = action.reason;
    match &action.step {
        Step::BindClaim { .. } | Step::CreatePod { .. } => None,
        Step::FailClaim { claim, message } => {
            index.expectations.in_flight(&claim.uid);
            Some(Task::FailClaim {
                claim: index.as_written(claim),
                pool: Arc::clone(&snapshot.pool),
                reason,
                message: message.clone(),
            })
        }
        Step::DeletePod { sandbox } => {
            index.expectations.deleting(sandbox);
            let sandbox = Arc::clone(sandbox);
            Some(Task::Delete { sandbox, reason })
        }
        Step::DrainPod { sandbox } => {
            index.expectations.draining(sandbox);
            let sandbox = Arc::clone(sandbox);
            Some(Task::Drain { sandbox, reason })
        }
        Step::RestorePod { sandbox } => {
            index.expectations.restoring(sandbox);
            Some(Task::Restore {
                sandbox: Arc::clone(sandbox),
                hook: snapshot.pool.spec.pre_delete.clone(),
                reason,
            })
        }
    }
}

/// Writes the status if it says something new and the last write is long enough ago. Returns when to try again.
fn publish(
    index: &mut Index,
    snapshot: &PoolSnapshot,
    status: PoolStatus,
    tasks: &mut Vec<Task>,
) -> Option<Timestamp> {
    let pool = &snapshot.pool;
    if status == pool.status || index.awaits(&pool.uid) {
        return None;
    }
    let memory = index.pool_memory_mut(pool)?;
    let due = memory.status_due(snapshot.now);
    if due.is_none() {
        memory.note_status_write(snapshot.now);
        tasks.push(Task::PublishPool {
            pool: Arc::clone(pool),
            status: Box::new(status),
        });
    }
    due
}

/// Commits the plan of a claim. The second part is the task after which the claim is reconciled again.
pub(crate) fn claim_plan(
    index: &mut Index,
    snapshot: ClaimSnapshot,
    plan: ClaimPlan,
) -> (Committed, Option<Task>) {
    let claim = snapshot.claim;
    let reason = release_reason(&claim);
    let release = plan.release.into_iter();
    let tasks = release.filter_map(|sandbox| release_task(index, &claim, sandbox, reason));
    let mut committed = Committed {
        tasks: tasks.collect(),
        next: plan.next,
        ..Committed::default()
    };
    if plan.delete {
        committed.next = None;
        return (committed, Some(Task::DeleteClaim { claim }));
    }
    let update = plan.status.map(|status| Task::UpdateClaim {
        claim,
        status,
        confirm_loss: plan.confirm_loss,
    });
    (committed, update)
}

/// Deletes a pod that `claim` owns and may not keep, unless a write on the pod is expected. A claim that has not ended may
/// list more sandboxes than the watch has shown, so it is read first.
fn release_task(
    index: &mut Index,
    claim: &Arc<Claim>,
    sandbox: Arc<Sandbox>,
    reason: &'static str,
) -> Option<Task> {
    if index.expectations.on(&sandbox.uid).is_some() {
        return None;
    }
    index.expectations.deleting(&sandbox);
    Some(match claim.status.phase {
        Some(Phase::Failed | Phase::Expired) => Task::Delete { sandbox, reason },
        Some(Phase::Pending | Phase::Bound) | None => Task::Release {
            claim: Arc::clone(claim),
            sandbox,
            reason,
        },
    })
}
