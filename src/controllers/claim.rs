//! Reconciling a claim: observe, plan, apply. The binding itself is the pool's matter; here the claim's status
//! follows its sandbox, and what was left half done is finished.

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
/// None: what a write meets is part of the next view.
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

/// Decides on one claim and starts what need not be waited for. Answers the task after which the claim may be looked at
/// again, and when time alone will have changed something.
pub fn step(context: &Context, key: &Key, now: Timestamp) -> (Option<Task>, Option<Timestamp>) {
    if !context.shared.synced() {
        return (None, None);
    }
    let Some(snapshot) = context.shared.lock().claim_snapshot(key, now) else {
        return (None, None);
    };
    let newly_chosen = context.shared.lock().reassign_pool(&snapshot.claim, now);
    context.executor.trigger(newly_chosen);
    let ClaimPlan {
        status,
        release,
        confirm_loss,
        delete,
        next,
    } = plan(&snapshot);
    let why = release_reason(&snapshot.claim);
    release
        .into_iter()
        .for_each(|sandbox| context.executor.release(&snapshot.claim, sandbox, why));
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
