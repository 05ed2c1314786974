//! Which claims wait until their status may be written, because many statuses are queued. Only their keys are kept:
//! thousands of claims may begin to wait at once, and a status takes a kilobyte.

use crate::cache::grouped::remove_from;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::request_flow::{self, Flow};
use crate::cache::request_limits::RequestQueue;
use crate::model::Key;
use crate::model::claim::Claim;
use std::collections::{BTreeMap, HashMap};

/// Keys of the claims, by their flow, in the order in which they arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportsOverLimit(HashMap<Flow, BTreeMap<u64, Key>>);

impl ReportsOverLimit {
    /// Whether a report on this claim may be queued now. If not, the claim is reconciled again when it may, oldest
    /// first.
    pub(crate) fn may_report(&mut self, claim: &Claim, requests: &RequestQueue) -> bool {
        let name = request_flow::of_claim(claim);
        let oldest = self.0.get(&name).and_then(BTreeMap::first_key_value);
        let is_first = oldest.is_none_or(|(oldest, _)| claim.sequence <= *oldest);
        let may = is_first && requests.takes_statuses(&name);
        if may {
            self.remove(claim);
        } else {
            let flow = self.0.entry(name).or_default();
            flow.insert(claim.sequence, claim.key.clone());
        }
        may
    }

    /// The next claim whose report may be queued now.
    pub(crate) fn next(&mut self, requests: &RequestQueue) -> Option<ReconcileRequest> {
        let open = self.0.iter().filter(|(name, _)| requests.takes_statuses(name));
        let firsts = open.filter_map(|(name, flow)| Some((*flow.first_key_value()?.0, name)));
        let name = firsts.min()?.1.clone();
        let (_, claim) = remove_from(&mut self.0, &name, BTreeMap::pop_first)?;
        Some(ReconcileRequest::Claim(claim))
    }

    /// The claim is gone and needs no report.
    pub(crate) fn remove(&mut self, claim: &Claim) {
        let name = request_flow::of_claim(claim);
        remove_from(&mut self.0, &name, |flow| flow.remove(&claim.sequence));
    }
}
