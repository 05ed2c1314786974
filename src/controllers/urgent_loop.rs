//! The loop that reconciles at once what a claimant waits for. The queue of a controller would hold each object back: its
//! timers count whole milliseconds.

use crate::cache::reconcile_request::ReconcileRequest;
use crate::controllers::context::Context;
use crate::controllers::leader_election::Term;
use crate::controllers::urgent_queue::UrgentQueue;
use crate::controllers::{claim, pool, retry_loop};
use futures::channel::mpsc::UnboundedReceiver;
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use std::sync::Arc;
use tokio::sync::watch::Receiver;
use tokio::task::yield_now;

/// Reconciles what is `urgent` while this process leads. The controllers reconcile again what time alone changes, and
/// what was due while the term was over.
pub async fn run(
    context: Arc<Context>,
    mut urgent: UnboundedReceiver<ReconcileRequest>,
    term: Receiver<Term>,
) {
    let mut queue = UrgentQueue::default();
    while let Some(first) = urgent.next().await {
        queue.add(first);
        loop {
            while let Some(Some(more)) = urgent.next().now_or_never() {
                queue.add(more);
            }
            let round = queue.next_round();
            if round.is_empty() {
                break;
            }
            for request in round {
                let is_due_again = !term.borrow().runs() || step(&context, &request).is_some();
                if is_due_again {
                    context.executor.reconcile(vec![request]);
                }
                // All tasks share one thread: what was decided is sent before more is decided.
                yield_now().await;
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
