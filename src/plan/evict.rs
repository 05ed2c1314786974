//! Phase *evict*: unclaimed sandboxes that cannot or shall not stay.

use super::draft::{Draft, Limit};
use super::{Phase, Step};
use crate::observe::sandbox::PodPhase;

/// Deletes sandboxes that have ended (they would fill the pool for ever) and, within the budget, those whose
/// replacement a user asked for with the label `warmpool.dev/evict`.
pub(super) fn run(draft: &mut Draft) {
    for sandbox in std::mem::take(&mut draft.finished) {
        let reason = if sandbox.phase == PodPhase::Failed {
            "PodFailed"
        } else {
            "PodSucceeded"
        };
        draft.act(Phase::Eviction, reason, Step::DeletePod { sandbox });
    }
    draft.remove(
        Phase::Eviction,
        "EvictRequested",
        usize::MAX,
        Limit::Budget,
        |idle| idle.sandbox.evict,
    );
}
