//! Reconciles the writes on pods that failed: what follows for each, and when.

use crate::cache::expectations::Stage;
use crate::cache::index::Index;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::snapshot::ExpectedWrite;
use crate::controllers::commit::Committed;
use crate::controllers::context::Context;
use crate::controllers::leader_election::Term;
use crate::model::failure::{Class, Failure};
use crate::model::request::{PodChange, PodCreation, PodWrite, Request};
use crate::model::retry::{self, FailedWrite, Next, RETRY_DELAY, Tries};
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
    creations(index, now, &mut committed);
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
            (PodChange::Bind { .. }, _) => FailedWrite::Bind(waits_until(index, write)),
            _ => FailedWrite::Change,
        };
        let missed = known.progress.stage == Stage::Missed;
        match retry::next(failed, tries, missed, now) {
            Next::Wait(at) => {
                committed.wait(at);
                committed.to_reconcile.extend(report(index, write, tries, now));
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
                end_rejection(index, write);
                committed.wait(tries.at.checked_add(RETRY_DELAY).unwrap_or(Timestamp::MAX));
                committed.to_reconcile.extend(of_write(index, write));
            }
            Next::Forget => {
                index.expectations.forget(write);
                end_rejection(index, write);
                committed.to_reconcile.extend(of_write(index, write));
            }
            Next::Reject => {
                index.expectations.forget(write);
                committed
                    .to_reconcile
                    .extend(reject(index, write, &tries.failure, now));
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

/// A binding came to nothing for another reason than a rejection.
fn end_rejection(index: &mut Index, write: &PodWrite) {
    if let PodChange::Bind { claim, .. } = &write.change {
        index.end_rejection(claim);
    }
}

/// Until when the claim of a binding waits, according to the cache: its user may have changed its deadline.
fn waits_until(index: &Index, write: &PodWrite) -> Timestamp {
    let PodChange::Bind { claim, pool } = &write.change else {
        return Timestamp::MAX;
    };
    let known = index.claim(&claim.key);
    let Some(claim) = known.filter(|known| known.uid == claim.uid && known.waiting()) else {
        return Timestamp::MIN;
    };
    let deadline = claim.deadline(&claim.resolved_spec(Some(&pool.claim_defaults)));
    let ends = [deadline, claim.expiration()];
    ends.into_iter().flatten().min().unwrap_or(Timestamp::MAX)
}

/// Excludes the pod from plans until the watch shows a change of it, unless it has shown one since the write was decided.
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

/// The status of a claim says so when its binding keeps failing.
fn report(index: &mut Index, write: &PodWrite, tries: &Tries, now: Timestamp) -> Vec<ReconcileRequest> {
    let PodChange::Bind { claim, .. } = &write.change else {
        return Vec::new();
    };
    if !tries.keeps_failing() || tries.failure.class == Class::Conflict || index.is_rejected(claim) {
        return Vec::new();
    }
    let error = &tries.failure.message;
    tracing::warn!(claim = %claim.key, pod = %write.sandbox.key, error, "the binding keeps failing");
    index.note_rejection(
        claim,
        &format!("the API server does not make the binding: {error}"),
        now,
    )
}

/// The API server rejects a binding. The cause may be the metadata that the claim adds, so the sandbox stays available to other
/// claims.
fn reject(index: &mut Index, write: &PodWrite, failure: &Failure, now: Timestamp) -> Vec<ReconcileRequest> {
    let PodChange::Bind { claim, .. } = &write.change else {
        return Vec::new();
    };
    let error = &failure.message;
    if failure.class == Class::Invalid {
        if let Some(memory) = index.claim_memory_mut(claim) {
            memory.invalid_metadata = Some(error.clone());
        }
        return Vec::new();
    }
    if !failure.is_logged() {
        tracing::error!(claim = %claim.key, pod = %write.sandbox.key, error, "the API server rejects the binding");
    }
    let end = waits_until(index, write);
    if end <= now {
        return Vec::new();
    }
    index.note_rejected_sandbox(claim, &write.sandbox);
    let message = format!("the API server refuses the binding: {error}");
    index.note_rejection(claim, &message, end.min(now + RETRY_DELAY))
}

fn creations(index: &mut Index, now: Timestamp, committed: &mut Committed) {
    let failed: Vec<_> = index
        .expectations
        .failed_creations()
        .into_iter()
        .cloned()
        .collect();
    for known in failed {
        let Some(tries) = &known.progress.tries else {
            continue;
        };
        let creation = &known.creation;
        let missed = known.progress.stage == Stage::Missed;
        let stage = match retry::next(FailedWrite::Create(known.decided), tries, missed, now) {
            Next::Wait(at) => {
                committed.wait(at);
                continue;
            }
            Next::Send => {
                index
                    .requests
                    .push(Request::CreatePod(Arc::clone(creation)), true);
                Stage::Sent
            }
            Next::Read => {
                index.requests.push(Request::ReadPod(creation.pod.clone()), true);
                Stage::Reading
            }
            Next::Await => Stage::Answered,
            Next::Hold | Next::Forget | Next::Reject => {
                back_off(index, creation, &tries.failure, now);
                let pool = creation.pool.key.clone();
                committed.to_reconcile.push(ReconcileRequest::Pool(pool));
                continue;
            }
        };
        if let Some(known) = index.expectations.creation(&creation.pod) {
            known.progress.enter(stage);
        }
    }
}

/// Forgets a creation that did not happen and stops the creations of its pool for a while. The pool's status says why.
fn back_off(index: &mut Index, creation: &PodCreation, failure: &Failure, now: Timestamp) {
    let pool = &creation.pool;
    index.expectations.forget_creation(&creation.pod);
    index.cancel_creations(pool);
    let asks = match failure.class {
        Class::Throttled(pause) => Some(pause),
        _ => None,
    };
    let Some(memory) = index.pool_memory_mut(pool) else {
        return;
    };
    memory.accepted = None;
    let backoff = &mut memory.creation_backoff;
    let pause = backoff.failed(pool, failure.message.clone(), asks, now);
    if !failure.is_logged() {
        let error = &failure.message;
        tracing::warn!(pool = %pool.key, error, retry_in = ?pause, "a pod could not be created");
    }
}
