//! Binding: W1 gives the pod to the claim and excludes every other claim, W2 publishes it.

use crate::api::conditions::claim as reasons;
use crate::cache::index::ReconcileRequest;
use crate::client::call::{CallError, Class};
use crate::executor::claim_log::{names, tell};
use crate::executor::claim_pod::{ClaimPodOutcome, give, still_waits, time_left};
use crate::executor::publish_status::{claim_status, fail_claim, write_claim};
use crate::executor::request_limit::RequestSlot;
use crate::executor::{BINDINGS, Writer, pause_after};
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use crate::model::sandbox::Sandbox;
use crate::planner;
use futures::StreamExt;
use futures::stream;
use jiff::Timestamp;
use std::sync::Arc;

/// Bindings of one claim under way at once. One for many is to leave places for others.
const OF_ONE_CLAIM: usize = BINDINGS / 4;

/// One claim and the sandboxes that it is to get now.
#[derive(Clone, Debug)]
pub struct BindOrder {
    /// The claim as last seen.
    pub claim: Arc<Claim>,
    /// The pool that serves it.
    pub pool: Arc<Pool>,
    pub(crate) sandboxes: Vec<Arc<Sandbox>>,
    /// Those that it holds already: the last attempt was left half done.
    pub(crate) held: Vec<Arc<Sandbox>>,
    /// The claim has not had to wait for them.
    pub(crate) warm: bool,
}

/// Binds the sandboxes of `order` to its claim, and publishes them when it has all that it wants. Whatever happens, none
/// is left bound to anything else: for one that has changed the next plan takes the next sandbox; a claim for which one is
/// refused pauses; if W2 does not arrive, the claim's own reconcile repeats it.
pub(crate) async fn run(writer: Writer, order: Arc<BindOrder>) {
    serve(&writer, &order).await;
    let pool = &order.pool.key;
    let mut index = writer.shared.lock();
    if index.bind_limit.give_back(pool, order.sandboxes.len()) {
        drop(index);
        writer.trigger(vec![ReconcileRequest::Pool(pool.clone())]);
    }
}

async fn serve(writer: &Writer, order: &BindOrder) {
    let claim = &order.claim;
    let mut slot = writer.bindings.slot();
    // A claim for one keeps its place among the writes from its first to its second.
    let outcomes = if let [sandbox] = &order.sandboxes[..] {
        vec![give(writer, &mut slot, order, sandbox).await]
    } else {
        let all = order.sandboxes.iter().map(async |sandbox| {
            let mut slot = writer.bindings.slot();
            give(writer, &mut slot, order, sandbox).await
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
                return fail_claim(writer.clone(), claim, pool, reasons::INVALID_SPEC, message).await;
            }
        }
    }
    // Those that its status lists stay, and what is too many is released once the status tells so.
    bound.sort_by_key(|sandbox| !claim.lists(sandbox));
    bound.truncate(claim.wanted());
    let published = if bound.len() < claim.wanted() {
        None
    } else {
        Some(publish(writer, &mut slot, order, &bound).await)
    };
    drop(slot);
    if let (Some(message), None) = (refused, &published) {
        let message = format!("the API server refuses the binding: {message}");
        let told = report_rejection(writer, order, &message).await;
        let left = time_left(&writer.shared.lock(), order, writer.shared.now());
        let after = pause_after(told.err().as_ref()).min(left);
        return writer.pause(Arc::clone(claim), after);
    }
    let mut index = writer.shared.lock();
    index.end_rejection(claim);
    index.expectations.end_in_flight(&claim.uid);
    drop(index);
    match published {
        Some(Err(error)) if error.class() != Class::Gone => {
            if !error.is_logged() {
                tracing::warn!(claim = %claim.key, error = error.message(), "bound, but not published yet");
            }
            writer.requeue_claim_after(claim, Some(&error));
        }
        Some(_) => {}
        // The claim was passed over while this task had it, and a second leader may have served it.
        None => {
            let mut again = writer.shared.lock().pools_for(claim);
            again.push(ReconcileRequest::Claim(claim.key.clone()));
            writer.trigger(again);
        }
    }
}

/// Has the claim say why it is not bound, unless it says that its binding is refused.
pub(crate) async fn report_rejection(
    writer: &Writer,
    order: &BindOrder,
    message: &str,
) -> Result<(), CallError> {
    let claim = &order.claim;
    let now = writer.shared.now();
    if !note_rejection(writer, order, message, now) {
        return Ok(());
    }
    let status = planner::claim::pending(claim, reasons::BINDING_REFUSED, message, now);
    write_claim(writer, claim, status).await
}

/// Notes why the claim waits. Answers whether it is to be told.
fn note_rejection(writer: &Writer, order: &BindOrder, message: &str, now: Timestamp) -> bool {
    let claim = &order.claim;
    let mut index = writer.shared.lock();
    let waits = still_waits(&index, order, now);
    if waits {
        writer.trigger(index.note_rejection(claim, message));
    }
    let says_so = planner::claim::rejection(claim).is_some();
    waits && !(says_so && claim.status.observed_generation == claim.generation)
}

/// W2.
async fn publish(
    writer: &Writer,
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
    let status = planner::claim::binding(claim, &resolved_spec, bound, warm, writer.shared.now());
    let published = claim_status(writer, slot, claim, &status).await;
    match &published {
        Ok(()) => tell(writer, claim, &status),
        Err(error) if error.class() == Class::Gone => {
            let pods = names(&status.sandboxes);
            tracing::info!(claim = %claim.key, pods, "the claim went while it was bound, and what it holds goes with it");
        }
        Err(_) => {}
    }
    published
}
