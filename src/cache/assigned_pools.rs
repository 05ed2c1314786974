//! Which pool serves each selector claim, as the planner decided last.

use crate::cache::index::Index;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Index {
    /// The pool assigned to the selector claim with UID `uid`.
    pub fn assigned_pool(&self, uid: &str) -> Option<&Key> {
        self.memory.claim(uid)?.assigned_pool.as_ref()
    }

    /// Whether the assigned pool of a selector claim is gone, is being deleted or has other labels.
    pub fn has_lost_its_pool(&self, claim: &Claim) -> bool {
        let would_do = |pool: &Arc<Pool>| !pool.terminating && claim.accepts(pool);
        let assigned = self.assigned_pool(&claim.uid);
        assigned.is_some_and(|key| !self.pools.get(key).is_some_and(would_do))
    }

    /// Assigns the selected pools to the claims. Returns the pools that now serve another claim than before, and those
    /// that served it. If every pool were planned each time, two pools that each hold a claim of the other would have each
    /// other planned for ever.
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
}
