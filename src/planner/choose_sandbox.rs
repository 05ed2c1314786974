//! Which of the available sandboxes a claim gets, by its revision policy.

use crate::api::claim::RevisionPolicy;
use crate::api::pool::UpdateStrategyType;
use crate::cache::snapshot::Waiting;
use crate::planner::desired_counts::Counts;
use crate::planner::draft::Draft;
use crate::planner::unclaimed_sandbox::UnclaimedSandbox;

/// Positions in the removal order of the sandboxes that claims may take, ascending: claims take from the end.
pub(crate) struct Claimable {
    updated: Vec<usize>,
    old: Vec<usize>,
    /// How many old sandboxes go to claims without a revision policy before any new one does.
    old_first: usize,
}

impl Claimable {
    pub(crate) fn of(draft: &Draft) -> Self {
        let (updated, old) = draft
            .unclaimed
            .iter()
            .enumerate()
            .filter(|(_, u)| u.may_be_claimed())
            .map(|(index, _)| index)
            .partition(|index| draft.unclaimed.get(*index).is_some_and(|u| u.updated));
        // Where only claims replace old sandboxes, a claim that took a new one would have another new one made in its place.
        let old_first = match draft.snapshot.pool.spec.strategy {
            UpdateStrategyType::OnReplenish => Counts::of(draft).surplus_old,
            UpdateStrategyType::RollingUpdate | UpdateStrategyType::Recreate => 0,
        };
        Self {
            updated,
            old,
            old_first,
        }
    }

    /// Whether `count` sandboxes would do.
    pub(crate) fn has(&self, count: usize, policy: RevisionPolicy) -> bool {
        let old = match policy {
            RevisionPolicy::Latest => 0,
            RevisionPolicy::PreferLatest | RevisionPolicy::Any => self.old.len(),
        };
        self.updated.len() + old >= count
    }

    /// Takes as many as the claim needs, or as there are. Sandboxes that were rejected for it come last.
    pub(crate) fn take(&mut self, waiting: &Waiting, unclaimed: &[UnclaimedSandbox]) -> Vec<usize> {
        let spec = &waiting.resolved_spec;
        let policy = spec.has_revision_policy.then_some(spec.revision_policy);
        let rejected = |index: usize| {
            let unclaimed = unclaimed.get(index);
            unclaimed.is_some_and(|u| waiting.rejected_sandboxes.contains(&u.sandbox.uid))
        };
        let next = |_| {
            let other = self.take_last(policy, |index| !rejected(index));
            other.or_else(|| self.take_last(policy, |_| true))
        };
        (0..waiting.needs()).map_while(next).collect()
    }

    /// All of them, in the order in which claims without a revision policy take them.
    pub(crate) fn in_order(mut self) -> Vec<usize> {
        std::iter::from_fn(|| self.take_last(None, |_| true)).collect()
    }

    /// Takes the sandbox of the preferred revision that would be removed last, of those that `of` selects.
    fn take_last(&mut self, policy: Option<RevisionPolicy>, of: impl Fn(usize) -> bool) -> Option<usize> {
        let last = |indexes: &[usize]| indexes.iter().copied().rfind(|index| of(*index));
        let (updated, old) = (last(&self.updated), last(&self.old));
        let index = match policy {
            None if self.old_first > 0 => old.or(updated),
            None | Some(RevisionPolicy::PreferLatest) => updated.or(old),
            Some(RevisionPolicy::Latest) => updated,
            Some(RevisionPolicy::Any) => updated.max(old),
        }?;
        if let Ok(at) = self.updated.binary_search(&index) {
            self.updated.remove(at);
        }
        if let Ok(at) = self.old.binary_search(&index) {
            self.old.remove(at);
            self.old_first = self.old_first.saturating_sub(1);
        }
        Some(index)
    }
}
