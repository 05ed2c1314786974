//! Which of the available sandboxes a claim gets, by its revision policy.

use crate::api::claim::RevisionPolicy;
use crate::api::pool::UpdateStrategyType;
use crate::cache::waiting_claim::Waiting;
use crate::planner::desired_counts::Counts;
use crate::planner::draft::Draft;
use crate::planner::sandbox_order;
use crate::planner::unclaimed_sandbox::UnclaimedSandbox;

/// The sandboxes that claims may take.
pub(crate) struct Claimable {
    staying: Positions,
    /// Sandboxes that leave their nodes, which claims take only when no other fits.
    leaving: Positions,
    /// How many old sandboxes go to claims without a revision policy before any new one does.
    old_first: usize,
}

/// A sandbox: its rank in the order of claiming, and its position in the order of removal.
type Position = (usize, usize);

/// Sandboxes by revision, in ascending order of rank: claims take from the end.
#[derive(Default)]
struct Positions {
    updated: Vec<Position>,
    old: Vec<Position>,
}

impl Claimable {
    pub(crate) fn of(draft: &Draft) -> Self {
        let (mut staying, mut leaving) = (Positions::default(), Positions::default());
        let ranks = sandbox_order::ranks(&draft.unclaimed, draft.snapshot.nodes.access.is_open());
        let mut ranked: Vec<_> = ranks.into_iter().zip(0..).zip(&draft.unclaimed).collect();
        ranked.sort_unstable_by_key(|(position, _)| *position);
        for (position, unclaimed) in ranked {
            if unclaimed.may_be_claimed() {
                let positions = if unclaimed.leaves_node() {
                    &mut leaving
                } else {
                    &mut staying
                };
                positions.add(position, unclaimed.updated);
            }
        }
        // Where only claims replace old sandboxes, a claim that took a new one would have another new one made in its
        // place.
        let old_first = match draft.snapshot.pool.spec.strategy {
            UpdateStrategyType::OnReplenish => Counts::of(draft).surplus_old,
            UpdateStrategyType::RollingUpdate | UpdateStrategyType::Recreate => 0,
        };
        Self {
            staying,
            leaving,
            old_first,
        }
    }

    /// Whether the claim can take `count` sandboxes.
    pub(crate) fn has(&self, count: usize, policy: RevisionPolicy) -> bool {
        self.staying.len(policy) + self.leaving.len(policy) >= count
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

    /// Takes the sandbox of the preferred revision with the highest rank, of those that `of` selects. One that leaves
    /// its node is taken only when no other fits.
    fn take_last(&mut self, policy: Option<RevisionPolicy>, of: impl Fn(usize) -> bool) -> Option<usize> {
        let old_first = self.old_first > 0;
        let staying = self.staying.last(policy, old_first, &of);
        let position = staying.or_else(|| self.leaving.last(policy, old_first, &of))?;
        let is_old = self.staying.remove(position) || self.leaving.remove(position);
        self.old_first = self.old_first.saturating_sub(usize::from(is_old));
        Some(position.1)
    }
}

impl Positions {
    fn add(&mut self, position: Position, updated: bool) {
        let list = if updated { &mut self.updated } else { &mut self.old };
        list.push(position);
    }

    /// How many a claim with this policy may take.
    fn len(&self, policy: RevisionPolicy) -> usize {
        match policy {
            RevisionPolicy::Latest => self.updated.len(),
            RevisionPolicy::PreferLatest | RevisionPolicy::Any => self.updated.len() + self.old.len(),
        }
    }

    fn last(
        &self,
        policy: Option<RevisionPolicy>,
        old_first: bool,
        of: impl Fn(usize) -> bool,
    ) -> Option<Position> {
        let last = |positions: &[Position]| positions.iter().copied().rfind(|(_, index)| of(*index));
        let (updated, old) = (last(&self.updated), last(&self.old));
        match policy {
            None if old_first => old.or(updated),
            None | Some(RevisionPolicy::PreferLatest) => updated.or(old),
            Some(RevisionPolicy::Latest) => updated,
            Some(RevisionPolicy::Any) => updated.max(old),
        }
    }

    /// Returns whether it was an old sandbox.
    fn remove(&mut self, position: Position) -> bool {
        if let Ok(at) = self.updated.binary_search(&position) {
            self.updated.remove(at);
        }
        let old = self.old.binary_search(&position);
        if let Ok(at) = old {
            self.old.remove(at);
        }
        old.is_ok()
    }
}
