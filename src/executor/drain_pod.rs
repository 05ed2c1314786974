//! Draining: an unclaimed sandbox with preDelete hooks is marked before it goes, and may be marked warm again.

use crate::api::labels;
use crate::client::call::{CallError, Class, call};
use crate::executor::Writer;
use crate::executor::pod_patch::{handlers_are_on, label, test};
use crate::executor::retry::confirm;
use crate::model::lifecycle_hook::Hook;
use crate::model::sandbox::{Owner, Sandbox};
use crate::model::stored::StoredPod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::sync::Arc;

/// Marks a warm sandbox as draining, if it is as it was when that was decided: no claim has taken it meanwhile, and one that
/// was not available has not become so.
pub(crate) async fn mark(writer: Writer, sandbox: Arc<Sandbox>, reason: &'static str) {
    let as_seen = test(
        "/metadata/resourceVersion".into(),
        json!(sandbox.resource_version),
    );
    let patch = relabelling(&sandbox, labels::WARM, labels::DRAINING, vec![as_seen]);
    if write(&writer, &sandbox, labels::DRAINING, patch).await {
        let pool = sandbox.pool_key();
        tracing::info!(%pool, pod = %sandbox.key, reason, "sandbox draining");
        writer.metrics.drained(&pool, reason);
    }
}

/// Marks a draining sandbox as warm, if every handler of `hook`, its preDelete hooks, is still on it.
pub(crate) async fn restore(writer: Writer, sandbox: Arc<Sandbox>, hook: Hook, reason: &'static str) {
    let untouched = handlers_are_on(&hook, &sandbox);
    let patch = relabelling(&sandbox, labels::DRAINING, labels::WARM, untouched);
    if write(&writer, &sandbox, labels::WARM, patch).await {
        tracing::info!(pool = %sandbox.pool_key(), pod = %sandbox.key, reason, "sandbox warm again");
    }
}

/// The JSON Patch that changes the state label of an unclaimed pod from one value to another, under
/// `conditions`.
fn relabelling(sandbox: &Sandbox, from: &str, to: &str, conditions: Vec<Value>) -> Value {
    let owner = match &sandbox.owner {
        Owner::Pool { uid } | Owner::Claim { uid, .. } => uid.as_str(),
        Owner::Other => "",
    };
    let mut patch = vec![
        test("/metadata/uid".into(), json!(sandbox.uid)),
        test(label(labels::STATE), json!(from)),
        test("/metadata/deletionTimestamp".into(), Value::Null),
        test(
            format!("/metadata/ownerReferences/{}/uid", sandbox.owner_index),
            json!(owner),
        ),
    ];
    patch.extend(conditions);
    patch.push(json!({"op": "replace", "path": label(labels::STATE), "value": to}));
    Value::Array(patch)
}

/// The pod is the same sandbox, and its state is `to`.
fn is_made(pod: &StoredPod, sandbox: &Sandbox, to: &str) -> bool {
    Sandbox::read(pod).is_some_and(|now| now.uid == sandbox.uid && now.state == to)
}

/// Sends the patch that makes `to` of the state until its outcome is known. Answers whether it was made.
async fn write(writer: &Writer, sandbox: &Arc<Sandbox>, to: &str, patch: Value) -> bool {
    let mut slot = writer.changes.slot();
    let pods: Api<StoredPod> = Api::namespaced(writer.client.clone(), &sandbox.key.namespace);
    let parameters = PatchParams::default();
    let answer = match serde_json::from_value(patch) {
        Ok(patch) => {
            let patch = Patch::Json::<()>(patch);
            let patched = confirm(&mut slot, || {
                writer.shared.lock().expectations.goes_on(sandbox);
                call(pods.patch(&sandbox.key.name, &parameters, &patch))
            })
            .await;
            match patched {
                // An earlier try whose answer was lost may be the one that changed the pod.
                Err(error) if error.class() == Class::Conflict => {
                    match confirm(&mut slot, || call(pods.get(&sandbox.key.name))).await {
                        Ok(now) if is_made(&now, sandbox, to) => Ok(now),
                        Err(unreadable) if unreadable.class() == Class::Gone => Err(unreadable),
                        _ => Err(error),
                    }
                }
                answer => answer,
            }
        }
        Err(error) => Err(CallError::Kube(kube::Error::SerdeError(error))),
    };
    drop(slot);
    match &answer {
        Ok(_) => writer.shared.lock().expectations.answered(sandbox),
        Err(error) if error.class() == Class::Gone => writer.gone(sandbox),
        Err(error) => {
            if let Class::Rejected(message) = error.class() {
                tracing::error!(pod = %sandbox.key, error = message, "the state of the pod could not be changed");
            }
            writer.hold_until_changed(sandbox);
        }
    }
    answer.is_ok()
}
