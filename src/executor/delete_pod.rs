//! Deletes pods that have not changed since the deletion was decided.

use crate::client::call::{CallError, Class, call};
use crate::client::object_requests::only;
use crate::executor::handle::Executor;
use crate::executor::retry::confirm;
use crate::model::sandbox::Sandbox;
use crate::model::stored::StoredPod;
use kube::Api;
use std::sync::Arc;

/// Deletes the version of a sandbox that the decision was made on. A claim that has bound it since has changed its resource
/// version, and nothing is deleted.
pub(crate) async fn run(executor: Executor, sandbox: Arc<Sandbox>, reason: &'static str) {
    match delete(&executor, &sandbox).await {
        Ok(()) => {
            let pool = sandbox.pool_key();
            tracing::info!(%pool, pod = %sandbox.key, reason, "sandbox deleted");
            executor.metrics.deleted(&pool, reason);
            executor.gone(&sandbox);
        }
        Err(error) => {
            if let Class::Rejected(message) = error.class() {
                tracing::error!(pod = %sandbox.key, error = message, "the API server rejects the deletion");
            }
            executor.hold_until_changed(&sandbox);
        }
    }
}

/// Sends the deletion until its outcome is known. A pod that is gone counts as deleted.
async fn delete(executor: &Executor, sandbox: &Sandbox) -> Result<(), CallError> {
    let pods: Api<StoredPod> = Api::namespaced(executor.client.clone(), &sandbox.key.namespace);
    let parameters = only(&sandbox.uid, Some(&sandbox.resource_version));
    let mut slot = executor.changes.slot();
    let request = || {
        executor.shared.lock().expectations.goes_on(sandbox);
        call(pods.delete(&sandbox.key.name, &parameters))
    };
    let error = match confirm(&mut slot, request).await {
        Ok(_) => return Ok(()),
        Err(error) => error,
    };
    match error.class() {
        Class::Gone => Ok(()),
        // An earlier try whose answer was lost may have changed the pod.
        Class::Conflict => match confirm(&mut slot, || call(pods.get(&sandbox.key.name))).await {
            Ok(now) if stays(&now, sandbox) => Err(error),
            Ok(_) => Ok(()),
            Err(unreadable) if unreadable.class() == Class::Gone => Ok(()),
            Err(_) => Err(error),
        },
        _ => Err(error),
    }
}

/// Whether the pod is the same sandbox and is not terminating.
fn stays(pod: &StoredPod, sandbox: &Sandbox) -> bool {
    Sandbox::read(pod).is_some_and(|now| now.uid == sandbox.uid && !now.terminating)
}
