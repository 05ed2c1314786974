//! Marks unclaimed sandboxes with preDelete hooks as draining, or as warm again.

use crate::api::labels;
use crate::client::call::{CallError, Class, call};
use crate::executor::handle::Executor;
use crate::executor::pod_patch::{PodPatchError, draining_patch, restoring_patch};
use crate::executor::retry::confirm;
use crate::model::lifecycle_hook::Hook;
use crate::model::sandbox::Sandbox;
use crate::model::stored::StoredPod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use std::sync::Arc;

/// Marks a warm sandbox as draining, unless the pod has changed since that was decided.
pub(crate) async fn mark(executor: Executor, sandbox: Arc<Sandbox>, reason: &'static str) {
    let patch = draining_patch(&sandbox);
    if write(&executor, &sandbox, labels::DRAINING, patch).await {
        let pool = sandbox.pool_key();
        tracing::info!(%pool, pod = %sandbox.key, reason, "sandbox draining");
        executor.metrics.drained(&pool, reason);
    }
}

/// Marks a draining sandbox as warm, if every handler of `hook`, its preDelete hooks, is still on it.
pub(crate) async fn restore(executor: Executor, sandbox: Arc<Sandbox>, hook: Hook, reason: &'static str) {
    let patch = restoring_patch(&sandbox, &hook);
    if write(&executor, &sandbox, labels::WARM, patch).await {
        tracing::info!(pool = %sandbox.pool_key(), pod = %sandbox.key, reason, "sandbox warm again");
    }
}

/// Whether the pod is the same sandbox and its state is `to`.
fn has_state(pod: &StoredPod, sandbox: &Sandbox, to: &str) -> bool {
    Sandbox::read(pod).is_some_and(|now| now.uid == sandbox.uid && now.state == to)
}

/// Sends the patch that sets the state to `to` until its outcome is known. Returns whether the pod has that state.
async fn write(
    executor: &Executor,
    sandbox: &Arc<Sandbox>,
    to: &str,
    patch: Result<json_patch::Patch, PodPatchError>,
) -> bool {
    let patch = match patch {
        Ok(patch) => Patch::Json::<()>(patch),
        Err(error) => {
            tracing::debug!(%error, "the state of the pod cannot be changed");
            executor.hold_until_changed(sandbox);
            return false;
        }
    };
    let answer = send(executor, sandbox, to, &patch).await;
    match &answer {
        Ok(_) => executor.shared.lock().expectations.answered(sandbox),
        Err(error) if error.class() == Class::Gone => executor.gone(sandbox),
        Err(error) => {
            if let Class::Rejected(message) = error.class() {
                tracing::error!(pod = %sandbox.key, error = message, "the API server rejects the change of the pod's state");
            }
            executor.hold_until_changed(sandbox);
        }
    }
    answer.is_ok()
}

async fn send(
    executor: &Executor,
    sandbox: &Sandbox,
    to: &str,
    patch: &Patch<()>,
) -> Result<StoredPod, CallError> {
    let mut slot = executor.changes.slot();
    let pods: Api<StoredPod> = Api::namespaced(executor.client.clone(), &sandbox.key.namespace);
    let parameters = PatchParams::default();
    let patched = confirm(&mut slot, || {
        executor.shared.lock().expectations.goes_on(sandbox);
        call(pods.patch(&sandbox.key.name, &parameters, patch))
    })
    .await;
    match patched {
        // An earlier try whose answer was lost may have changed the pod.
        Err(error) if error.class() == Class::Conflict => {
            match confirm(&mut slot, || call(pods.get(&sandbox.key.name))).await {
                Ok(now) if has_state(&now, sandbox, to) => Ok(now),
                Err(unreadable) if unreadable.class() == Class::Gone => Err(unreadable),
                _ => Err(error),
            }
        }
        answer => answer,
    }
}
