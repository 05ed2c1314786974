//! Logs and counts what became of each request: one line per write that happened, one a minute for failures that are
//! alike.

use crate::api::SandboxClaimStatus;
use crate::api::claim::{BoundSandbox, Phase};
use crate::api::conditions;
use crate::api::conditions::claim as claim_reasons;
use crate::cache::synced_cache::SharedCache;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::disruption_mark::DisruptionMark;
use crate::model::failure::{Class, Failure};
use crate::model::pod_disruption_budget::BudgetStep;
use crate::model::queue_position::without_position;
use crate::model::request::{
    BudgetOwner, BudgetRequest, ClaimWrite, Outcome, PodChange, PodWrite, Request, RevisionStep,
};
use crate::telemetry::failure_log::{self, FailedRequest};
use crate::telemetry::metrics::Metrics;
use crate::telemetry::waiting_claims_log::log_queue;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tracing::Level;
use tracing::field::display;

/// Logs and counts the outcome of `request`.
pub(crate) fn log(metrics: &Metrics, shared: &SharedCache, request: &Request, outcome: &Outcome) {
    let failure = outcome.as_ref().err();
    if let Some(failure) = failure {
        log_failure(request, failure);
    }
    let is_done = failure.is_none();
    match request {
        Request::WritePod(write) => {
            // A pod that is gone needs no deletion.
            let is_gone = failure.is_some_and(|failure| failure.class == Class::Gone);
            let is_deleted = matches!(write.change, PodChange::Delete) && is_gone;
            if is_done || is_deleted {
                log_pod_write(metrics, write);
            }
        }
        Request::CreatePod(creation) if is_done => {
            let (pool, pod, reason) = (&creation.pool.key, &creation.pod, creation.reason);
            tracing::info!(%pool, %pod, revision = creation.revision, reason, "sandbox created");
            metrics.created(pool, reason);
        }
        Request::WriteClaim(write) => match failure {
            None => log_status(metrics, shared, &write.claim, &write.status),
            Some(failure) if failure.class == Class::Gone && binds(write) => {
                let pods = names(&write.status.sandboxes);
                tracing::info!(claim = %write.claim.key, ?pods, "the claim was deleted while it was bound; its sandboxes are deleted with it");
            }
            Some(_) => {}
        },
        Request::DeleteClaim(claim) if is_done => {
            tracing::info!(claim = %claim.key, "claim deleted: ttlSecondsAfterFinished has passed");
        }
        Request::Revision(request) if is_done => {
            if let RevisionStep::Create { hash, number, .. } = &request.step {
                tracing::debug!(pool = %request.pool.key, revision = hash, number, "revision stored");
            }
        }
        Request::DisruptionBudget(request) if is_done => log_budget(request),
        _ => {}
    }
}

/// Logs that a request failed, at most once a minute for failures that are alike, because it is retried. Failures that
/// other code reports become debug lines: rejected pods, and changes that the watch shows.
fn log_failure(request: &Request, failure: &Failure) {
    let (verb, resource) = request.verb_and_resource();
    let (object, error) = (object_of(request), &failure.message);
    let what = match request {
        Request::WritePod(write) => match (&write.change, failure.class) {
            (
                PodChange::Delete
                | PodChange::Drain
                | PodChange::Restore(_)
                | PodChange::MarkDisruption(_)
                | PodChange::ChooseReplacement(_),
                Class::Rejected,
            ) => "the API server rejects the change of a pod",
            _ => return tracing::debug!(verb, resource, %object, error, "the pod was not written"),
        },
        Request::CreatePod(_) => {
            return tracing::debug!(verb, resource, %object, error, "the sandbox was not created");
        }
        _ if is_expected(failure) => return,
        Request::ReadPod(_) | Request::ReadLostPod(..) => "the pod could not be read",
        Request::WriteClaim(write) if binds(write) => {
            "the claim is bound, but its status could not be written yet"
        }
        Request::WriteClaim(_) | Request::WritePool(_) => "the status could not be written",
        Request::DeleteClaim(_) => "the claim could not be deleted",
        Request::ReadClaim(_) => "the claim could not be read",
        Request::Revision(request) => match request.step {
            RevisionStep::Delete(_) => {
                return tracing::debug!(verb, resource, %object, error, "an old revision could not be deleted");
            }
            _ => "the revision could not be stored",
        },
        Request::DisruptionBudget(_) => "the PodDisruptionBudget could not be written",
    };
    failure_log::log(FailedRequest {
        level: Level::WARN,
        what,
        verb,
        resource,
        object,
        claim: None,
        error: error.clone(),
    });
}

