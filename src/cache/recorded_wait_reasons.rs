//! Why each claim waits: what the plans of pools said, and bindings that the API server rejected.

use crate::api::conditions::claim as reasons;
use crate::cache::index::Index;
use crate::cache::memory::Rejection;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::snapshot::WaitReason;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::warming_reason::is_no_news;
use jiff::Timestamp;
use std::sync::Arc;

impl Index {
    /// Why the claim with UID `uid` waits.
    pub(crate) fn wait_reason(&self, uid: &str) -> Option<&WaitReason> {
        self.memory.claim(uid)?.wait_reason.as_ref()
    }

    /// The API server rejects the binding of `claim`, or does not make it. The next one is not tried before `until`. Returns
    /// what has to say so: the claim, and the pools that have one more waiting claim to count.
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

    /// The claim of a queue that came first.
    pub(crate) fn oldest_of(&self, queue: &Key) -> Option<&Arc<Claim>> {
        self.queued(queue)
            .min_by_key(|claim| (claim.created, claim.sequence))
    }

    /// The last binding of `claim` was not rejected.
    pub fn end_rejection(&mut self, claim: &Claim) {
        if let Some(memory) = self.claim_memory_mut(claim) {
            memory.rejection = None;
        }
    }

    /// Records why claims wait, as a plan has it. Returns the claims that have something new to say.
    pub fn record_wait_reasons(
        &mut self,
        wait_reasons: Vec<(Arc<Claim>, WaitReason)>,
    ) -> Vec<ReconcileRequest> {
        let mut to_reconcile = Vec::new();
        for (claim, wait_reason) in wait_reasons {
            let known = self.claims.get(&claim.key);
            let still = known.is_some_and(|known| known.uid == claim.uid && known.waiting());
            let said = self.wait_reason(&claim.uid);
            let is_rejected = self.is_rejected(&claim);
            if still && said.is_none_or(|said| says_more(&wait_reason, said, is_rejected)) {
                to_reconcile.push(ReconcileRequest::Claim(claim.key.clone()));
                self.memory.claim_mut(&claim.uid).wait_reason = Some(wait_reason);
            }
        }
        to_reconcile
    }
}

/// Whether `wait_reason` is news to a claim that says `said`. That the queue has moved is none, nor how many sandboxes do not run. A rejected claim with nothing to
/// try for a moment would otherwise alternate between the two reasons.
fn says_more(wait_reason: &WaitReason, said: &WaitReason, is_rejected: bool) -> bool {
    let nothing_there = [reasons::NONE_AVAILABLE, reasons::EXHAUSTED].contains(&wait_reason.reason);
    let says_so = is_rejected && said.reason == reasons::BINDING_REFUSED;
    let differs = wait_reason.reason != said.reason || !is_no_news(&wait_reason.message, &said.message);
    differs && !(says_so && nothing_there)
}
