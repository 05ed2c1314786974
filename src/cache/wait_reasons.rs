//! Why each claim waits: what the plans of pools said, and bindings that the API server rejected.

use crate::api::conditions::claim as reasons;
use crate::cache::index::Index;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::snapshot::{PoolSnapshot, WaitReason};
use crate::model::Key;
use crate::model::claim::Claim;
use std::collections::HashMap;

impl Index {
    /// Why the claim with UID `uid` waits.
    pub(crate) fn wait_reason(&self, uid: &str) -> Option<&WaitReason> {
        self.memory.claim(uid)?.wait_reason.as_ref()
    }

    /// The API server rejects the binding of `claim`, which therefore waits. Returns the pools that have one more waiting
    /// claim to count.
    #[must_use]
    pub fn note_rejection(&mut self, claim: &Claim, message: &str) -> Vec<ReconcileRequest> {
        if !self.exists(claim) {
            return Vec::new();
        }
        let wait_reason = WaitReason {
            uid: claim.uid.clone(),
            reason: reasons::BINDING_REFUSED,
            message: message.to_string(),
        };
        let memory = self.memory.claim_mut(&claim.uid);
        memory.wait_reason = Some(wait_reason);
        if std::mem::replace(&mut memory.is_rejected, true) {
            Vec::new()
        } else {
            self.pools_for(claim)
        }
    }

    /// The last binding of `claim` was not rejected.
    pub fn end_rejection(&mut self, claim: &Claim) {
        if self.exists(claim) {
            self.memory.claim_mut(&claim.uid).is_rejected = false;
        }
    }

    /// Records why the claims of a snapshot wait. Returns the claims whose reason is new.
    pub fn record_wait_reasons(
        &mut self,
        snapshot: &PoolSnapshot,
        wait_reasons: Vec<WaitReason>,
    ) -> Vec<ReconcileRequest> {
        if wait_reasons.is_empty() {
            return Vec::new();
        }
        let mut to_reconcile = Vec::new();
        let keys: HashMap<&str, &Key> = snapshot
            .claims
            .iter()
            .map(|w| (w.claim.uid.as_str(), &w.claim.key))
            .collect();
        for wait_reason in wait_reasons {
            let Some(key) = keys.get(wait_reason.uid.as_str()) else {
                continue;
            };
            let claim = self.claims.get(*key);
            let still = claim.is_some_and(|c| c.uid == wait_reason.uid && c.waiting());
            let said = self.wait_reason(&wait_reason.uid);
            let refused = claim.is_some_and(|claim| self.is_rejected(claim));
            if still && said.is_none_or(|said| says_more(&wait_reason, said, refused)) {
                to_reconcile.push(ReconcileRequest::Claim((*key).clone()));
                let uid = wait_reason.uid.clone();
                self.memory.claim_mut(&uid).wait_reason = Some(wait_reason);
            }
        }
        to_reconcile
    }
}

/// Whether `wait_reason` is news to a claim that says `said`. A `refused` claim with nothing to try for a moment would
/// otherwise alternate between the two reasons.
fn says_more(wait_reason: &WaitReason, said: &WaitReason, refused: bool) -> bool {
    let nothing_there = [reasons::NONE_AVAILABLE, reasons::EXHAUSTED].contains(&wait_reason.reason);
    let says_so = refused && said.reason == reasons::BINDING_REFUSED;
    wait_reason.reason != said.reason && !(says_so && nothing_there)
}
