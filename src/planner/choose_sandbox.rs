//! Which of the available sandboxes a claim gets, by its revision policy.

use crate::api::claim::RevisionPolicy;
use crate::cache::snapshot::Waiting;
use crate::planner::unclaimed_sandbox::UnclaimedSandbox;

/// Positions in the removal order of the sandboxes that claims may take, ascending: claims take from the end.
pub(crate) struct Claimable {
    updated: Vec<usize>,
    old: Vec<usize>,
}

impl Claimable {
    pub(crate) fn of(unclaimed: &[UnclaimedSandbox]) -> Self {
        let (updated, old) = unclaimed
            .iter()
            .enumerate()
            .filter(|(_, u)| u.may_be_claimed())
            .map(|(index, _)| index)
            .partition(|index| unclaimed.get(*index).is_some_and(|u| u.updated));
        Self { updated, old }
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
        let policy = waiting.resolved_spec.revision_policy;
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

    /// Takes the sandbox of the preferred revision that would be removed last, of those that `of` selects.
    fn take_last(&mut self, policy: RevisionPolicy, of: impl Fn(usize) -> bool) -> Option<usize> {
        let last = |indexes: &[usize]| indexes.iter().copied().rfind(|index| of(*index));
        let (updated, old) = (last(&self.updated), last(&self.old));
        let index = match policy {
            RevisionPolicy::Latest => updated,
            RevisionPolicy::PreferLatest => updated.or(old),
            RevisionPolicy::Any => updated.max(old),
        }?;
        for indexes in [&mut self.updated, &mut self.old] {
            if let Ok(at) = indexes.binary_search(&index) {
                indexes.remove(at);
            }
        }
        Some(index)
    }
}
