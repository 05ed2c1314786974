//! Queries on the index: single objects, and which belong together.

use crate::cache::claim_queues::selector_queue;
use crate::cache::index::Index;
use crate::cache::memory::{ClaimMemory, PoolMemory};
use crate::cache::reconcile_request::ReconcileRequest;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use crate::model::sandbox::Sandbox;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Index {
    /// Every pool and claim.
    pub fn all(&self) -> Vec<ReconcileRequest> {
        let pools = self.pools.keys().cloned().map(ReconcileRequest::Pool);
        pools
            .chain(self.claims.keys().cloned().map(ReconcileRequest::Claim))
            .collect()
    }

    /// Keys of all pools, sorted.
    pub fn pool_keys(&self) -> Vec<Key> {
        let mut keys: Vec<_> = self.pools.keys().cloned().collect();
        keys.sort();
        keys
    }

    /// How many pods have the label of a pool.
    pub(crate) fn count_of(&self, pool: &Key) -> usize {
        self.sandboxes.get(pool).map_or(0, BTreeMap::len)
    }

    /// The pods with the label of a pool.
    pub(crate) fn sandboxes_of(&self, pool: &Key) -> impl Iterator<Item = &Arc<Sandbox>> + Clone {
        self.sandboxes.get(pool).into_iter().flat_map(BTreeMap::values)
    }

    /// The pool whose sandboxes a claim holds.
    pub(crate) fn pool_held_of(&self, claim: &Claim) -> Option<Key> {
        self.held_by(claim).next().map(|pod| pod.pool_key())
    }

    /// Whether a plan left the claim waiting.
    pub fn has_waited(&self, claim: &Claim) -> bool {
        self.wait_reason(&claim.uid).is_some()
    }

    /// The pool as last seen.
    pub fn pool(&self, key: &Key) -> Option<Arc<Pool>> {
        self.pools.get(key).cloned()
    }

    /// The claim as last seen.
    pub fn claim(&self, key: &Key) -> Option<Arc<Claim>> {
        self.claims.get(key).cloned()
    }

    /// The pod as last seen.
    pub fn pod(&self, key: &Key) -> Option<Arc<Sandbox>> {
        self.sandboxes
            .get(self.pool_of.get(key)?)?
            .get(&key.name)
            .cloned()
    }

    /// Keys of all pods, sorted.
    pub fn pod_keys(&self) -> Vec<Key> {
        let mut keys: Vec<_> = self.pool_of.keys().cloned().collect();
        keys.sort();
        keys
    }

    /// Keys of all claims, sorted.
    pub fn claim_keys(&self) -> Vec<Key> {
        let mut keys: Vec<_> = self.claims.keys().cloned().collect();
        keys.sort();
        keys
    }

    /// The pools that may serve `claim`.
    pub(crate) fn accepted_by<'a>(&'a self, claim: &Claim) -> impl Iterator<Item = &'a Arc<Pool>> {
        let named = claim.named_pool();
        let all = named.is_none().then(|| self.pools.values());
        let any = all.into_iter().flatten().filter(|pool| claim.accepts(pool));
        named.and_then(|key| self.pools.get(&key)).into_iter().chain(any)
    }

    /// The pools to reconcile for `claim`: a pool that it names, existing or not, or every pool that it selects, and
    /// the pool whose sandboxes it holds, whatever its labels.
    pub fn pools_for(&self, claim: &Claim) -> Vec<ReconcileRequest> {
        if let Some(pool) = claim.named_pool() {
            return vec![ReconcileRequest::Pool(pool)];
        }
        let accepted = self.accepted_by(claim).map(|pool| pool.key.clone());
        let pools: BTreeSet<_> = accepted.chain(self.pool_held_of(claim)).collect();
        pools.into_iter().map(ReconcileRequest::Pool).collect()
    }

    /// Claims that wait for `pool`, or may.
    pub(crate) fn waiting_on(&self, pool: &Key) -> Vec<ReconcileRequest> {
        let shared = selector_queue(&pool.namespace);
        let keys = self
            .waiting_claims
            .queue(pool)
            .chain(self.waiting_claims.queue(&shared));
        keys.cloned().map(ReconcileRequest::Claim).collect()
    }

    /// The claims that wait in a queue.
    pub(crate) fn queued<'a>(&'a self, queue: &Key) -> impl Iterator<Item = &'a Arc<Claim>> + use<'a> {
        self.waiting_claims
            .queue(queue)
            .filter_map(|key| self.claims.get(key))
    }

    /// The claim of a queue that came first.
    pub(crate) fn oldest_of(&self, queue: &Key) -> Option<&Arc<Claim>> {
        self.queued(queue)
            .min_by_key(|claim| (claim.created, claim.sequence))
    }

    /// Every claim that waits for more than the answer to a request. A claim whose binding keeps failing waits, too.
    pub(crate) fn waiting_claims(&self, now: Timestamp) -> impl Iterator<Item = &Arc<Claim>> {
        let keys = self.waiting_claims.all();
        keys.filter_map(|key| self.claims.get(key))
            .filter(move |claim| !self.is_busy(claim, now) || self.is_rejected(claim))
    }

    /// Whether a claim that `pool` may serve waits for a plan, and not only for the answer to a request.
    pub(crate) fn has_claim_waiting_for(&self, pool: &Pool, now: Timestamp) -> bool {
        let selecting = self.queued(&selector_queue(&pool.key.namespace));
        let selecting = selecting.filter(|claim| claim.accepts(pool));
        let mut waiting = self.queued(&pool.key).chain(selecting);
        waiting.any(|claim| !self.is_busy(claim, now))
    }

    /// For each claim that waits for `pool` by its name, how many of its sandboxes are being bound or published, if any.
    pub(crate) fn unpublished_bindings(&self, pool: &Pool, now: Timestamp) -> impl Iterator<Item = usize> {
        let waiting = self
            .queued(&pool.key)
            .map(move |claim| self.waiting(claim, &pool.claim_defaults, now));
        waiting
            .map(|waiting| waiting.unpublished())
            .filter(|bindings| *bindings > 0)
    }

    /// The waiting claims that hold all their sandboxes.
    pub(crate) fn complete_claims(&self) -> impl Iterator<Item = &Arc<Claim>> {
        let waiting = self.waiting_claims.all().filter_map(|key| self.claims.get(key));
        waiting.filter(|claim| self.held_by(claim).count() >= claim.wanted())
    }

    /// A request binds the claim or writes its status.
    pub fn is_busy(&self, claim: &Claim, now: Timestamp) -> bool {
        self.expectations.bound_to(&claim.uid) > 0 || self.next_write(claim, now).0
    }

    /// The sandboxes that the claim owns. A pod of another namespace cannot be owned by it.
    pub(crate) fn owned_by(&self, claim: &Claim) -> impl Iterator<Item = Arc<Sandbox>> {
        let owned = self.owned.get(&claim.uid).into_iter().flatten();
        owned
            .filter(|key| key.namespace == claim.key.namespace)
            .filter_map(|key| self.pod(key))
    }

    /// The sandboxes that the claim owns and may keep.
    pub fn held_by(&self, claim: &Claim) -> impl Iterator<Item = Arc<Sandbox>> {
        self.owned_by(claim).filter(|pod| claim.keeps(pod))
    }

    /// The claim still exists, under the same UID.
    pub(crate) fn exists(&self, claim: &Claim) -> bool {
        self.claims
            .get(&claim.key)
            .is_some_and(|known| known.uid == claim.uid)
    }

    /// What is remembered of a pool.
    pub fn pool_memory(&self, pool: &Pool) -> Option<&PoolMemory> {
        self.memory.pool(&pool.uid)
    }

    /// Drops every remembered moment. After the clock was set back they lie in the future, and plans would wait for
    /// them.
    pub fn forget_moments(&mut self) {
        self.claims
            .values_mut()
            .for_each(|claim| Arc::make_mut(claim).forget_moments());
        self.memory.forget_moments();
        self.expectations.forget_moments();
    }

    /// What is remembered of a claim.
    pub fn claim_memory(&self, claim: &Claim) -> Option<&ClaimMemory> {
        self.memory.claim(&claim.uid)
    }

    /// What is remembered of a claim, to be changed; `None` when the claim is gone.
    pub fn claim_memory_mut(&mut self, claim: &Claim) -> Option<&mut ClaimMemory> {
        self.exists(claim).then(|| self.memory.claim_mut(&claim.uid))
    }

    /// What is remembered of a pool, to be changed; `None` when the pool is gone.
    pub fn pool_memory_mut(&mut self, pool: &Pool) -> Option<&mut PoolMemory> {
        let exists = self
            .pools
            .get(&pool.key)
            .is_some_and(|known| known.uid == pool.uid);
        exists.then(|| self.memory.pool_mut(&pool.uid))
    }
}
