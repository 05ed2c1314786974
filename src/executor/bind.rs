//! Binding: W1 gives the pod to the claim and excludes every other claim, W2 publishes it.

use crate::api::conditions::claim as reasons;
use crate::cache::index::ReconcileRequest;
use crate::client::call::{CallError, Class};
use crate::executor::claim_pod::{ClaimPodOutcome, give};
use crate::executor::handle::{BINDINGS, Executor};
use crate::executor::publish_status::{claim_status, fail_claim};
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

/// Bindings of one claim under way at once. One for many is to leave places for others.
const OF_ONE_CLAIM: usize = BINDINGS / 4;

/// Binds the sandboxes of `order` to its claim, and publishes them when it has all that it wants. Whatever happens, none
/// is left bound to anything else: for one that has changed the next plan takes the next sandbox; a claim for which one is
/// refused pauses; if W2 does not arrive, the claim's own reconcile repeats it.
pub(crate) async fn run(executor: Executor, order: Arc<BindOrder>) {
    serve(&executor, &order).await;
    let pool = &order.pool.key;
    let mut index = executor.shared.lock();
    if index.bind_limit.give_back(pool, order.sandboxes.len()) {
        drop(index);
        executor.trigger(vec![ReconcileRequest::Pool(pool.clone())]);
    }
}

async fn serve(executor: &Executor, order: &BindOrder) {
    let claim = &order.claim;
    let mut slot = executor.bindings.slot();
    // A claim for one keeps its place among the writes from its first to its second.
    let outcomes = if let [sandbox] = &order.sandboxes[..] {
        vec![give(executor, &mut slot, order, sandbox).await]
    } else {
        let all = order.sandboxes.iter().map(async |sandbox| {
            let mut slot = executor.bindings.slot();
            give(executor, &mut slot, order, sandbox).await
        });
        let all: Vec<_> = all.collect();
        stream::iter(all).buffered(OF_ONE_CLAIM).collect().await
    };
    let mut bound = order.held.clone();
    let mut refused = None;
    for outcomes in outcomes {
        match outcomes {
            ClaimPodOutcome::Held(pod) => bound.push(pod),
            ClaimPodOutcome::Missed => {}
            ClaimPodOutcome::Rejected(message) => refused = Some(message),
            ClaimPodOutcome::Invalid(message) => {
                let message = format!("podMetadata cannot be added to a sandbox: {message}");
                let (claim, pool) = (Arc::clone(claim), Arc::clone(&order.pool));
                return fail_claim(executor.clone(), claim, pool, reasons::INVALID_SPEC, message).await;
            }
        }
    }
    // Those that its status lists stay, and what is too many is released once the status tells so.
    bound.sort_by_key(|sandbox| !claim.lists(sandbox));
    bound.truncate(claim.wanted());
    let published = if bound.len() < claim.wanted() {
        None
    } else {
        Some(publish(executor, &mut slot, order, &bound).await)
    };
    drop(slot);
    if let (Some(message), None) = (refused, &published) {
        let message = format!("the API server refuses the binding: {message}");
        let told = report_rejection(executor, order, &message).await;
        let left = time_left(&executor.shared.lock(), order, executor.shared.now());
        let after = retry_delay(told.err().as_ref()).min(left);
        return executor.pause(Arc::clone(claim), after);
    }
    let mut index = executor.shared.lock();
    index.end_rejection(claim);
    index.expectations.end_in_flight(&claim.uid);
    drop(index);
    match published {
        Some(Err(error)) if error.class() != Class::Gone => {
            if !error.is_logged() {
                tracing::warn!(claim = %claim.key, error = error.message(), "bound, but not published yet");
            }
            executor.requeue_claim_after(claim, Some(&error));
        }
        Some(_) => {}
        // The claim was passed over while this task had it, and a second leader may have served it.
        None => {
            let mut again = executor.shared.lock().pools_for(claim);
            again.push(ReconcileRequest::Claim(claim.key.clone()));
            executor.trigger(again);
        }
    }
}

/// W2.
async fn publish(
    executor: &Executor,
    slot: &mut RequestSlot<'_>,
    order: &BindOrder,
    bound: &[Arc<Sandbox>],
) -> Result<(), CallError> {
    let claim = &order.claim;
    let resolved_spec = claim.resolved_spec(Some(&order.pool.claim_defaults));
    // The API tells readiness in whole seconds. In the second in which the claim came, one that had to wait had nothing.
    let came = claim.arrived.as_second();
    let availability_rule = &order.pool.spec.availability_rule;
    let latest = if order.warm { came } else { came - 1 };
    let warm = |sandbox: &Sandbox| {
        sandbox
            .up_at(availability_rule)
            .is_some_and(|at| at.as_second() <= latest)
    };
    let status = planner::claim::binding(claim, &resolved_spec, bound, warm, executor.shared.now());
    let published = claim_status(executor, slot, claim, &status).await;
    match &published {
        Ok(()) => log_outcome(&executor.metrics, &executor.shared, claim, &status),
        Err(error) if error.class() == Class::Gone => {
            let pods = names(&status.sandboxes);
            tracing::info!(claim = %claim.key, pods, "the claim went while it was bound, and what it holds goes with it");
        }
        Err(_) => {}
    }
    published
}
