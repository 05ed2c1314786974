//! Writing statuses.

use crate::api::claim::Phase;
use crate::api::{PoolStatus, SandboxClaimStatus};
use crate::cache::index::ReconcileRequest;
use crate::client::call::{CallError, Class, call};
use crate::client::object_requests::only;
use crate::executor::handle::Executor;
use crate::executor::request_limit::RequestSlot;
use crate::executor::retry::confirm;
use crate::executor::retry::retry_delay;
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

/// Writes the status of a pool, and the events that tell of what is new in it. The status needs no resource
/// version: it is recomputed from what is seen, whatever was there before.
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

/// The merge patch (RFC 7386) that makes a status `after`: what `before` has and `after` leaves out is null there.
pub fn changed<S: Serialize>(before: &S, after: &S) -> Value {
    let (before, mut after) = (json!(before), json!(after));
    if let (Some(before), Some(after)) = (before.as_object(), after.as_object_mut()) {
        for field in before.keys() {
            after.entry(field).or_insert(Value::Null);
        }
    }
    after
}

/// The patch that writes the status of a claim if its version is still this one.
fn claim_patch(claim: &Claim, version: &str, status: &SandboxClaimStatus) -> Patch<Value> {
    let metadata = json!({"uid": claim.uid, "resourceVersion": version});
    Patch::Merge(json!({"metadata": metadata, "status": changed(&claim.status, status)}))
}

/// W2: writes the status of a claim from `place`, on the version of it that was decided on. When another write came
/// between, the claim is read again and the write repeated, as long as the claim still waits.
///
/// # Errors
/// When the claim has been bound or ended by somebody else, or the write failed.
pub(crate) async fn claim_status(
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

/// Ends a claim without a sandbox that `pool` was to serve.
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
        // A claim that has changed is decided on anew when the watch shows it.
        Err(error) if error.class() != Class::Conflict => executor.pause(claim, retry_delay(Some(&error))),
        answer => {
            executor.shared.lock().expectations.end_in_flight(&claim.uid);
            if let Err(error) = answer {
                executor.requeue_claim_after(&claim, Some(&error));
            }
        }
    }
}

/// Writes the status of a claim as it was decided on, or not at all, and then it is looked at again.
pub(crate) async fn update_claim(executor: &Executor, claim: &Claim, status: SandboxClaimStatus) {
    if let Err(error) = write_claim(executor, claim, status).await {
        // The watch brings what came between, and with it the next decision. Should nothing have come between, the
        // claim must not be left as it is.
        executor.requeue_claim_after(claim, Some(&error));
    }
}

/// Writes the status of a claim as it was decided on. For one that is gone there is nothing to write.
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

/// Deletes a claim that has ended, as it was when that was decided.
pub(crate) async fn delete_claim(executor: &Executor, claim: &Claim) {
    let api: Api<StoredClaim> = Api::namespaced(executor.client.clone(), &claim.key.namespace);
    let as_seen = only(&claim.uid, Some(&claim.resource_version));
    match call(api.delete(&claim.key.name, &as_seen)).await {
        Ok(_) => tracing::info!(claim = %claim.key, "claim deleted, ttlSecondsAfterFinished after its end"),
        Err(error) if error.class() == Class::Gone => {}
        Err(error) => {
            if error.class() != Class::Conflict && !error.is_logged() {
                tracing::warn!(claim = %claim.key, error = error.message(), "the claim could not be deleted");
            }
            executor.requeue_claim_after(claim, Some(&error));
        }
    }
}
