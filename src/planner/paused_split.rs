//! How many sandboxes of the update revision a paused rollout keeps.

use crate::api::conditions::{self, progressing};
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

/// How many sandboxes of the update revision the paused rollout keeps. While nothing is missing of the most sandboxes
/// that the pool keeps, `most`, that is what is there. Then the status remembers it: what claims take is made again of
/// the revision that they took. While sandboxes of the update revision fail again and again, none of them is made.
pub(crate) fn updated_to_keep(draft: &Draft, staying: &Staying, most: usize) -> usize {
    let status = &draft.snapshot.pool.status;
    let update = &draft.revisions.update.hash;
    let failures = draft.failures.get(update);
    let fails = failures.is_some_and(|failures| failures.count >= MOST_FAILURES);
    if staying.present >= most || fails || status.update_revision != *update {
        return staying.updated;
    }
    let said = conditions::find(&status.conditions, conditions::PROGRESSING);
    let was_paused = said.is_some_and(|condition| condition.reason == progressing::PAUSED);
    let before = if was_paused {
        status.expected_updated
    } else {
        status.updated
    };
    staying.updated.max(usize::try_from(before).unwrap_or_default())
}
