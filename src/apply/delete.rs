//! Deleting pods, always under the condition that they are what they were when the deletion was decided.

use super::Writer;
use super::outcome::{CallError, Class, call, settle};
use crate::observe::sandbox::Sandbox;
use crate::observe::stored::StoredPod;
use kube::Api;
use kube::api::{DeleteParams, Preconditions};
use std::sync::Arc;

/// Deletes a sandbox as it was when that was decided. A claim that took it meanwhile has changed its resource
/// version, and then nothing is deleted.
pub(super) async fn run(writer: Writer, sandbox: Arc<Sandbox>, reason: &'static str) {
    let permit = writer.changes.acquire().await;
    let outcome = delete(&writer, &sandbox).await;
    drop(permit);
    match outcome {
        Ok(()) => {
            tracing::info!(pod = %sandbox.key, pool = sandbox.pool, reason, "deleted");
            writer.shared.lock().pending.deleted(&sandbox.uid);
            writer.look_again(&sandbox);
        }
        Err(error) => {
            if let Class::Refused(message) = error.class() {
                tracing::error!(pod = %sandbox.key, message, "the deletion was refused");
            }
            writer.set_aside(&sandbox);
        }
    }
}

/// Sends the deletion until its outcome is known. A pod that is gone is deleted.
async fn delete(writer: &Writer, sandbox: &Sandbox) -> Result<(), CallError> {
    let pods: Api<StoredPod> = Api::namespaced(writer.client.clone(), &sandbox.key.namespace);
    let preconditions = Some(Preconditions {
        uid: Some(sandbox.uid.clone()),
        resource_version: Some(sandbox.resource_version.clone()),
    });
    let parameters = DeleteParams {
        preconditions,
        ..DeleteParams::default()
    };
    match settle(|| call(pods.delete(&sandbox.key.name, &parameters))).await {
        Ok(_) => Ok(()),
        Err(error) if error.class() == Class::Gone => Ok(()),
        Err(error) => Err(error),
    }
}
