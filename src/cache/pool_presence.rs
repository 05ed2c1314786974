//! Which pool serves a claim, and whether such a pool exists.

use crate::cache::claim_queues::selector_queue;
use crate::cache::index::Index;
use crate::cache::snapshot::PoolPresence;
use crate::model::Key;
use crate::model::claim::Claim;

impl Index {
    /// The pool whose sandboxes a claim holds, or else the pool in its status, the pool that it names or its assigned
    /// pool; the shared queue of the namespace while a selector claim has none.
    pub(super) fn queue_or_pool_of(&self, claim: &Claim) -> Key {
        let assigned = || self.assigned_pool(&claim.uid).cloned();
        self.pool_held_of(claim).unwrap_or_else(|| match claim.pool() {
            "" => assigned().unwrap_or_else(|| selector_queue(&claim.key.namespace)),
            pool => Key::new(claim.key.namespace.clone(), pool),
        })
    }

    /// Whether a pool exists that serves the claim: the pool that it names, even if it holds a sandbox of another, because
    /// its user may have edited `poolRef` meanwhile; or the pool whose sandboxes it holds; or one that it selects.
    pub(super) fn pool_presence_of(&self, claim: &Claim) -> PoolPresence {
        let all_from = claim.named_pool().or_else(|| self.pool_held_of(claim));
        if self.is_served_elsewhere(claim) {
            return PoolPresence::Elsewhere;
        }
        let pools: Vec<_> = match all_from {
            Some(pool) => self.pools.get(&pool).into_iter().collect(),
            None => self.accepted_by(claim).collect(),
        };
        if pools.iter().any(|pool| !pool.terminating) {
            PoolPresence::Present
        } else if pools.is_empty() {
            PoolPresence::Absent
        } else {
            PoolPresence::Terminating
        }
    }
}
