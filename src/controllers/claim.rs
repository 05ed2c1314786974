//! Reconciles a claim: its status follows its sandboxes.
//!
//! The pool's reconcile binds. The claim's reconcile also finishes a binding that an earlier operator began.

use crate::cache::index::ReconcileRequest;
use crate::controllers::context::{Context, requeue_at};
use crate::executor::task::Task;
use crate::model::Key;
use crate::model::stored;
use crate::model::stored::StoredClaim;
use crate::planner::claim::{ClaimPlan, plan, release_reason};
use jiff::Timestamp;
use kube::runtime::controller::Action;
use std::convert::Infallible;
use std::sync::Arc;

/// Brings a claim's status up to date.
///
/// # Errors
/// None: the outcome of a write is part of the next snapshot.
pub async fn reconcile(claim: Arc<StoredClaim>, context: Arc<Context>) -> Result<Action, Infallible> {
    let key = stored::key(&claim.metadata);
    let _timed = context
        .executor
        .metrics
        .reconciling(ReconcileRequest::Claim(key.clone()));
    let now = context.shared.now();
    let (task, next) = step(&context, &key, now);
    if let Some(task) = task {
        context.executor.run_to_end(task).await;
    }
    Ok(requeue_at(now, next))
}

/// Plans for one claim and starts the releases. Returns the task that must end before the next reconcile of the claim, and when
/// time alone will change the plan.
pub fn step(context: &Context, key: &Key, now: Timestamp) -> (Option<Task>, Option<Timestamp>) {
    if !context.shared.synced() {
        return (None, None);
    }
    let Some(snapshot) = context.shared.lock().claim_snapshot(key, now) else {
        return (None, None);
    };
    let newly_assigned = context.shared.lock().reassign_pool(&snapshot.claim, now);
    context.executor.trigger(newly_assigned);
    let ClaimPlan {
        status,
        release,
        confirm_loss,
        delete,
        next,
    } = plan(&snapshot);
    let reason = release_reason(&snapshot.claim);
    release
        .into_iter()
        .for_each(|sandbox| context.executor.release(&snapshot.claim, sandbox, reason));
    let claim = snapshot.claim;
    if delete {
        return (Some(Task::DeleteClaim { claim }), None);
    }
    let update = |status| Task::UpdateClaim {
        claim,
        status,
        confirm_loss,
    };
    (status.map(update), next)
}
