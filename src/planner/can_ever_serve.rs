//! Whether a pool could ever hold as many sandboxes as a claim wants.

use crate::api::claim::OnEmpty;
use crate::cache::waiting_claim::Waiting;
use crate::model::resolved_pool_spec::ResolvedPoolSpec;

/// Whether a pool with this spec could ever hold as many sandboxes as the claim needs. No other claim waits for a claim
/// that can never be served.
pub fn can_ever_serve(spec: &ResolvedPoolSpec, waiting: &Waiting) -> bool {
    if waiting.claim.wanted() == 1 {
        return true;
    }
    let unclaimed = match waiting.resolved_spec.on_empty {
        OnEmpty::Create => usize::MAX,
        OnEmpty::Wait | OnEmpty::Fail => spec.most_warm(),
    };
    let total = spec.max_total.unwrap_or(usize::MAX);
    waiting.needs() <= unclaimed && waiting.claim.wanted() <= total
}
