//! Bindings that the API server rejects or does not make: what is remembered of them, and for how long a claim waits.

use crate::api::conditions::claim as reasons;
use crate::cache::index::Index;
use crate::cache::memory::Rejection;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::snapshot::WaitReason;
use crate::model::claim::Claim;
use crate::model::sandbox::Sandbox;
use jiff::Timestamp;
use smol_str::SmolStr;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Index {
    /// The API server rejects the binding of `claim`, or does not make it. The next one is not tried before `until`.
    /// Returns what has to say so: the claim, and the pools that have one more waiting claim to count.
    #[must_use]
    pub fn note_rejection(
        &mut self,
        claim: &Claim,
        message: &str,
        until: Timestamp,
    ) -> Vec<ReconcileRequest> {
        let known = self.claims.get(&claim.key);
        if !known.is_some_and(|known| known.uid == claim.uid && known.waiting()) {
            return Vec::new();
        }
        let wait_reason = WaitReason {
            reason: reasons::BINDING_REFUSED,
            message: message.into(),
            position: None,
        };
        let memory = self.memory.claim_mut(&claim.uid);
        memory.wait_reason = Some(wait_reason);
        memory.rejection = Some(Rejection { until });
        let mut to_reconcile = self.pools_for(claim);
        to_reconcile.push(ReconcileRequest::Claim(claim.key.clone()));
        to_reconcile
    }

    /// The last binding of `claim` was not rejected.
    pub fn end_rejection(&mut self, claim: &Claim) {
        if let Some(memory) = self.claim_memory_mut(claim) {
            memory.rejection = None;
        }
    }

    /// The API server rejected the last binding of the claim, or failed to make it.
    pub(crate) fn is_rejected(&self, claim: &Claim) -> bool {
        self.memory
            .claim(&claim.uid)
            .is_some_and(|memory| memory.rejection.is_some())
    }

    /// UIDs of the sandboxes that the API server did not bind to the claim.
    pub(crate) fn rejected_sandboxes(&self, claim: &Claim) -> Arc<[SmolStr]> {
        let memory = self.memory.claim(&claim.uid);
        memory
            .map(|memory| Arc::clone(&memory.rejected_sandboxes))
            .unwrap_or_default()
    }

    /// The API server did not bind `sandbox` to `claim`. Once every sandbox that exists has been tried, the claim tries
    /// them again.
    pub fn note_rejected_sandbox(&mut self, claim: &Claim, sandbox: &Sandbox) {
        if !self.exists(claim) {
            return;
        }
        let known = self.rejected_sandboxes(claim);
        let again = known.contains(&sandbox.uid);
        let pools = self.accepted_by(claim);
        let sandboxes = pools.flat_map(|pool| self.sandboxes_of(&pool.key));
        // A sandbox that is gone is not remembered.
        let present = sandboxes.filter(|s| !again && known.contains(&s.uid));
        let mut rejected: BTreeSet<_> = present.map(|s| s.uid.clone()).collect();
        rejected.insert(sandbox.uid.clone());
        self.memory.claim_mut(&claim.uid).rejected_sandboxes = rejected.into_iter().collect();
    }
}
