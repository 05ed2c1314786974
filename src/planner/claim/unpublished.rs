//! Which pods of a claim its status does not name.

use crate::cache::snapshot::ClaimSnapshot;
use crate::model::sandbox::Sandbox;
use std::collections::HashSet;
use std::sync::Arc;

/// Pods of the claim that its status does not name.
pub(crate) fn unpublished(snapshot: &ClaimSnapshot) -> Vec<Arc<Sandbox>> {
    let published: HashSet<&str> = snapshot
        .claim
        .status
        .sandboxes
        .iter()
        .map(|sandbox| sandbox.uid.as_str())
        .collect();
    let unlisted =
        |sandbox: &&Arc<Sandbox>| !sandbox.terminating && !published.contains(sandbox.uid.as_str());
    snapshot.sandboxes.iter().filter(unlisted).cloned().collect()
}
