//! How unclaimed sandboxes are removed: in which order, how many, and within which budget.

use crate::model::sandbox::Sandbox;
use crate::planner::actions::PlanPhase;
use crate::planner::delete_or_drain;
use crate::planner::draft::Draft;
use crate::planner::unclaimed_sandbox::UnclaimedSandbox;
use std::sync::Arc;

/// What bounds the removal of available sandboxes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// `replicas - maxUnavailable` stay available.
    Budget,
    /// As [`Limit::Budget`], and at least so many stay available.
    AtLeast(usize),
    /// The user requested all at once, or `maxTotal` leaves no choice.
    None,
    /// Nothing holds it back, and it leaves less of the budget to the others.
    Forced,
}

impl Draft<'_> {
    /// Has an unclaimed sandbox removed.
    pub(crate) fn discard(&mut self, phase: PlanPhase, reason: &'static str, sandbox: Arc<Sandbox>) {
        let step = delete_or_drain::removal(&self.snapshot.pool.spec.pre_delete, sandbox);
        self.act(phase, reason, step);
    }

    /// Discards up to `count` of the unclaimed sandboxes that `of` selects, in order of removal. A sandbox that is not
    /// available goes freely, an available one within `limit`. Returns how many went.
    pub(crate) fn remove(
        &mut self,
        phase: PlanPhase,
        reason: &'static str,
        count: usize,
        limit: Limit,
        of: impl Fn(&UnclaimedSandbox) -> bool,
    ) -> usize {
        self.remove_for(phase, count, limit, |unclaimed| of(unclaimed).then_some(reason))
    }

    /// As [`Draft::remove`] for the sandboxes that `reason_of` gives a reason for.
    pub(crate) fn remove_for(
        &mut self,
        phase: PlanPhase,
        count: usize,
        limit: Limit,
        reason_of: impl Fn(&UnclaimedSandbox) -> Option<&'static str>,
    ) -> usize {
        if count == 0
            || !self
                .unclaimed
                .iter()
                .any(|unclaimed| reason_of(unclaimed).is_some())
        {
            return 0;
        }
        self.order();
        let mut removed = 0;
        let mut kept = Vec::with_capacity(self.unclaimed.len());
        for unclaimed in std::mem::take(&mut self.unclaimed) {
            let may_go = removed < count && !unclaimed.conflicted;
            let reason = reason_of(&unclaimed).filter(|_| may_go);
            match reason {
                Some(reason) if !unclaimed.available || self.allows(limit) => {
                    removed += 1;
                    self.expect_to_leave(unclaimed.sandbox);
                    self.discard(phase, reason, Arc::clone(unclaimed.sandbox));
                }
                _ => kept.push(unclaimed),
            }
        }
        self.unclaimed = kept;
        removed
    }

    /// Whether an available sandbox may go within `limit`.
    fn allows(&mut self, limit: Limit) -> bool {
        match limit {
            Limit::Budget => self.budget.take(),
            Limit::AtLeast(least) => self.budget.take_above(least),
            Limit::None => true,
            Limit::Forced => {
                self.budget.claim();
                true
            }
        }
    }
}
