//! What happens when a binding fails, or when the API server rejects it.

use crate::cache::index::Index;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::model::claim::Claim;
use crate::model::failure::{Class, Failure};
use crate::model::request::{PodChange, PodWrite};
use crate::model::retry::{RETRY_DELAY, Tries};
use crate::telemetry::failure_log::{self, FailedRequest};
use jiff::Timestamp;
use tracing::Level;

/// A binding came to nothing for another reason than a rejection.
pub(crate) fn end_rejection(index: &mut Index, write: &PodWrite) {
    if let PodChange::Bind { claim, .. } = &write.change {
        index.end_rejection(claim);
    }
}

/// Until when the claim of a binding waits, according to the cache: its user may have changed its deadline.
pub(crate) fn waits_until(index: &Index, write: &PodWrite) -> Timestamp {
    let PodChange::Bind { claim, pool } = &write.change else {
        return Timestamp::MAX;
    };
    let known = index.claim(&claim.key);
    let Some(claim) = known.filter(|known| known.uid == claim.uid && known.waiting()) else {
        return Timestamp::MIN;
    };
    let deadline = claim.deadline(&claim.resolved_spec(Some(&pool.claim_defaults)));
    let ends = [deadline, claim.expires_at()];
    ends.into_iter().flatten().min().unwrap_or(Timestamp::MAX)
}

/// The status of a claim says so when its binding keeps failing.
pub(crate) fn report(
    index: &mut Index,
    write: &PodWrite,
    tries: &Tries,
    now: Timestamp,
) -> Vec<ReconcileRequest> {
    let PodChange::Bind { claim, .. } = &write.change else {
        return Vec::new();
    };
    if !tries.keeps_failing() || tries.failure.class == Class::Conflict || index.is_rejected(claim) {
        return Vec::new();
    }
    let error = &tries.failure.message;
    log(Level::WARN, "the binding keeps failing", claim, write, error);
    index.note_rejection(
        claim,
        &format!("the API server keeps failing the binding: {error}"),
        now,
    )
}

/// The API server rejects a binding. The cause may be the metadata that the claim adds, so the sandbox stays available
/// to other claims.
pub(crate) fn reject(
    index: &mut Index,
    write: &PodWrite,
    failure: &Failure,
    now: Timestamp,
) -> Vec<ReconcileRequest> {
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
    if !failure.is_logged() && !index.is_rejected(claim) {
        let what = "the API server rejects the binding; the operator tries again";
        log(Level::ERROR, what, claim, write, error);
    }
    let end = waits_until(index, write);
    if end <= now {
        return Vec::new();
    }
    index.note_rejected_sandbox(claim, &write.sandbox);
    let message = format!("the API server rejects the binding: {error}");
    index.note_rejection(claim, &message, end.min(now + RETRY_DELAY))
}

fn log(level: Level, what: &'static str, claim: &Claim, write: &PodWrite, error: &str) {
    failure_log::log(FailedRequest {
        level,
        what,
        verb: "patch",
        resource: "pods",
        object: write.sandbox.key.clone(),
        claim: Some(claim.key.clone()),
        error: error.to_string(),
    });
}
