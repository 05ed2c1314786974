//! Reconciles a claim: snapshot, plan and commit under one lock, then start what follows.
//!
//! The pool's reconcile binds. The claim's reconcile also finishes a binding that an earlier operator began.

use crate::cache::reconcile_request::ReconcileRequest;
use crate::controllers::commit;
use crate::controllers::context::{Context, requeue_at};
use crate::executor::task::Task;
use crate::model::Key;
use crate::model::stored::{self, StoredClaim};
use crate::planner::claim::plan;
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

/// Decides on one claim and starts what need not be waited for. Returns the task after which the claim is reconciled again,
/// and when time alone changes the plan.
pub fn step(context: &Context, key: &Key, now: Timestamp) -> (Option<Task>, Option<Timestamp>) {
    if !context.shared.synced() {
        return (None, None);
    }
    let mut index = context.shared.lock();
    let Some(snapshot) = index.claim_snapshot(key, now) else {
        return (None, None);
    };
    let reassigned = index.reassign_pool(&snapshot.claim, now);
    let plan = plan(&snapshot);
    let (mut committed, awaited) = commit::claim_plan(&mut index, snapshot, plan);
    drop(index);
    committed.to_reconcile.extend(reassigned);
    (awaited, context.follow(committed))
}
