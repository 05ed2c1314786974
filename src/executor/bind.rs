//! Binds sandboxes to a claim (W1) and publishes them in its status (W2).

use crate::api::conditions::claim as reasons;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::client::call::{CallError, Class};
use crate::executor::claim_pod::{ClaimPodOutcome, claim_pod};
use crate::executor::handle::{BINDINGS, Executor};
use crate::executor::publish_status::{fail_claim, publish_claim_status};
use crate::executor::request_limit::RequestSlot;
use crate::executor::retry::retry_delay;
use crate::executor::task::BindOrder;
use crate::executor::waiting_claim::{report_rejection, time_left};
use crate::model::sandbox::Sandbox;
use crate::planner;
use crate::telemetry::outcome_log::{log_outcome, names};
use futures::StreamExt;
use futures::stream;
use std::sync::Arc;

/// Concurrent bindings of one claim. A claim for many sandboxes must leave slots to other claims.
const BINDINGS_PER_CLAIM: usize = BINDINGS / 4;

/// Binds the sandboxes of `order` to its claim and publishes them when the claim holds all that it wants. After a conflict the
/// next plan selects another sandbox. After a rejection the claim pauses. If W2 fails, the claim's reconcile repeats it.
pub(crate) async fn run(executor: Executor, order: Arc<BindOrder>) {
    bind_and_publish(&executor, &order).await;
    let pool = &order.pool.key;
    let mut index = executor.shared.lock();
    if index.bind_limit.end(pool, order.sandboxes.len()) {
        drop(index);
        executor.trigger(vec![ReconcileRequest::Pool(pool.clone())]);
    }
}

async fn bind_and_publish(executor: &Executor, order: &BindOrder) {
    let claim = &order.claim;
    let mut slot = executor.bindings.slot();
    // A claim for one sandbox keeps its slot from W1 to W2.
    let outcomes = if let [sandbox] = &order.sandboxes[..] {
        vec![claim_pod(executor, &mut slot, order, sandbox).await]
    } else {
        let all = order.sandboxes.iter().map(async |sandbox| {
            let mut slot = executor.bindings.slot();
            claim_pod(executor, &mut slot, order, sandbox).await
        });
        let all: Vec<_> = all.collect();
        stream::iter(all).buffered(BINDINGS_PER_CLAIM).collect().await
    };
    let mut bound = order.held.clone();
    let mut rejected = None;
    for outcome in outcomes {
        match outcome {
            ClaimPodOutcome::Held(pod) => bound.push(pod),
            ClaimPodOutcome::Missed => {}
            ClaimPodOutcome::Rejected(message) => rejected = Some(message),
            ClaimPodOutcome::Invalid(message) => {
                let message = format!("podMetadata cannot be added to a sandbox: {message}");
                let (claim, pool) = (Arc::clone(claim), Arc::clone(&order.pool));
                return fail_claim(executor.clone(), claim, pool, reasons::INVALID_SPEC, message).await;
            }
        }
    }
    // Sandboxes in the claim's status stay. Surplus sandboxes are released after the status is published, because only the
    // status says which sandboxes the claim keeps.
    bound.sort_by_key(|sandbox| !claim.lists(sandbox));
    bound.truncate(claim.wanted());
    let published = if bound.len() < claim.wanted() {
        None
    } else {
        Some(publish_claim(executor, &mut slot, order, &bound).await)
    };
    drop(slot);
    if let (Some(message), None) = (rejected, &published) {
        let message = format!("the API server refuses the binding: {message}");
        let reported = report_rejection(executor, order, &message).await;
        let left = time_left(&executor.shared.lock(), order, executor.shared.now());
        let after = retry_delay(reported.err().as_ref()).min(left);
        return executor.pause(Arc::clone(claim), after);
    }
    let mut index = executor.shared.lock();
    index.end_rejection(claim);
    index.expectations.end_in_flight(&claim.uid);
    drop(index);
    match published {
        Some(Err(error)) if error.class() != Class::Gone => {
            if !error.is_logged() {
                tracing::warn!(claim = %claim.key, error = error.message(), "the claim is bound, but its status could not be written yet");
            }
            executor.requeue_claim_after(claim, Some(&error));
        }
        Some(_) => {}
        // Plans skipped the claim while this task ran, and a second leader may have served it.
        None => {
            let mut again = executor.shared.lock().pools_for(claim);
            again.push(ReconcileRequest::Claim(claim.key.clone()));
            executor.trigger(again);
        }
    }
}

/// W2.
async fn publish_claim(
    executor: &Executor,
    slot: &mut RequestSlot<'_>,
    order: &BindOrder,
    bound: &[Arc<Sandbox>],
) -> Result<(), CallError> {
    let claim = &order.claim;
    let resolved_spec = claim.resolved_spec(Some(&order.pool.claim_defaults));
    // The API has readiness in whole seconds. A claim that waited found no available sandbox in the second of its arrival.
    let arrived = claim.arrived.as_second();
    let availability_rule = &order.pool.spec.availability_rule;
    let latest = if order.warm { arrived } else { arrived - 1 };
    let warm = |sandbox: &Sandbox| {
        sandbox
            .up_at(availability_rule)
            .is_some_and(|at| at.as_second() <= latest)
    };
    let status = planner::claim::binding(claim, &resolved_spec, bound, warm, executor.shared.now());
    let published = publish_claim_status(executor, slot, claim, &status).await;
    match &published {
        Ok(()) => log_outcome(&executor.metrics, &executor.shared, claim, &status),
        Err(error) if error.class() == Class::Gone => {
            let pods = names(&status.sandboxes);
            tracing::info!(claim = %claim.key, pods, "the claim was deleted while it was bound; its sandboxes are deleted with it");
        }
        Err(_) => {}
    }
    published
}
