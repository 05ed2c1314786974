//! Which claims wait until their status may be written, because many statuses are queued. Only their keys are kept:
//! thousands of claims may begin to wait at once, and a status takes a kilobyte.

use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::request_limits::RequestQueue;
use crate::model::Key;
use crate::model::claim::Claim;
use std::collections::BTreeMap;

/// Keys of the claims, in the order in which they arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportsOverLimit(BTreeMap<u64, Key>);

impl ReportsOverLimit {
    /// Whether a report on this claim may be queued now. If not, the claim is reconciled again when it may, oldest
    /// first.
    pub(crate) fn may_report(&mut self, claim: &Claim, requests: &RequestQueue) -> bool {
        let oldest = self.0.first_key_value();
        let is_first = oldest.is_none_or(|(oldest, _)| claim.sequence <= *oldest);
        let may = is_first && requests.takes_statuses();
        if may {
            self.0.remove(&claim.sequence);
        } else {
            self.0.insert(claim.sequence, claim.key.clone());
        }
        may
    }

    /// The next claim whose report may be queued now.
    pub(crate) fn next(&mut self, requests: &RequestQueue) -> Option<ReconcileRequest> {
        if !requests.takes_statuses() {
            return None;
        }
        let (_, claim) = self.0.pop_first()?;
        Some(ReconcileRequest::Claim(claim))
    }

    /// The claim is gone and needs no report.
    pub(crate) fn remove(&mut self, claim: &Claim) {
        self.0.remove(&claim.sequence);
    }
}
