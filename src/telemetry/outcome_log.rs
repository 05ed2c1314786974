//! Logs and counts what became of each request: one line per write that happened or that the API server rejects, and one for
//! many claims that begin to wait.

use crate::api::SandboxClaimStatus;
use crate::api::claim::{BoundSandbox, Phase};
use crate::api::conditions;
use crate::api::conditions::claim as claim_reasons;
use crate::cache::synced_cache::SharedCache;
use crate::cache::waiting_claims::queue_of;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::disruption_budget::BudgetStep;
use crate::model::disruption_mark::DisruptionMark;
use crate::model::failure::{Class, Failure};
use crate::model::queue_position::without_position;
use crate::model::request::{ClaimWrite, Outcome, PodChange, PodWrite, Request, RevisionStep};
use crate::telemetry::log_once::log_once;
use crate::telemetry::metrics::Metrics;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::time::Duration;
use tracing::field::{DisplayValue, display};

/// For how long the log is silent on claims that wait for the same reason in a queue of the same size.
const QUEUE_SILENCE: Duration = Duration::from_secs(60);

/// Logs and counts the outcome of `request`.
pub(crate) fn log(metrics: &Metrics, shared: &SharedCache, request: &Request, outcome: &Outcome) {
    let failure = outcome.as_ref().err();
    match request {
        Request::WritePod(write) => log_pod_write(metrics, write, failure),
        Request::CreatePod(creation) => match failure {
            None => {
                let (pool, pod, reason) = (&creation.pool.key, &creation.pod, creation.reason);
                tracing::info!(%pool, %pod, revision = creation.revision, reason, "sandbox created");
                metrics.created(pool, reason);
            }
            Some(failure) => {
                let (pool, pod) = (&creation.pool.key, &creation.pod);
                tracing::debug!(%pool, %pod, error = failure.message, "the sandbox was not created");
            }
        },
        Request::ReadPod(pod) => log_read(pod, failure),
        Request::ReadLostPod(claim, published) => {
            log_read(&Key::new(claim.key.namespace.clone(), &published.name), failure);
        }
        Request::WriteClaim(write) => log_claim_write(metrics, shared, write, failure),
        Request::DeleteClaim(claim) => match failure {
            None => tracing::info!(claim = %claim.key, "claim deleted: ttlSecondsAfterFinished has passed"),
            Some(failure) if is_expected(failure) => {}
            Some(failure) => {
                tracing::warn!(claim = %claim.key, error = failure.message, "the claim could not be deleted");
            }
        },
        Request::ReadClaim(claim) => {
            if let Some(failure) = failure.filter(|failure| !is_expected(failure)) {
                tracing::warn!(claim = %claim.key, error = failure.message, "the claim could not be read");
            }
        }
        Request::WritePool(write) => {
            if let Some(failure) = failure.filter(|failure| !is_expected(failure)) {
                let (pool, error) = (&write.pool.key, &failure.message);
                tracing::warn!(%pool, error, "the status could not be written");
            }
        }
        Request::Revision(request) => log_revision(&request.pool.key, &request.step, failure),
        Request::DisruptionBudget(request) => log_budget(&request.pool.key, &request.step, failure),
    }
}

/// The object has changed or is gone, which the watch shows, or the failure is in the log already.
fn is_expected(failure: &Failure) -> bool {
    matches!(failure.class, Class::Conflict | Class::Gone) || failure.is_logged()
}

fn log_read(pod: &Key, failure: Option<&Failure>) {
    if let Some(failure) = failure.filter(|failure| !is_expected(failure)) {
        tracing::warn!(%pod, error = failure.message, "the pod could not be read");
    }
}

fn log_pod_write(metrics: &Metrics, write: &PodWrite, failure: Option<&Failure>) {
    let (pool, pod, reason) = (write.sandbox.pool_key(), &write.sandbox.key, write.reason);
    if let Some(failure) = failure {
        let error = &failure.message;
        match (&write.change, failure.class) {
            (PodChange::Delete, Class::Gone) => {}
            (PodChange::Delete, Class::Rejected) => {
                tracing::error!(%pod, error, "the API server rejects the deletion");
            }
            (PodChange::MarkDisruption(_), Class::Rejected) => {
                tracing::error!(%pod, error, "the API server rejects what the pod says of its eviction");
            }
            (PodChange::Drain | PodChange::Restore(_), Class::Rejected) => {
                tracing::error!(%pod, error, "the API server rejects the change of the pod's state");
            }
            (_, class) => tracing::debug!(%pod, ?class, error, "the pod was not written"),
        }
        if !matches!((&write.change, failure.class), (PodChange::Delete, Class::Gone)) {
            return;
        }
    }
    match &write.change {
        PodChange::Bind { .. } => {}
        PodChange::Delete => {
            tracing::info!(%pool, %pod, reason, "sandbox deleted");
            metrics.deleted(&pool, reason);
        }
        PodChange::Drain => {
            tracing::info!(%pool, %pod, reason, "sandbox draining");
            metrics.drained(&pool, reason);
        }
        PodChange::Restore(_) => tracing::info!(%pool, %pod, reason, "sandbox warm again"),
        PodChange::MarkDisruption(DisruptionMark { deadline, allowed }) => {
            let deadline = deadline.map(display);
            tracing::info!(%pool, %pod, deadline, allowed, "the sandbox says when it may be evicted");
        }
    }
}

