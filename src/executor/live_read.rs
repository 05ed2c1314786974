//! Live reads, where the watch alone cannot tell what is true.

use crate::api::claim::BoundSandbox;
use crate::client::call::{CallError, Class, call};
use crate::executor::delete_pod;
use crate::executor::handle::Executor;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::sandbox::{Owner, Sandbox};
use crate::model::stored;
use crate::model::stored::{StoredClaim, StoredPod};
use kube::Api;
use std::sync::Arc;

/// Reads a pod on which an own write was not seen in time.
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
                tracing::warn!(pod = %key, error = error.message(), "an own write is unseen, and the pod cannot be read");
            }
            return;
        }
    };
    let pod = index.pod(key);
    drop(index);
    tracing::warn!(pod = %key, "an own write was not seen in time and was settled by a live read");
    executor.trigger(touched);
    // Also where the pod is as it was: the write has not happened, and may be due again.
    if let Some(pod) = pod {
        executor.requeue(&pod);
    }
}

/// Whether all the `published` sandboxes of a claim are gone indeed. When one is not, or nobody can tell now, the claim is
/// looked at again later: no watch may tell of that one's end.
pub(crate) async fn all_lost(executor: &Executor, claim: &Claim, published: &[BoundSandbox]) -> bool {
    for one in published {
        match is_lost(executor, claim, one).await {
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

/// Deletes a sandbox that `claim` holds and does not list, if that is so indeed: another leader may have published it a
/// moment ago, or be about to while the claim waits. When nobody can tell now, the claim is looked at again later.
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

/// Whether the published sandbox is gone indeed; an error when nobody can tell now. A pod whose labels were
/// taken off by hand leaves the watch and is still its tenant's.
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
