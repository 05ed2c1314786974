//! Reconciles a claim: snapshot, plan and commit under one lock, then send what follows.
//!
//! The pool's reconcile binds. The claim's reconcile publishes what is bound, whether the answer came a moment ago or
//! an earlier operator bound it.

use crate::cache::index::Index;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::controllers::commit::{self, Committed};
use crate::controllers::context::{Context, requeue_at};
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::stored::{self, StoredClaim};
use crate::planner::claim::{plan, requests};
use crate::planner::select_pool::serving_pool;
use jiff::Timestamp;
use kube::runtime::controller::Action;
use std::convert::Infallible;
use std::sync::Arc;

/// Brings a claim's status up to date. It waits for no request.
///
/// # Errors
/// None: the outcome of a write is part of the next snapshot.
pub async fn reconcile(claim: Arc<StoredClaim>, context: Arc<Context>) -> Result<Action, Infallible> {
    let key = stored::key(&claim.metadata);
    let now = context.shared.now();
    let next = step(&context, &key, now);
    Ok(requeue_at(now, next))
}

/// Decides on one claim and sends what follows. Returns when time alone changes the plan.
pub fn step(context: &Context, key: &Key, now: Timestamp) -> Option<Timestamp> {
    let metrics = &context.executor.metrics;
    let _timed = metrics.reconciling(ReconcileRequest::Claim(key.clone()));
    if !context.shared.synced() {
        return None;
    }
    let committed = decide(&mut context.shared.lock(), key, now);
    context.follow(committed)
}

/// Decides on one claim: snapshot, plan, commit. The requests that follow are queued.
pub fn decide(index: &mut Index, key: &Key, now: Timestamp) -> Committed {
    let mut committed = Committed::default();
    if let Some(snapshot) = index.claim_snapshot(key, now) {
        let reassigned = reassign_pool(index, &snapshot.claim, now);
        let requests = requests(&snapshot, plan(&snapshot));
        committed = commit::claim_requests(index, &snapshot, requests);
        committed.to_reconcile.extend(reassigned);
    }
    committed
        .to_reconcile
        .extend(index.reports_over_limit.next(&index.requests));
    committed
}

/// Selects a pool anew for a selector claim that has lost its pool. Returns the pool that now serves the claim.
fn reassign_pool(index: &mut Index, claim: &Claim, now: Timestamp) -> Vec<ReconcileRequest> {
    if !index.has_lost_its_pool(claim) {
        return Vec::new();
    }
    let pool = serving_pool(index, claim, now).map(|pool| (claim.key.clone(), pool));
    index.assign_pools(&pool.into_iter().collect())
}
