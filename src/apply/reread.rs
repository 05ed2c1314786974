//! Live reads of pods, where the watch alone cannot tell what is true.

use super::Writer;
use super::outcome::{Class, call};
use crate::api::claim::BoundSandbox;
use crate::observe::Key;
use crate::observe::claim::Claim;
use crate::observe::sandbox::{Owner, Sandbox};
use crate::observe::stored::{self, StoredPod};
use kube::Api;

/// Reads a pod on which an own write was not seen in time.
pub(super) async fn settle(writer: &Writer, key: &Key) {
    let pods: Api<StoredPod> = Api::namespaced(writer.client.clone(), &key.namespace);
    let answer = call(pods.get(&key.name)).await;
    let mut index = writer.shared.lock();
    let touched = match answer {
        Ok(pod) => index.settle(key, Some(&pod)),
        Err(error) if error.class() == Class::Gone => index.settle(key, None),
        Err(error) => {
            if !error.is_told() {
                tracing::warn!(pod = %key, error = error.message(), "an own write is unseen, and the pod cannot be read");
            }
            return;
        }
    };
    drop(index);
    tracing::warn!(pod = %key, "an own write was not seen in time and was settled by a live read");
    writer.trigger(touched);
}

/// Whether all the `published` sandboxes of a claim are gone indeed. When nobody can tell now, the claim is looked at
/// again later.
pub(super) async fn all_lost(writer: &Writer, claim: &Claim, published: &[BoundSandbox]) -> bool {
    for one in published {
        match is_lost(writer, claim, one).await {
            Some(true) => {}
            Some(false) => return false,
            None => {
                writer.revisit(claim);
                return false;
            }
        }
    }
    true
}

/// Whether the published sandbox is gone indeed; `None` when nobody can tell now. A pod whose labels were
/// taken off by hand leaves the watch and is still its tenant's.
async fn is_lost(writer: &Writer, claim: &Claim, published: &BoundSandbox) -> Option<bool> {
    let pods: Api<StoredPod> = Api::namespaced(writer.client.clone(), &claim.key.namespace);
    match call(pods.get(&published.name)).await {
        Ok(pod) => {
            let held = pod
                .metadata
                .owner_references
                .iter()
                .flatten()
                .any(|o| o.uid == claim.uid);
            let labelled = Sandbox::read(&pod).is_some_and(|s| matches!(s.owner, Owner::Claim { .. }));
            if held && labelled {
                writer.shared.lock().apply_pod(&pod);
            }
            Some(!held || stored::uid(&pod.metadata) != published.uid)
        }
        Err(error) => (error.class() == Class::Gone).then_some(true),
    }
}
