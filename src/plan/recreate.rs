//! Phase *recreate*: sandboxes of old revisions are deleted within `maxUnavailable`; the phase *scale* makes
//! up for them with the update revision.

use super::Phase;
use super::draft::Draft;

/// Replaces as many old sandboxes as new ones are missing, old ones in the order of removal, and stops when
///
/// - the new ones not yet available, with those being replaced now, reach `maxUnavailable` (so that a
///   revision that never becomes ready cannot eat the pool, not even sandboxes that are broken already), or
/// - taking an available one would leave fewer than `replicas - maxUnavailable`.
pub(super) fn run(draft: &mut Draft) {
    let desired = draft.within_total(draft.desired());
    let wanted = draft.active().clamp(desired, draft.upper().max(desired));
    let old = draft.idle.iter().filter(|i| !i.updated).count();
    let new = draft.active() - old;
    let missing = wanted.saturating_sub(new);
    let max_unavailable = draft.view.pool.targets.max_unavailable;
    let room = (max_unavailable + draft.active()).saturating_sub(desired + draft.updated_unavailable());
    draft.remove(
        Phase::Recreate,
        "OldRevision",
        old.min(missing).min(room),
        |idle| !idle.updated,
    );
}
