//! When a pod is deleted that a claim owns and may not keep.

use crate::api::claim::Phase;
use crate::cache::snapshot::{ClaimSnapshot, SandboxRead};
use crate::model::retry::Stage;
use crate::model::sandbox::Sandbox;
use jiff::Timestamp;

/// When a sandbox that its claim may not keep is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// At once.
    Now,
    /// Once a live read of the claim has shown that the claim does not list it.
    AfterRead,
    /// Not before this moment, when the claim is read again.
    At(Timestamp),
    /// The outcome of a request that is under way comes first.
    AfterOutcome,
}

/// When `sandbox` is released. A claim that has not ended may list more sandboxes than the watch has shown, because
/// another leader may have just published one: it is read first. A sandbox that has changed since then may have been
/// chosen as a replacement, so the claim is read again.
pub(crate) fn release(snapshot: &ClaimSnapshot, sandbox: &Sandbox) -> Release {
    let claim = &snapshot.claim;
    if matches!(claim.status.phase, Some(Phase::Failed | Phase::Expired)) {
        return Release::Now;
    }
    if snapshot.write.as_ref().map(|write| write.stage) == Some(Stage::Sent) {
        // The status that is being written may list the sandbox.
        return Release::AfterOutcome;
    }
    match snapshot.reads.get(&sandbox.uid) {
        Some(SandboxRead::Again(at)) if *at > snapshot.now => Release::At(*at),
        Some(SandboxRead::Unlisted {
            claim: read,
            sandbox: seen,
        }) if *read == claim.resource_version && *seen == sandbox.resource_version => Release::Now,
        // That read was sent before the sandbox was known, so it does not decide on it.
        _ if is_being_read(snapshot) => Release::AfterOutcome,
        _ => Release::AfterRead,
    }
}

/// A live read of the claim is under way.
pub(crate) fn is_being_read(snapshot: &ClaimSnapshot) -> bool {
    let for_write = snapshot.write.as_ref().map(|write| write.stage) == Some(Stage::Reading);
    for_write
        || snapshot
            .reads
            .values()
            .any(|read| matches!(read, SandboxRead::ClaimSent(_)))
}
