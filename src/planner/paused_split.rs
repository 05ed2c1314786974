//! How many sandboxes of the update revision a paused rollout keeps.

use crate::api::conditions::{self, progressing};
use crate::api::pool::PoolStatus;
use crate::planner::draft::Draft;

/// Failures in a row after which no sandbox of the update revision is made any more while the rollout is paused.
const MOST_FAILURES: u32 = 2;

/// Unclaimed sandboxes that stay, beside those that a user wants replaced.
pub(crate) struct Staying {
    /// All of them.
    pub(crate) present: usize,
    /// Of `present`, the sandboxes of the update revision.
    pub(crate) updated: usize,
}

/// How many sandboxes of the update revision the paused rollout keeps.
///
/// While the status does not say yet that the rollout is paused, that is what is there, and what claims have just taken
/// beside it. From then on the status remembers it, however few are there for the moment: what claims take is made again
/// of the revision that they took. While sandboxes of the update revision fail again and again, none of them is made.
pub(crate) fn updated_to_keep(draft: &Draft, staying: &Staying, most: usize) -> usize {
    let status = &draft.snapshot.pool.status;
    let update = &draft.revisions.update.hash;
    let failures = draft.failures.get(update);
    let fails = failures.is_some_and(|failures| failures.count >= MOST_FAILURES);
    if fails || status.update_revision != *update {
        return staying.updated;
    }
    let is_full = staying.present >= most;
    let before = match remembered(status) {
        // An operator that holds no split says that no sandbox stays old.
        Some(remembered) if is_full && remembered >= count_of(status.desired_replicas) => 0,
        Some(remembered) => remembered,
        None if is_full => 0,
        None => count_of(status.updated),
    };
    staying.updated.max(before)
}

/// What the status of a paused rollout remembers.
fn remembered(status: &PoolStatus) -> Option<usize> {
    let progress = conditions::find(&status.conditions, conditions::PROGRESSING)?;
    (progress.reason == progressing::PAUSED).then(|| count_of(status.expected_updated))
}

fn count_of(stored: i32) -> usize {
    usize::try_from(stored).unwrap_or_default()
}
