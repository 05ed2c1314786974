//! Which of the waiting claims is served first.

use crate::cache::waiting_claim::Waiting;
use std::cmp::Reverse;

/// Order of service: higher priority first, then older first.
pub(crate) fn service_order(waiting: &Waiting) -> impl Ord + use<> {
    let claim = &waiting.claim;
    (
        Reverse(waiting.resolved_spec.priority),
        claim.created,
        claim.sequence,
        claim.key.name.clone(),
    )
}
