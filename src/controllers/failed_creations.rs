//! What happens when the creation of a pod fails, or when the API server rejects it.

use crate::cache::index::Index;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::write_stage::Stage;
use crate::controllers::commit::Committed;
use crate::model::failure::{Class, Failure};
use crate::model::request::{PodCreation, Request};
use crate::model::retry::{self, FailedWrite, Next};
use jiff::Timestamp;
use std::sync::Arc;

/// Decides on every failed creation. The requests that follow are queued.
pub(crate) fn decide(index: &mut Index, now: Timestamp, committed: &mut Committed) {
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
    memory.accepted_creation.forget();
    let backoff = &mut memory.creation_backoff;
    let is_known = backoff.says(&failure.message);
    backoff.failed(pool, failure.message.clone(), asks, now);
    if !failure.is_logged() && !is_known {
        let error = &failure.message;
        tracing::warn!(pool = %pool.key, error, verb = "create", resource = "pods", "a pod could not be created; the operator tries again at least once a minute");
    }
}
