//! A waiting claim as plans see it: how many sandboxes it needs now, and whether it may go to another pool.

use crate::model::claim::Claim;
use crate::model::pool::Pool;
use crate::model::resolved_claim_spec::ResolvedClaimSpec;
use jiff::Timestamp;
use smol_str::SmolStr;
use std::sync::Arc;

/// A waiting claim.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The claim as last seen.
    pub claim: Arc<Claim>,
    /// Its spec with the defaults of this pool.
    pub resolved_spec: ResolvedClaimSpec,
    /// No plan has counted the claim among those that arrived.
    pub is_new: bool,
    /// Sandboxes that the claim holds or that are being bound to it.
    pub held: usize,
    /// Of `held`, the sandboxes that are being bound to it.
    pub binding: usize,
    /// A status of the claim is being written: nothing is decided about the claim.
    pub busy: bool,
    /// No binding is tried before this moment, because the last one was rejected.
    pub retry_at: Option<Timestamp>,
    /// The API server rejected its last binding, or failed to make it.
    pub is_rejected: bool,
    /// UIDs of sandboxes that the API server did not bind to the claim, which tries others first.
    pub rejected_sandboxes: Arc<[SmolStr]>,
}

impl Waiting {
    /// Sandboxes still to be bound to the claim.
    pub fn needs(&self) -> usize {
        if self.busy || self.retry_at.is_some() {
            0
        } else {
            self.claim.wanted().saturating_sub(self.held)
        }
    }

    /// Whether another pool may serve the claim: nothing is under way, and nothing failed a moment ago.
    pub fn may_move(&self) -> bool {
        !self.busy && self.retry_at.is_none()
    }

    /// Sandboxes of the claim that are being bound, or that are bound and being published.
    pub fn unpublished(&self) -> usize {
        if self.held >= self.claim.wanted() && self.retry_at.is_none() {
            self.held
        } else {
            self.binding
        }
    }

    /// Whether the claim waits for more than the answer to a binding.
    pub fn waits(&self) -> bool {
        self.is_rejected || self.needs() > 0
    }

    /// The same claim with the defaults of `pool`.
    #[must_use]
    pub fn on(&self, pool: &Pool) -> Self {
        Self {
            resolved_spec: self.claim.resolved_spec(Some(&pool.claim_defaults)),
            ..self.clone()
        }
    }

    /// When the claim fails with reason WaitTimeout.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.claim.deadline(&self.resolved_spec)
    }
}
