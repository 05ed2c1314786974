//! Queries on the index: the snapshots of pools and claims, and single objects.

use crate::api::ClaimDefaults;
use crate::cache::index::Index;
use crate::cache::memory::PoolMemory;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::snapshot::{ClaimSnapshot, PoolPresence, PoolSnapshot, SandboxEntry, Waiting};
use crate::cache::waiting_claims::selector_queue;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use crate::model::sandbox::Sandbox;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
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

    /// The snapshot of a pool; `None` when the pool is gone.
    pub fn pool_snapshot(&self, key: &Key, now: Timestamp, seed: u64) -> Option<PoolSnapshot> {
        let pool = Arc::clone(self.pools.get(key)?);
        let memory = self.pool_memory(&pool);
        let (claims, selected_pools) = self.claims_of(&pool, now);
        Some(PoolSnapshot {
            now,
            seed,
            sandboxes: self
                .sandboxes_of(key)
                .map(|s| SandboxEntry {
                    sandbox: Arc::clone(s),
                    expected: self.expectations.on(&s.uid),
                })
                .collect(),
            creating: self.expectations.creations_of(key),
            claims,
            selected_pools,
            revisions: self
                .revisions
                .get(key)
                .into_iter()
                .flat_map(BTreeMap::values)
                .map(Arc::clone)
                .collect(),
            failures: memory
                .map(|memory| memory.warm_up_failures.clone())
                .unwrap_or_default(),
            recent_claims: memory
                .map(|memory| memory.recent_claims.lately(now))
                .unwrap_or_default(),
            creation: memory
                .map(|memory| memory.creation_backoff.state(&pool, now))
                .unwrap_or_default(),
            pool,
        })
    }

    /// The pods with the label of a pool.
    pub(crate) fn sandboxes_of(&self, pool: &Key) -> impl Iterator<Item = &Arc<Sandbox>> + Clone {
        self.sandboxes.get(pool).into_iter().flat_map(BTreeMap::values)
    }

    /// Whether the watch has yet to show the last status written for the object with UID `uid`.
    pub fn awaits(&self, uid: &str) -> bool {
        self.memory.written_status(uid).is_some()
    }

    /// The snapshot of a claim; `None` when the claim is gone or the watch has yet to show its last status.
    pub fn claim_snapshot(&self, key: &Key, now: Timestamp) -> Option<ClaimSnapshot> {
        let claim = self.claims.get(key).filter(|c| !self.awaits(&c.uid))?;
        let served_by = self.serving(claim);
        let pool = self.pools.get(&served_by);
        // A claim that waits again is not published with a sandbox that is already being deleted.
        let going = |pod: &Sandbox| claim.waiting() && self.expectations.is_deleting(&pod.uid);
        Some(ClaimSnapshot {
            now,
            claim: Arc::clone(claim),
            sandboxes: self.owned_by(claim).filter(|pod| !going(pod)).collect(),
            binding: self.expectations.is_in_flight(&claim.uid)
                || self.expectations.bound_to().any(|uid| uid == claim.uid),
            pool_presence: self.pool_presence_of(claim),
            resolved_spec: claim.resolved_spec(pool.map(|p| &p.claim_defaults)),
            pool: served_by.name,
            wait_reason: self.wait_reason(&claim.uid).cloned(),
        })
    }

    /// The pool whose sandboxes a claim holds, or else the pool in its status, the pool that it names or its assigned pool;
    /// the shared queue of the namespace while a selector claim has none.
    fn serving(&self, claim: &Claim) -> Key {
        let assigned = || self.assigned_pool(&claim.uid).cloned();
        self.pool_held_of(claim).unwrap_or_else(|| match claim.pool() {
            "" => assigned().unwrap_or_else(|| selector_queue(&claim.key.namespace)),
            pool => Key::new(claim.key.namespace.clone(), pool),
        })
    }

    /// The pool whose sandboxes a claim holds.
    pub(crate) fn pool_held_of(&self, claim: &Claim) -> Option<Key> {
        self.held_by(claim).next().map(|pod| pod.pool_key())
    }

    fn pool_presence_of(&self, claim: &Claim) -> PoolPresence {
        let all_from = self.pool_held_of(claim);
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

    /// Whether a plan left the claim waiting.
    pub fn has_waited(&self, claim: &Claim) -> bool {
        self.wait_reason(&claim.uid).is_some()
    }

    /// The claim with the resource version of its last status write, which the watch may not have shown.
    pub fn as_written(&self, claim: &Arc<Claim>) -> Arc<Claim> {
        match self.memory.written_status(&claim.uid) {
            Some(written) => Arc::new(Claim {
                resource_version: written.version.clone(),
                ..(**claim).clone()
            }),
            None => Arc::clone(claim),
        }
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

    /// The pools to reconcile for `claim`: a pool that it names, existing or not, or every pool that it selects, and the pool
    /// whose sandboxes it holds, whatever its labels.
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

    /// The waiting claims that `pool` serves, and for each selector claim that accepts `pool`, the pool that serves it.
    pub(crate) fn claims_of(&self, pool: &Pool, now: Timestamp) -> (Vec<Waiting>, BTreeMap<Key, Key>) {
        let being_bound = self.being_bound();
        let as_waiting = |claim: &Arc<Claim>| self.waiting(claim, &pool.claim_defaults, &being_bound);
        let mut waiting: Vec<_> = self.queued(&pool.key).map(as_waiting).collect();
        let mut selected_pools = self.selected_pools(&pool.key.namespace, now);
        selected_pools.retain(|claim, server| {
            // A claim that holds sandboxes of this pool stays with it, whatever labels the pool has now.
            let here = *server == pool.key;
            let claim = self.claims.get(claim).filter(|claim| here || claim.accepts(pool));
            let served_here = claim.filter(|_| here);
            waiting.extend(served_here.map(as_waiting));
            claim.is_some()
        });
        let retried_here = self
            .queued(&selector_queue(&pool.key.namespace))
            .filter(|claim| self.retried_at(claim) == Some(&pool.key));
        waiting.extend(retried_here.map(as_waiting));
        (waiting, selected_pools)
    }

    /// The claims that wait in a queue.
    pub(crate) fn queued<'a>(&'a self, queue: &Key) -> impl Iterator<Item = &'a Arc<Claim>> + use<'a> {
        self.waiting_claims
            .queue(queue)
            .filter_map(|key| self.claims.get(key))
    }

    /// How many sandboxes are being bound to each claim, by UID.
    pub(crate) fn being_bound(&self) -> HashMap<&str, usize> {
        let mut being_bound = HashMap::new();
        for uid in self.expectations.bound_to() {
            *being_bound.entry(uid).or_default() += 1;
        }
        being_bound
    }

    /// A claim that waits for a pool with these defaults.
    pub(crate) fn waiting(
        &self,
        claim: &Arc<Claim>,
        defaults: &ClaimDefaults,
        being_bound: &HashMap<&str, usize>,
    ) -> Waiting {
        let coming = being_bound.get(claim.uid.as_str()).copied().unwrap_or(0);
        Waiting {
            resolved_spec: claim.resolved_spec(Some(defaults)),
            held: self.held_by(claim).count() + coming,
            busy: self.is_busy(claim),
            refused: self.is_rejected(claim),
            rejected_sandboxes: self.rejected_sandboxes(claim),
            claim: Arc::clone(claim),
        }
    }

    /// Every claim that waits and has no write in flight. A claim in flight that waits for a retry, or whose binding keeps
    /// failing, waits too.
    pub(crate) fn waiting_claims(&self) -> impl Iterator<Item = &Arc<Claim>> {
        let keys = self.waiting_claims.all();
        keys.filter_map(|key| self.claims.get(key))
            .filter(|claim| !self.is_busy(claim) || self.is_retried(claim))
    }

    /// A write on the claim is being retried.
    fn is_retried(&self, claim: &Claim) -> bool {
        let refused = self.is_rejected(claim);
        self.is_busy(claim) && (refused || self.expectations.is_pausing(&claim.uid))
    }

    /// The pool where such a selector claim is being retried.
    pub(crate) fn retried_at(&self, claim: &Claim) -> Option<&Key> {
        self.assigned_pool(&claim.uid).filter(|_| self.is_retried(claim))
    }

    /// A request binds or ends the claim, or has, and the watch has yet to show it.
    pub fn is_busy(&self, claim: &Claim) -> bool {
        self.expectations.is_in_flight(&claim.uid)
            || self
                .memory
                .written_status(&claim.uid)
                .is_some_and(|w| w.is_decided)
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

    /// The pool assigned to the selector claim with UID `uid`.
    pub fn assigned_pool(&self, uid: &str) -> Option<&Key> {
        self.memory.claim(uid)?.assigned_pool.as_ref()
    }

    /// The claim still exists, under the same UID.
    pub(crate) fn exists(&self, claim: &Claim) -> bool {
        self.claims
            .get(&claim.key)
            .is_some_and(|known| known.uid == claim.uid)
    }

    /// The API server rejected the last binding of the claim, or failed to make it.
    pub(crate) fn is_rejected(&self, claim: &Claim) -> bool {
        self.memory
            .claim(&claim.uid)
            .is_some_and(|memory| memory.is_rejected)
    }

    /// UIDs of the sandboxes that the API server did not bind to the claim.
    pub(crate) fn rejected_sandboxes(&self, claim: &Claim) -> Arc<HashSet<String>> {
        let memory = self.memory.claim(&claim.uid);
        memory
            .map(|memory| Arc::clone(&memory.rejected_sandboxes))
            .unwrap_or_default()
    }

    /// What is remembered of a pool.
    pub fn pool_memory(&self, pool: &Pool) -> Option<&PoolMemory> {
        self.memory.pool(&pool.uid)
    }

    /// Drops every remembered moment. After the clock was set back they lie in the future, and plans would wait for them.
    pub fn forget_moments(&mut self) {
        self.memory.forget_moments();
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
