//! Applies an event of a pool to the cache, and returns what to reconcile.

use crate::cache::index::{Index, absent};
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::stale_answers::is_known;
use crate::model::Key;
use crate::model::pool::Pool;
use crate::model::stored::{self, StoredPool};
use std::collections::HashSet;
use std::sync::Arc;

impl Index {
    /// A pool was created or changed.
    pub fn apply_pool(&mut self, stored: &StoredPool) -> Vec<ReconcileRequest> {
        let key = stored::key(&stored.metadata);
        let uid = stored::uid(&stored.metadata);
        if self.pools.get(&key).is_some_and(|known| known.uid != uid) {
            self.remove_pool(&key);
        }
        let pool = Arc::new(self.templates.attach(Pool::read(stored)));
        let before = self.pools.insert(key.clone(), Arc::clone(&pool));
        if before
            .as_ref()
            .is_some_and(|before| before.generation != pool.generation)
        {
            self.cancel_creations(&pool);
        }
        let changing_hands = self.claims_changing_operator(before.as_ref(), Some(&pool));
        let known = before.as_ref().is_some_and(|b| {
            (&b.error, &b.labels, &b.claim_defaults, b.terminating)
                == (&pool.error, &pool.labels, &pool.claim_defaults, pool.terminating)
        });
        let mut to_reconcile = vec![ReconcileRequest::Pool(key.clone())];
        if before.is_none_or(|before| before.terminating != pool.terminating) {
            to_reconcile.extend(self.claims_with_sandboxes_of(&key));
        }
        if !known {
            if self.templates.knows_that_of(&pool) {
                self.log_error_of(&pool);
            }
            to_reconcile.extend(self.waiting_on(&key));
        }
        to_reconcile.extend(changing_hands);
        to_reconcile
    }

    /// Whether the pool, as an event of the watch shows it, is known at this version or a later one: an answer to a
    /// write showed it before.
    pub(crate) fn knows_pool(&self, stored: &StoredPool) -> bool {
        let known = self.pools.get(&stored::key(&stored.metadata));
        known.is_some_and(|known| is_known(&known.uid, &known.resource_version, &stored.metadata))
    }

    /// A pool is gone.
    pub fn delete_pool(&mut self, stored: &StoredPool) -> Vec<ReconcileRequest> {
        let key = stored::key(&stored.metadata);
        let changing_hands = self.claims_changing_operator(self.pools.get(&key), None);
        self.remove_pool(&key);
        // The last reconcile finds nothing, and so drops the pool's timer.
        let mut to_reconcile = vec![ReconcileRequest::Pool(key.clone())];
        to_reconcile.extend(self.waiting_on(&key));
        to_reconcile.extend(self.claims_with_sandboxes_of(&key));
        to_reconcile.extend(changing_hands);
        to_reconcile
    }

    /// After a list: pools missing from it are gone.
    pub fn retain_pools(&mut self, listed: &HashSet<Key>) {
        for key in absent(self.pools.keys(), listed) {
            self.remove_pool(&key);
        }
    }

    pub(crate) fn remove_pool(&mut self, key: &Key) {
        self.templates.detach(key);
        if let Some(pool) = self.pools.remove(key) {
            self.memory.forget(&pool.uid);
            self.cancel_creations(&pool);
        }
    }
}