fn log_claim_write(metrics: &Metrics, shared: &SharedCache, write: &ClaimWrite, failure: Option<&Failure>) {
    let claim = &write.claim;
    let binds = write.status.phase == Some(Phase::Bound) && claim.waiting();
    match failure {
        None => log_status(metrics, shared, claim, &write.status),
        Some(failure) if failure.class == Class::Gone && binds => {
            let pods = names(&write.status.sandboxes);
            tracing::info!(claim = %claim.key, pods, "the claim was deleted while it was bound; its sandboxes are deleted with it");
        }
        Some(failure) if is_expected(failure) => {}
        Some(failure) if binds => {
            tracing::warn!(claim = %claim.key, error = failure.message, "the claim is bound, but its status could not be written yet");
        }
        Some(failure) => {
            tracing::warn!(claim = %claim.key, error = failure.message, "the status could not be written");
        }
    }
}

fn log_revision(pool: &Key, step: &RevisionStep, failure: Option<&Failure>) {
    match (step, failure) {
        (RevisionStep::Create { hash, number, .. }, None) => {
            tracing::debug!(%pool, revision = hash, number, "revision stored");
        }
        (RevisionStep::Delete(revision), Some(failure)) if !is_expected(failure) => {
            tracing::debug!(revision = %revision.key, error = failure.message, "an old revision could not be deleted");
        }
        (_, Some(failure)) if !is_expected(failure) => {
            tracing::warn!(%pool, error = failure.message, "the revision could not be stored");
        }
        _ => {}
    }
}

fn log_budget(pool: &Key, step: &BudgetStep, failure: Option<&Failure>) {
    let name = step.name();
    match (step, failure) {
        (BudgetStep::Create(_, spec) | BudgetStep::Change(_, spec), None) => {
            let min_available = match &spec.min_available {
                Some(IntOrString::Int(count)) => Some(*count),
                _ => None,
            };
            tracing::info!(%pool, name, min_available, "PodDisruptionBudget written");
        }
        (BudgetStep::Delete(_), None) => tracing::info!(%pool, name, "PodDisruptionBudget deleted"),
        (_, Some(failure)) if is_expected(failure) => {}
        (_, Some(failure)) => {
            tracing::warn!(%pool, name, error = failure.message, "the PodDisruptionBudget could not be written");
        }
    }
}

/// Logs and counts that `status` has been written for `claim`.
fn log_status(metrics: &Metrics, shared: &SharedCache, claim: &Claim, status: &SandboxClaimStatus) {
    let key = Key::new(claim.key.namespace.clone(), &status.pool);
    let known = shared.lock().pool(&key).map(|_| &key);
    metrics.meters.decided(known, claim, status);
    let was_bound = claim.status.phase == Some(Phase::Bound);
    let (outcome, type_) = match status.phase {
        Some(Phase::Bound) if was_bound => ("updated", conditions::READY),
        Some(Phase::Bound) => ("bound", conditions::BOUND),
        Some(Phase::Failed) => ("failed", conditions::BOUND),
        Some(Phase::Expired) => ("expired", conditions::BOUND),
        Some(Phase::Pending) | None => ("waits", conditions::BOUND),
    };
    let condition = conditions::find(&status.conditions, type_);
    let (reason, message) = condition.map_or(("", ""), |c| (c.reason.as_str(), c.message.as_str()));
    let pool = known.map(display);
    if outcome == "waits" && ![claim_reasons::SANDBOX_LOST, claim_reasons::INVALID_SPEC].contains(&reason) {
        tracing::debug!(claim = %claim.key, pool, reason, "claim waits: {message}");
        log_queue(shared, claim, pool, reason, without_position(message));
        return;
    }
    let claim = &claim.key;
    if outcome == "bound" {
        let (pods, wait) = (names(&status.sandboxes), status.wait_seconds);
        let warm = status.sandboxes.iter().all(|sandbox| sandbox.warm);
        tracing::info!(%claim, pool, pods, warm, wait_seconds = wait, "claim bound");
    } else {
        tracing::info!(%claim, pool, reason, "claim {outcome}: {message}");
    }
}

/// Logs that claims wait, of which `claim` is one: one line a minute for a pool and a reason, and another each time that the queue
/// has doubled.
fn log_queue(
    shared: &SharedCache,
    claim: &Claim,
    pool: Option<DisplayValue<&Key>>,
    reason: &str,
    message: &str,
) {
    let queue = queue_of(claim);
    let waiting = shared.lock().waiting_claims.len(&queue);
    let key = format!("{queue} {reason} {:?}", waiting.checked_ilog2());
    log_once(&key, QUEUE_SILENCE, || {
        let oldest = shared.lock().oldest_of(&queue).cloned();
        let since = oldest.as_ref().map(|oldest| oldest.waits_from(oldest.arrived));
        let waited = since.map(|since| shared.now().duration_since(since).as_secs());
        let oldest = oldest.as_ref().map(|oldest| display(&oldest.key));
        tracing::info!(
            pool,
            reason,
            waiting,
            oldest,
            oldest_waits_seconds = waited,
            "claims wait: {message}"
        );
    });
}

/// The names of the pods, separated by commas.
fn names(sandboxes: &[BoundSandbox]) -> String {
    let names: Vec<_> = sandboxes.iter().map(|s| s.name.as_str()).collect();
    names.join(",")
}
