//! Which draining sandboxes become warm again, because the pool wants them after all.

use crate::model::sandbox::Sandbox;
use crate::planner::actions::{PlanPhase, Step};
use crate::planner::draft::Draft;

/// Makes up to `count` draining sandboxes warm again instead of creating new ones, if every preDelete hook is still on
/// them and they did not drain for their own sake. Returns how many.
pub(crate) fn restore(draft: &mut Draft, count: usize, of: impl Fn(bool) -> bool) -> usize {
    let (snapshot, update) = (draft.snapshot, &draft.revisions.update.hash);
    let spec = &snapshot.pool.spec;
    let wanted = |sandbox: &Sandbox| {
        let overdue = sandbox.up_at(&spec.availability_rule).is_none()
            && sandbox.overdue_at(spec.warm_up) <= snapshot.now;
        let leaving = snapshot.nodes.leaving(sandbox, snapshot.now).is_some();
        let worn = leaving || sandbox.finished() || overdue;
        of(sandbox.revision == *update) && !worn && spec.pre_delete.all_on(sandbox)
    };
    let back: Vec<_> = draft
        .draining
        .iter()
        .filter(|s| wanted(s))
        .take(count)
        .cloned()
        .collect();
    draft.draining.retain(|s| !back.iter().any(|b| b.uid == s.uid));
    let restored = back.len();
    for sandbox in back {
        draft.expect_to_return(&sandbox);
        draft.act(PlanPhase::Scale, "WantedAgain", Step::RestorePod { sandbox });
    }
    restored
}
