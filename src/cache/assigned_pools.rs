//! Which pool serves each selector claim, as the planner decided last, and when a claim can change it no more.

use crate::api::ClaimDefaults;
use crate::cache::claim_queues::selector_queue;
use crate::cache::index::Index;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::snapshot::{SelectablePool, SelectorClaim, SelectorSnapshot};
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Index {
    /// The pool assigned to the selector claim with UID `uid`.
    pub fn assigned_pool(&self, uid: &str) -> Option<&Key> {
        self.memory.claim(uid)?.assigned_pool.as_ref()
    }

    /// Whether the assigned pool of a selector claim is gone, is being deleted, has other labels or left the shard.
    pub fn has_lost_its_pool(&self, claim: &Claim) -> bool {
        let would_do = |pool: &Arc<Pool>| !pool.terminating && self.serves_pool(pool) && claim.accepts(pool);
        let assigned = self.assigned_pool(&claim.uid);
        assigned.is_some_and(|key| !self.pools.get(key).is_some_and(would_do))
    }

    /// Assigns the selected pools to the claims. Returns only the pools that gain or lose a claim: if every pool were
    /// planned each time, two pools that each hold a claim of the other would requeue each other forever.
    pub fn assign_pools(&mut self, selected_pools: &BTreeMap<Key, Key>) -> Vec<ReconcileRequest> {
        let mut to_reconcile = BTreeSet::new();
        for (claim, pool) in selected_pools {
            let Some(claim) = self.claims.get(claim).filter(|claim| claim.waiting()) else {
                continue;
            };
            let memory = self.memory.claim_mut(&claim.uid);
            let known = memory.assigned_pool.replace(pool.clone());
            if known.as_ref() != Some(pool) {
                to_reconcile.extend(known);
                to_reconcile.insert(pool.clone());
            }
        }
        to_reconcile.into_iter().map(ReconcileRequest::Pool).collect()
    }

    /// The waiting selector claims of a namespace that this operator serves, and the pools of its shard that they
    /// accept.
    pub fn selector_snapshot(&self, namespace: &str, now: Timestamp) -> SelectorSnapshot {
        let queued = self.queued(&selector_queue(namespace));
        let claims: Vec<_> = queued.filter(|claim| !self.is_served_elsewhere(claim)).collect();
        let accepts = |pool: &Arc<Pool>| claims.iter().any(|claim| claim.accepts(pool));
        let would_do = |pool: &&Arc<Pool>| !pool.terminating && self.serves_pool(pool) && accepts(pool);
        let selectable = |pool: &Arc<Pool>| SelectablePool {
            pool: Arc::clone(pool),
            sandboxes: self.entries_of(&pool.key),
            nodes: self.nodes_of(self.sandboxes_of(&pool.key)),
            claims: self
                .queued(&pool.key)
                .map(|claim| self.waiting(claim, &pool.claim_defaults, now))
                .collect(),
        };
        let pools = if claims.is_empty() {
            Vec::new()
        } else {
            self.pools.values().filter(would_do).map(selectable).collect()
        };
        SelectorSnapshot {
            now,
            pools,
            claims: claims
                .iter()
                .map(|claim| self.selector_claim(claim, now))
                .collect(),
        }
    }

    fn selector_claim(&self, claim: &Arc<Claim>, now: Timestamp) -> SelectorClaim {
        // The defaults of a pool hold only once it is selected.
        let waiting = self.waiting(claim, &ClaimDefaults::default(), now);
        let assigned_pool = self.assigned_pool(&claim.uid).cloned();
        let bound_from = || Some(self.pod(self.expectations.binding_of(&claim.uid)?)?.pool_key());
        let stays = !waiting.may_move() && !self.has_lost_its_pool(claim);
        let assigned = || assigned_pool.clone().filter(|_| stays);
        let fixed_pool = self.pool_held_of(claim).or_else(bound_from).or_else(assigned);
        SelectorClaim {
            waiting,
            fixed_pool,
            assigned_pool,
        }
    }
}
