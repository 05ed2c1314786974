//! The loop that reconciles at once what a claimant waits for. The queue of a controller would hold each object back: its
//! timers count whole milliseconds.

use crate::cache::reconcile_request::ReconcileRequest;
use crate::controllers::context::Context;
use crate::controllers::leader_election::Term;
use crate::controllers::{claim, pool, retry_loop};
use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use jiff::Timestamp;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::watch::Receiver;

/// Requests that are taken together, at most. An object that several of them ask for is reconciled once.
const AT_ONCE: usize = 64;

/// Reconciles what is `urgent` while this process leads. The controllers reconcile again what time alone changes, and
/// what was due while the term was over.
pub async fn run(context: Arc<Context>, urgent: UnboundedReceiver<ReconcileRequest>, term: Receiver<Term>) {
    let mut urgent = urgent.ready_chunks(AT_ONCE);
    while let Some(mut due) = urgent.next().await {
        let mut seen = HashSet::new();
        due.retain(|request| seen.insert(request.clone()));
        for request in due {
            let is_due_again = !term.borrow().runs() || step(&context, &request).is_some();
            if is_due_again {
                context.executor.reconcile(vec![request]);
            }
        }
    }
}

/// Reconciles an object. Returns when time alone changes the plan.
fn step(context: &Context, request: &ReconcileRequest) -> Option<Timestamp> {
    let now = context.shared.now();
    match request {
        ReconcileRequest::Pool(key) => pool::step(context, key, now),
        ReconcileRequest::Claim(key) => claim::step(context, key, now),
        ReconcileRequest::FailedWrites => retry_loop::step(context, now),
    }
}
