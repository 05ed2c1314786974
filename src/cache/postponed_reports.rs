//! Which claims wait until their status may be written, because many statuses are queued. Only their keys are kept:
//! thousands of claims may begin to wait at once, and a status takes a kilobyte.

use crate::cache::index::Index;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::model::Key;
use crate::model::claim::Claim;
use std::collections::BTreeMap;

/// Keys of the claims, in the order in which they arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct PostponedReports(BTreeMap<u64, Key>);

impl Index {
    /// Whether a report on this claim may be queued now. If not, the claim is reconciled again when it may, oldest first.
    pub(crate) fn may_report(&mut self, claim: &Claim) -> bool {
        let reports = &mut self.postponed_reports.0;
        let is_first = reports
            .first_key_value()
            .is_none_or(|(oldest, _)| claim.sequence <= *oldest);
        let may = is_first && self.requests.takes_statuses();
        if may {
            reports.remove(&claim.sequence);
        } else {
            reports.insert(claim.sequence, claim.key.clone());
        }
        may
    }

    /// The next claim whose report may be queued now.
    pub(crate) fn next_report(&mut self) -> Option<ReconcileRequest> {
        if !self.requests.takes_statuses() {
            return None;
        }
        let (_, claim) = self.postponed_reports.0.pop_first()?;
        Some(ReconcileRequest::Claim(claim))
    }

    /// The claim is gone and needs no report.
    pub(crate) fn drop_report(&mut self, claim: &Claim) {
        self.postponed_reports.0.remove(&claim.sequence);
    }
}
