//! Which pools and claims this operator serves, where several operators share a cluster by `--pool-selector`.
//!
//! The labels of one pool decide on a claim. All operators know the same objects, so they agree on who serves a claim
//! as soon as their watches have shown the same.

use crate::cache::index::Index;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use std::sync::Arc;

impl Index {
    /// Whether the pool is in the shard of this operator.
    pub fn serves_pool(&self, pool: &Pool) -> bool {
        self.shard.selects(&pool.labels)
    }

    /// Whether the pool that decides on the claim is outside the shard of this operator. Every operator serves a claim
    /// without such a pool: the shard of a deleted pool is unknown, and all operators write the same status.
    pub fn is_served_elsewhere(&self, claim: &Claim) -> bool {
        let all = self.shard.selects_all();
        !all && self
            .deciding_pool(claim)
            .is_some_and(|pool| !self.serves_pool(pool))
    }

    /// The pool whose shard a claim belongs to: the pool in the status once the claim was bound or has ended; before,
    /// the pool that it names or whose sandboxes it holds, or else the first by name that it accepts.
    fn deciding_pool(&self, claim: &Claim) -> Option<&Arc<Pool>> {
        let published = Some(&claim.status.pool).filter(|pool| !claim.waiting() && !pool.is_empty());
        let published = published.map(|pool| Key::new(claim.key.namespace.clone(), pool));
        let known = published
            .or_else(|| claim.named_pool())
            .or_else(|| self.pool_held_of(claim));
        if let Some(known) = known {
            return self.pools.get(&known);
        }
        let present = self.accepted_by(claim).filter(|pool| !pool.terminating);
        present.min_by_key(|pool| &pool.key)
    }

    /// The claims to reconcile when a pool enters or leaves the shard of this operator, or when a pool of another shard
    /// is deleted: a claim that is bound has its timers only in the operator that planned it.
    pub(crate) fn claims_changing_operator(
        &self,
        before: Option<&Arc<Pool>>,
        after: Option<&Arc<Pool>>,
    ) -> Vec<ReconcileRequest> {
        let was_served = before.is_none_or(|pool| self.serves_pool(pool));
        let is_served = after.is_none_or(|pool| self.serves_pool(pool));
        let Some(pool) = before.filter(|_| was_served != is_served) else {
            return Vec::new();
        };
        let here = self
            .claims
            .keys()
            .filter(|claim| claim.namespace == pool.key.namespace);
        here.cloned().map(ReconcileRequest::Claim).collect()
    }

    /// Logs the error of a pool of this operator's shard, if it has one.
    pub(crate) fn log_error_of(&self, pool: &Pool) {
        if self.serves_pool(pool) {
            pool.log_error();
        }
    }
}
