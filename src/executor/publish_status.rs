//! Writes statuses of pools and claims, and deletes claims.

use crate::api::claim::Phase;
use crate::api::{PoolStatus, SandboxClaimStatus};
use crate::cache::reconcile_request::ReconcileRequest;
use crate::client::call::{CallError, Class, call};
use crate::client::object_requests::only;
use crate::executor::handle::Executor;
use crate::executor::request_limit::RequestSlot;
use crate::executor::retry::{confirm, retry_delay};
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use crate::model::stored::{StoredClaim, StoredPool};
use crate::planner;
use crate::telemetry::outcome_log::log_outcome;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Writes the status of a pool and the events about its changes. It needs no resource version: the status is recomputed from
/// the cache, whatever was stored before.
pub(crate) async fn pool_status(executor: Executor, pool: Arc<Pool>, status: PoolStatus) {
    let api: Api<StoredPool> = Api::namespaced(executor.client.clone(), &pool.key.namespace);
    let body = json!({"metadata": {"uid": pool.uid}, "status": changed(&pool.status, &status)});
    match call(api.patch_status(&pool.key.name, &PatchParams::default(), &Patch::Merge(body))).await {
        Ok(answer) => {
            executor
                .shared
                .lock()
                .published_pool(&pool, answer.metadata.resource_version.as_deref());
            executor.events.send(&pool, &status).await;
        }
        Err(error) if error.class() == Class::Gone => {}
        Err(error) => {
            if !error.is_logged() {
                tracing::warn!(pool = %pool.key, error = error.message(), "the status could not be written");
            }
            let again = vec![ReconcileRequest::Pool(pool.key.clone())];
            executor.requeue_after(again, retry_delay(Some(&error)));
        }
    }
}

/// The merge patch (RFC 7386) from `before` to `after`. It sets fields that only `before` has to null.
pub fn changed<S: Serialize>(before: &S, after: &S) -> Value {
    let (before, mut after) = (json!(before), json!(after));
    if let (Some(before), Some(after)) = (before.as_object(), after.as_object_mut()) {
        for field in before.keys() {
            after.entry(field).or_insert(Value::Null);
        }
    }
    after
}

/// The patch that writes the status of a claim whose resource version is still `version`.
fn claim_patch(claim: &Claim, version: &str, status: &SandboxClaimStatus) -> Patch<Value> {
    let metadata = json!({"uid": claim.uid, "resourceVersion": version});
    Patch::Merge(json!({"metadata": metadata, "status": changed(&claim.status, status)}))
}

/// W2: writes the status of a claim from `slot`, on the version that the decision was made on. After a conflict the claim is
/// read again and the write repeated, as long as the claim still waits.
///
/// # Errors
/// When another operator bound or ended the claim, or the write failed.
pub(crate) async fn publish_claim_status(
    executor: &Executor,
    slot: &mut RequestSlot<'_>,
    claim: &Claim,
    status: &SandboxClaimStatus,
) -> Result<(), CallError> {
    let api: Api<StoredClaim> = Api::namespaced(executor.client.clone(), &claim.key.namespace);
    let parameters = PatchParams::default();
    let mut version = claim.resource_version.clone();
    loop {
        let patch = claim_patch(claim, &version, status);
        let answer = confirm(slot, || {
            call(api.patch_status(&claim.key.name, &parameters, &patch))
        })
        .await;
        let error = match answer {
            Ok(answer) => {
                executor.shared.lock().published_claim(
                    claim,
                    status.phase,
                    answer.metadata.resource_version.as_deref(),
                );
                return Ok(());
            }
            Err(error) if error.class() == Class::Conflict => error,
            Err(error) => return Err(error),
        };
        let stored = confirm(slot, || call(api.get(&claim.key.name))).await?;
        let now = Claim::read(&stored, claim.sequence, claim.arrived);
        if now.uid == claim.uid
            && now.status.phase == Some(Phase::Bound)
            && now.status.sandboxes == status.sandboxes
        {
            return Ok(());
        }
        if now.uid != claim.uid || !now.waiting() || now.resource_version == version {
            return Err(error);
        }
        version = now.resource_version;
    }
}

/// Ends a claim of `pool` without a sandbox.
pub(crate) async fn fail_claim(
    executor: Executor,
    claim: Arc<Claim>,
    pool: Arc<Pool>,
    reason: &'static str,
    message: String,
) {
    let (resolved_spec, pool) = (claim.resolved_spec(Some(&pool.claim_defaults)), &pool.key.name);
    let status = planner::claim::failure(
        &claim,
        pool,
        &resolved_spec,
        reason,
        &message,
        executor.shared.now(),
    );
    match write_claim(&executor, &claim, status).await {
        // A claim that has changed is planned again when the watch shows it.
        Err(error) if error.class() != Class::Conflict => executor.pause(claim, retry_delay(Some(&error))),
        answer => {
            executor.shared.lock().expectations.end_in_flight(&claim.uid);
            if let Err(error) = answer {
                executor.requeue_claim_after(&claim, Some(&error));
            }
        }
    }
}

/// Writes the status of a claim on the version that the decision was made on. When that fails, the claim is requeued.
pub(crate) async fn update_claim(executor: &Executor, claim: &Claim, status: SandboxClaimStatus) {
    if let Err(error) = write_claim(executor, claim, status).await {
        // After a conflict the watch shows the new version and triggers a reconcile. After any other error nothing else does.
        executor.requeue_claim_after(claim, Some(&error));
    }
}

/// Writes the status of a claim on the version that the decision was made on. A claim that is gone is no error.
pub(crate) async fn write_claim(
    executor: &Executor,
    claim: &Claim,
    status: SandboxClaimStatus,
) -> Result<(), CallError> {
    let api: Api<StoredClaim> = Api::namespaced(executor.client.clone(), &claim.key.namespace);
    let patch = claim_patch(claim, &claim.resource_version, &status);
    match call(api.patch_status(&claim.key.name, &PatchParams::default(), &patch)).await {
        Ok(answer) => {
            executor.shared.lock().published_claim(
                claim,
                status.phase,
                answer.metadata.resource_version.as_deref(),
            );
            log_outcome(&executor.metrics, &executor.shared, claim, &status);
            Ok(())
        }
        Err(error) if error.class() == Class::Gone => Ok(()),
        Err(error) => {
            if error.class() != Class::Conflict && !error.is_logged() {
                tracing::warn!(claim = %claim.key, error = error.message(), "the status could not be written");
            }
            Err(error)
        }
    }
}

/// Deletes the version of an ended claim that the decision was made on.
pub(crate) async fn delete_claim(executor: &Executor, claim: &Claim) {
    let api: Api<StoredClaim> = Api::namespaced(executor.client.clone(), &claim.key.namespace);
    let version_decided_on = only(&claim.uid, Some(&claim.resource_version));
    match call(api.delete(&claim.key.name, &version_decided_on)).await {
        Ok(_) => tracing::info!(claim = %claim.key, "claim deleted: ttlSecondsAfterFinished has passed"),
        Err(error) if error.class() == Class::Gone => {}
        Err(error) => {
            if error.class() != Class::Conflict && !error.is_logged() {
                tracing::warn!(claim = %claim.key, error = error.message(), "the claim could not be deleted");
            }
            executor.requeue_claim_after(claim, Some(&error));
        }
    }
}
