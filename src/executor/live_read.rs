//! Reads objects live where the watch cannot prove a fact.

use crate::api::claim::BoundSandbox;
use crate::client::call::{CallError, Class, call};
use crate::executor::delete_pod;
use crate::executor::handle::Executor;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::sandbox::{Owner, Sandbox};
use crate::model::stored::{self, StoredClaim, StoredPod};
use kube::Api;
use std::sync::Arc;

/// Reads a pod whose expected write the watch has not shown in time.
pub(crate) async fn confirm(executor: &Executor, key: &Key) {
    let pods: Api<StoredPod> = Api::namespaced(executor.client.clone(), &key.namespace);
    let before = executor.shared.lock().watch_progress();
    let answer = call(pods.get(&key.name)).await;
    let mut index = executor.shared.lock();
    let touched = match answer {
        Ok(pod) => index.confirm(key, Some(&pod), before),
        Err(error) if error.class() == Class::Gone => index.confirm(key, None, before),
        Err(error) => {
            if !error.is_logged() {
                tracing::warn!(pod = %key, error = error.message(), "the watch does not show a write on the pod, and the pod cannot be read");
            }
            return;
        }
    };
    let pod = index.pod(key);
    drop(index);
    tracing::warn!(pod = %key, "the watch did not show a write in time; a live read did");
    executor.trigger(touched);
    // If the pod is unchanged, the write has not happened and may be due again.
    if let Some(pod) = pod {
        executor.requeue(&pod);
    }
}

/// Whether live reads show all `published` sandboxes of a claim lost. When a sandbox still exists or cannot be read, the claim
/// is requeued after a delay: the watch may never show the end of that sandbox.
pub(crate) async fn all_lost(executor: &Executor, claim: &Claim, published: &[BoundSandbox]) -> bool {
    for sandbox in published {
        match is_lost(executor, claim, sandbox).await {
            Ok(true) => {}
            Ok(false) => {
                executor.requeue_claim_after(claim, None);
                return false;
            }
            Err(error) => {
                executor.requeue_claim_after(claim, Some(&error));
                return false;
            }
        }
    }
    true
}

/// Deletes a sandbox that `claim` holds and does not list, if a live read confirms it: another leader may have just published
/// it, or be about to while the claim waits. When the claim cannot be read, it is requeued after a delay.
pub(crate) async fn release(
    executor: Executor,
    claim: Arc<Claim>,
    sandbox: Arc<Sandbox>,
    reason: &'static str,
) {
    let claims: Api<StoredClaim> = Api::namespaced(executor.client.clone(), &claim.key.namespace);
    let answer = call(claims.get(&claim.key.name)).await;
    let unlisted = match &answer {
        Ok(stored) => {
            let now = Claim::read(stored, claim.sequence, claim.arrived);
            now.uid != claim.uid || (!now.lists(&sandbox) && (sandbox.finished() || !now.waiting()))
        }
        Err(error) => error.class() == Class::Gone,
    };
    if unlisted {
        return delete_pod::run(executor, sandbox, reason).await;
    }
    executor.shared.lock().expectations.forget(&sandbox);
    executor.requeue_claim_after(&claim, answer.as_ref().err());
}

/// Whether a live read shows the published sandbox lost; an error when it cannot be read. A pod whose labels a user removed
/// leaves the watch but still belongs to the claim.
async fn is_lost(executor: &Executor, claim: &Claim, published: &BoundSandbox) -> Result<bool, CallError> {
    let pods: Api<StoredPod> = Api::namespaced(executor.client.clone(), &claim.key.namespace);
    let before = executor.shared.lock().watch_progress();
    match call(pods.get(&published.name)).await {
        Ok(pod) => {
            let held = stored::is_owned_by(&pod.metadata, &claim.uid);
            let labelled = Sandbox::read(&pod).is_some_and(|s| matches!(s.owner, Owner::Claim { .. }));
            if held && labelled {
                let touched = executor.shared.lock().learn_pod(&pod, before);
                executor.trigger(touched);
            }
            Ok(!held || stored::uid(&pod.metadata) != published.uid)
        }
        Err(error) if error.class() == Class::Gone => Ok(true),
        Err(error) => Err(error),
    }
}