/// The object that a request is about.
fn object_of(request: &Request) -> Key {
    match request {
        Request::WritePod(write) => write.sandbox.key.clone(),
        Request::CreatePod(creation) => creation.pod.clone(),
        Request::ReadPod(pod) => pod.clone(),
        Request::ReadLostPod(claim, published) => Key::new(claim.key.namespace.clone(), &published.name),
        Request::WriteClaim(write) => write.claim.key.clone(),
        Request::DeleteClaim(claim) | Request::ReadClaim(claim) => claim.key.clone(),
        Request::WritePool(write) => write.pool.key.clone(),
        Request::Revision(request) => request.pool.key.clone(),
        Request::DisruptionBudget(request) => {
            Key::new(request.owner.key().namespace.clone(), request.step.name())
        }
    }
}

/// The write publishes a claim that waits with its sandboxes.
fn binds(write: &ClaimWrite) -> bool {
    write.status.phase == Some(Phase::Bound) && write.claim.waiting()
}

/// The object has changed or is gone, which the watch shows, or the failure is in the log already.
fn is_expected(failure: &Failure) -> bool {
    matches!(failure.class, Class::Conflict | Class::Gone) || failure.is_logged()
}

fn log_pod_write(metrics: &Metrics, write: &PodWrite) {
    let (pool, pod, reason) = (write.sandbox.pool_key(), &write.sandbox.key, write.reason);
    match &write.change {
        PodChange::Bind { .. } | PodChange::ChooseReplacement(_) => {}
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
            tracing::info!(%pool, %pod, deadline, allowed, "disruption deadline of the sandbox written");
        }
    }
}

fn log_budget(request: &BudgetRequest) {
    let name = request.step.name();
    let (pool, claim) = match &request.owner {
        BudgetOwner::Pool(pool) => (Some(display(&pool.key)), None),
        BudgetOwner::Claim(claim) => (None, Some(display(&claim.key))),
    };
    match &request.step {
        BudgetStep::Create(_, spec) | BudgetStep::Change(_, spec) => {
            let min_available = match &spec.min_available {
                Some(IntOrString::Int(count)) => Some(*count),
                _ => None,
            };
            tracing::info!(pool, claim, name, min_available, "PodDisruptionBudget written");
        }
        BudgetStep::Delete(_) => tracing::info!(pool, claim, name, "PodDisruptionBudget deleted"),
    }
}

/// Logs and counts that `status` has been written for `claim`.
fn log_status(metrics: &Metrics, shared: &SharedCache, claim: &Claim, status: &SandboxClaimStatus) {
    let key = Key::new(claim.key.namespace.clone(), &status.pool);
    let known = shared.lock().pool(&key).map(|_| &key);
    metrics.meters.decided(known, claim, status);
    let follows = status.phase == claim.status.phase;
    let (outcome, type_) = match status.phase {
        // Only an address is gone from its status.
        Some(Phase::Failed | Phase::Expired) if follows => return,
        Some(Phase::Bound) if follows => ("updated", conditions::READY),
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
        tracing::info!(%claim, pool, ?pods, warm, wait_seconds = wait, "claim bound");
    } else if ["failed", "waits"].contains(&outcome) {
        tracing::warn!(%claim, pool, reason, "claim {outcome}: {message}");
    } else {
        tracing::info!(%claim, pool, reason, "claim {outcome}: {message}");
    }
}

/// The names of the pods.
fn names(sandboxes: &[BoundSandbox]) -> Vec<&str> {
    sandboxes.iter().map(|s| s.name.as_str()).collect()
}
