//! A claim that has its sandboxes.

use crate::api::SandboxClaimStatus;
use crate::api::claim::BoundSandbox;
use crate::claim_client::held_claim::HeldClaim;
use crate::claim_client::wait::ClaimError;
use std::time::Duration;

/// A claim whose sandboxes were Ready when it was bound. It is released when it is dropped.
#[derive(Debug)]
pub struct Claim {
    held: HeldClaim,
    first: BoundSandbox,
    status: SandboxClaimStatus,
}

impl Claim {
    /// The claim that `held` holds, with the status of a claim that is Ready.
    ///
    /// # Errors
    /// When the status lists no sandbox, which the operator writes only when the claim has ended.
    pub(super) fn new(held: HeldClaim, status: SandboxClaimStatus) -> Result<Self, ClaimError> {
        match status.sandboxes.first().cloned() {
            Some(first) => Ok(Self { held, first, status }),
            None => Err(ClaimError::Deleted {
                claim: held.name.clone(),
            }),
        }
    }

    /// Name of the claim.
    pub fn name(&self) -> &str {
        &self.held.name
    }

    /// The pool that the sandboxes come from.
    pub fn pool(&self) -> &str {
        &self.status.pool
    }

    /// The sandbox; the first one of a claim for several.
    pub fn sandbox(&self) -> &BoundSandbox {
        &self.first
    }

    /// All sandboxes.
    pub fn sandboxes(&self) -> &[BoundSandbox] {
        &self.status.sandboxes
    }

    /// How long the claim waited for its binding.
    pub fn waited(&self) -> Duration {
        let seconds = self.status.wait_seconds.unwrap_or_default();
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// Deletes the claim; Kubernetes deletes its sandboxes. A caller that is dropped does not stop the deletion.
    ///
    /// # Errors
    /// When the API server does not delete the claim. The claim then stays until its lifetime ends.
    pub async fn release(self) -> Result<(), ClaimError> {
        let claim = self.held.name.clone();
        let deleted = self.held.delete().await;
        deleted.map_err(|source| ClaimError::Request { claim, source })
    }

    /// Leaves the claim and its sandboxes in the cluster, and returns the name of the claim. Whoever deletes the claim
    /// releases them.
    pub fn keep(mut self) -> String {
        self.held.disarm();
        self.held.name.clone()
    }
}
