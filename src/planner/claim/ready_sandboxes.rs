//! What the status of a claim says of its sandboxes: how many are Ready, their names, and which addresses still answer.

use crate::api::SandboxClaimStatus;
use crate::api::claim::BoundSandbox;
use crate::cache::snapshot::ClaimSnapshot;
use crate::model::claim::Claim;
use crate::model::sandbox::Sandbox;
use std::sync::Arc;

/// Ready and wanted sandboxes, for the column READY.
pub(crate) fn of_wanted<'a>(claim: &Claim, sandboxes: impl Iterator<Item = &'a Arc<Sandbox>>) -> String {
    let ready = sandboxes.filter(|sandbox| sandbox.ready_since.is_some() && !sandbox.terminating);
    format!("{}/{}", ready.count(), claim.wanted())
}

/// The names of several sandboxes, for the column SANDBOXES. The column SANDBOX shows a single one.
pub(crate) fn names(sandboxes: &[BoundSandbox]) -> String {
    match sandboxes {
        [] | [_] => String::new(),
        several => several
            .iter()
            .map(|entry| entry.name.as_str())
            .collect::<Vec<_>>()
            .join(","),
    }
}

/// The status of a claim that has ended, without the addresses of sandboxes that are gone, have ended or are being
/// deleted: another pod may have them already. `released`: the claim deletes all that it has.
pub(crate) fn without_dead(
    snapshot: &ClaimSnapshot,
    mut status: SandboxClaimStatus,
    released: bool,
) -> SandboxClaimStatus {
    let lives = |entry: &BoundSandbox| {
        let mut sandboxes = snapshot.sandboxes.iter();
        sandboxes.any(|sandbox| {
            sandbox.uid == entry.uid.as_str() && !sandbox.terminating && !sandbox.finished() && !released
        })
    };
    for entry in &mut status.sandboxes {
        if !lives(entry) {
            entry.ip.clear();
        }
    }
    status
}
