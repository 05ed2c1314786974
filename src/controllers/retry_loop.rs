//! The loop that tries failed writes on pods again: what follows for each, and when it is looked at next.

use crate::cache::index::Index;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::snapshot::ExpectedWrite;
use crate::cache::write_stage::Stage;
use crate::controllers::commit::Committed;
use crate::controllers::context::Context;
use crate::controllers::leader_election::Term;
use crate::controllers::{failed_bindings, failed_creations};
use crate::model::request::{PodChange, PodWrite, Request};
use crate::model::retry::{self, FailedWrite, Next, RETRY_DELAY};
use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use tokio::sync::watch::Receiver;

/// Delay of a reconcile that was due while the term was over.
const TERM_RENEWAL: SignedDuration = SignedDuration::from_secs(1);

/// Reconciles failed writes whenever one fails and whenever a retry is due, while this process leads.
pub async fn run(context: Arc<Context>, mut failures: UnboundedReceiver<()>, term: Receiver<Term>) {
    let mut next: Option<Timestamp> = None;
    loop {
        let until_next = |next: Timestamp| next.duration_since(context.shared.now());
        let pause = next
            .map_or(SignedDuration::MAX, until_next)
            .max(SignedDuration::ZERO);
        // Several failures at once are one reason to reconcile.
        if let Ok(None) = tokio::time::timeout(pause.unsigned_abs(), failures.next()).await {
            return;
        }
        while failures.try_recv().is_ok() {}
        let now = context.shared.now();
        next = if term.borrow().runs() {
            step(&context, now)
        } else {
            now.checked_add(TERM_RENEWAL).ok()
        };
    }
}

/// Decides on every failed write and sends what follows. Returns when the next retry is due.
pub fn step(context: &Context, now: Timestamp) -> Option<Timestamp> {
    let _timed = context
        .executor
        .metrics
        .reconciling(ReconcileRequest::FailedWrites);
    let committed = decide(&mut context.shared.lock(), now);
    context.follow(committed)
}

/// Decides on every failed write. The requests that follow are queued.
pub fn decide(index: &mut Index, now: Timestamp) -> Committed {
    let mut committed = Committed::default();
    writes(index, now, &mut committed);
    failed_creations::decide(index, now, &mut committed);
    committed
}

fn writes(index: &mut Index, now: Timestamp, committed: &mut Committed) {
    let failed: Vec<_> = index.expectations.failed_writes().into_iter().cloned().collect();
    for known in failed {
        let Some(tries) = &known.progress.tries else {
            continue;
        };
        let write = &known.write;
        let failed = match (&write.change, known.what) {
            (_, ExpectedWrite::Conflicted) => FailedWrite::Conflicted,
            (PodChange::Bind { .. }, _) => FailedWrite::Bind(failed_bindings::waits_until(index, write)),
            _ => FailedWrite::Change,
        };
        let missed = known.progress.stage == Stage::Missed;
        match retry::next(failed, tries, missed, now) {
            Next::Wait(at) => {
                committed.wait(at);
                committed
                    .to_reconcile
                    .extend(failed_bindings::report(index, write, tries, now));
            }
            Next::Send => {
                enter(index, write, Stage::Sent);
                index.requests.push(Request::WritePod(Arc::clone(write)), true);
            }
            Next::Read => {
                enter(index, write, Stage::Reading);
                index
                    .requests
                    .push(Request::ReadPod(write.sandbox.key.clone()), true);
            }
            Next::Await => enter(index, write, Stage::Answered),
            Next::Hold => {
                hold(index, write);
                failed_bindings::end_rejection(index, write);
                committed.wait(tries.at.checked_add(RETRY_DELAY).unwrap_or(Timestamp::MAX));
                committed.to_reconcile.extend(of_write(index, write));
            }
            Next::Forget => {
                index.expectations.forget(write);
                failed_bindings::end_rejection(index, write);
                committed.to_reconcile.extend(of_write(index, write));
            }
            Next::Reject => {
                index.expectations.forget(write);
                committed
                    .to_reconcile
                    .extend(failed_bindings::reject(index, write, &tries.failure, now));
                committed.to_reconcile.extend(of_write(index, write));
            }
        }
    }
}

fn enter(index: &mut Index, write: &PodWrite, stage: Stage) {
    if let Some(known) = index.expectations.of(write) {
        known.progress.enter(stage);
    }
}

/// The pool of the pod, and the claim that it was bound to or that owns it.
fn of_write(index: &Index, write: &PodWrite) -> Vec<ReconcileRequest> {
    let mut to_reconcile = index.of_sandbox(&write.sandbox);
    if let PodChange::Bind { claim, .. } = &write.change {
        to_reconcile.extend(index.of_claim(claim));
    }
    to_reconcile
}

/// Excludes the pod from plans until the watch shows a change of it, unless it has shown one since the write was
/// decided.
fn hold(index: &mut Index, write: &PodWrite) {
    let sandbox = &write.sandbox;
    let now = index.pod(&sandbox.key);
    let has_changed =
        now.is_some_and(|now| now.uid == sandbox.uid && now.resource_version != sandbox.resource_version);
    if has_changed {
        index.expectations.forget(write);
    } else {
        index.expectations.conflicted(write);
    }
}
