//! How many old sandboxes a RollingUpdate takes away now.

use crate::planner::actions::PlanPhase;
use crate::planner::desired_counts::Counts;
use crate::planner::draft::Draft;
use crate::planner::leave_nodes;
use crate::planner::remove::Limit;
use crate::planner::warm_up_backoff;

/// Replaces as many old sandboxes as new ones are missing, in the order of removal, and stops when
///
/// - the new sandboxes that are not yet available, with those being replaced now, reach `maxUnavailable` plus the
///   number of sandboxes above the wanted number. So a revision that never becomes ready cannot consume the pool, not
///   even its broken sandboxes. Replacements that a drain has made beyond the surge do not count, or they would be
///   replaced again.
/// - removing an available one would leave fewer than have to stay
///   ([`crate::model::resolved_pool_spec::ResolvedPoolSpec::min_available_beside`]).
pub(crate) fn roll(draft: &mut Draft, counts: &Counts) {
    let wanted = counts.within_total(counts.desired);
    // Where the wanted sandboxes fill `maxTotal`, no surge could ever go first. One at a time is replaced then, as far
    // as the budget lets it.
    let is_full = counts.within_total(counts.desired + 1) == wanted;
    let max_unavailable = counts.budget.max_unavailable.max(usize::from(is_full));
    let for_drain = leave_nodes::surge(draft).saturating_sub(counts.budget.max_surge);
    let above = counts.present.saturating_sub(wanted);
    let present = counts.present - for_drain.min(above);
    let max_replaced = (max_unavailable + present).saturating_sub(wanted + counts.updated_warming);
    let removed = remove_unproven(draft, counts);
    let count = counts.to_replace.min(max_replaced);
    remove_old(draft, count.saturating_sub(removed), Limit::Budget);
}

/// Makes way for sandboxes of the update revision where `scaleStrategy.maxUnavailable` leaves no place for them: old
/// sandboxes go that are not available and whose revision is not known to work. Nothing is lost with them, whatever the
/// budget is. The update revision is not known to work either, so at most `maxUnavailable + maxSurge` of it are tried
/// at once. Returns how many sandboxes went.
fn remove_unproven(draft: &mut Draft, counts: &Counts) -> usize {
    let update = draft.revisions.update.hash.clone();
    let have_place = counts.creatable_of(counts.desired + counts.surge);
    let max_tried = warm_up_backoff::width(draft, &update).saturating_sub(have_place);
    let max_created = warm_up_backoff::max_creatable(draft, &update);
    let count = counts.to_replace.min(max_tried).min(max_created);
    let previous = draft.revisions.previous.as_ref();
    draft.remove(
        PlanPhase::Recreate,
        "OldRevision",
        count,
        Limit::Budget,
        |unclaimed| {
            let works = previous.is_some_and(|previous| previous.hash == unclaimed.sandbox.revision);
            !unclaimed.updated && !unclaimed.available && !works
        },
    )
}

/// Removes up to `count` sandboxes of old revisions within `limit`.
pub(crate) fn remove_old(draft: &mut Draft, count: usize, limit: Limit) {
    draft.remove(PlanPhase::Recreate, "OldRevision", count, limit, |unclaimed| {
        !unclaimed.updated
    });
}
