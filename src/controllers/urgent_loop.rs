//! The loop that reconciles at once what a claimant waits for. The queue of a controller would hold each object back: its
//! timers count whole milliseconds.

use crate::cache::reconcile_request::ReconcileRequest;
use crate::controllers::context::Context;
use crate::controllers::leader_election::Term;
use crate::controllers::{claim, pool};
use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::watch::Receiver;

/// Reconciles what is `urgent` while this process leads. The controllers reconcile again what time alone changes, and
/// what was due while the term was over.
pub async fn run(
    context: Arc<Context>,
    mut urgent: UnboundedReceiver<ReconcileRequest>,
    term: Receiver<Term>,
) {
    while let Some(first) = urgent.next().await {
        let mut due = vec![first];
        while let Ok(next) = urgent.try_recv() {
            due.push(next);
        }
        let mut seen = HashSet::new();
        due.retain(|request| seen.insert(request.clone()));
        due.retain(|request| !term.borrow().runs() || is_due_again(&context, request));
        context.executor.reconcile(due);
    }
}

/// Reconciles an object. Returns whether the controller has to reconcile it again at some time.
fn is_due_again(context: &Context, request: &ReconcileRequest) -> bool {
    let now = context.shared.now();
    match request {
        ReconcileRequest::Pool(key) => pool::step(context, key, now).is_some(),
        ReconcileRequest::Claim(key) => claim::step(context, key, now).is_some(),
        ReconcileRequest::FailedWrites => true,
    }
}
