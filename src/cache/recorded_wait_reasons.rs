//! Why each claim waits, as the last plan of its pool said, and when that has changed.

use crate::api::conditions::claim as reasons;
use crate::cache::index::Index;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::snapshot::WaitReason;
use crate::model::claim::Claim;
use crate::model::warming_reason::is_no_news;
use std::sync::Arc;

impl Index {
    /// Why the claim with UID `uid` waits.
    pub(crate) fn wait_reason(&self, uid: &str) -> Option<&WaitReason> {
        self.memory.claim(uid)?.wait_reason.as_ref()
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

/// Whether `wait_reason` says something that `said` does not. A moved queue or a changed count is not news. A rejected
/// claim that has no other sandbox to try keeps the reason BindingRefused, or its status would alternate between two
/// reasons.
fn says_more(wait_reason: &WaitReason, said: &WaitReason, is_rejected: bool) -> bool {
    let nothing_there = [reasons::NONE_AVAILABLE, reasons::EXHAUSTED].contains(&wait_reason.reason);
    let says_so = is_rejected && said.reason == reasons::BINDING_REFUSED;
    let differs = wait_reason.reason != said.reason || !is_no_news(&wait_reason.message, &said.message);
    differs && !(says_so && nothing_there)
}
