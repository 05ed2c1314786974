//! Queries on the index: the snapshots of pools and claims, and single objects.

use crate::api::ClaimDefaults;
use crate::cache::index::Index;
use crate::cache::memory::{ClaimMemory, PoolMemory};
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::snapshot::{ClaimSnapshot, PoolPresence, PoolSnapshot, SandboxEntry, Waiting};
use crate::cache::waiting_claims::selector_queue;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use crate::model::retry::{NextWrite, Purpose};
use crate::model::sandbox::Sandbox;
use jiff::Timestamp;
use smol_str::SmolStr;
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

    /// The snapshot of a pool; `None` when the pool is gone. `selected_pools` holds the pool that serves each selector claim of
    /// the namespace.
    pub fn pool_snapshot(
        &self,
        key: &Key,
        now: Timestamp,
        seed: u64,
        selected_pools: BTreeMap<Key, Key>,
    ) -> Option<PoolSnapshot> {
        let pool = Arc::clone(self.pools.get(key)?);
        let memory = self.pool_memory(&pool);
        let (claims, selected_pools) = self.claims_of(&pool, now, selected_pools);
        Some(PoolSnapshot {
            now,
            seed,
            sandboxes: self.entries_of(key),
            nodes: self.nodes_of(self.sandboxes_of(key)),
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
            demand: memory.and_then(|memory| memory.demand.clone()),
            sizing: None,
            status_write: memory.and_then(|memory| memory.status_write.clone()),
            status_written_at: memory.and_then(|memory| memory.status_written_at),
            revision_request: memory
                .map(|memory| memory.revision_request.clone())
                .unwrap_or_default(),
            disruption_budgets: self.budget_snapshot(&pool),
            creation_proven: memory.is_some_and(|memory| memory.is_creation_proven(pool.generation, now)),
            creation: memory
                .map(|memory| memory.creation_backoff.state(&pool, now))
                .unwrap_or_default(),
            pool,
        })
    }

    /// The pods with the label of a pool, each with the write on it that the watch has not shown.
    pub(crate) fn entries_of(&self, pool: &Key) -> Vec<SandboxEntry> {
        let entry = |sandbox: &Arc<Sandbox>| SandboxEntry {
            sandbox: Arc::clone(sandbox),
            expected: self.expectations.on(&sandbox.uid),
        };
        self.sandboxes_of(pool).map(entry).collect()
    }

    /// How many pods have the label of a pool.
    pub(crate) fn count_of(&self, pool: &Key) -> usize {
        self.sandboxes.get(pool).map_or(0, BTreeMap::len)
    }

    /// The pods with the label of a pool.
    pub(crate) fn sandboxes_of(&self, pool: &Key) -> impl Iterator<Item = &Arc<Sandbox>> + Clone {
        self.sandboxes.get(pool).into_iter().flat_map(BTreeMap::values)
    }

    /// The snapshot of a claim; `None` when the claim is gone.
    pub fn claim_snapshot(&self, key: &Key, now: Timestamp) -> Option<ClaimSnapshot> {
        let claim = self.claims.get(key)?;
        let memory = self.memory.claim(&claim.uid);
        let served_by = self.serving(claim);
        let pool = self.pools.get(&served_by);
        // A claim that waits again is not published with a sandbox that is already being deleted.
        let going = |pod: &Sandbox| claim.waiting() && self.expectations.is_deleting(&pod.uid);
        let sandboxes: Vec<_> = self.owned_by(claim).filter(|pod| !going(pod)).collect();
        Some(ClaimSnapshot {
            now,
            claim: Arc::clone(claim),
            nodes: self.nodes_of(sandboxes.iter()),
            sandboxes,
            binding: self.expectations.bound_to(&claim.uid) > 0,
            write: memory.and_then(|memory| memory.write.as_deref().cloned()),
            bound_at_once: memory.is_some_and(|memory| memory.bound_at_once),
            availability_rule: pool.map(|pool| pool.spec.availability_rule.clone()),
            invalid_metadata: memory.and_then(|memory| memory.invalid_metadata.clone()),
            reads: memory.map(|memory| memory.reads.clone()).unwrap_or_default(),
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
    fn claims_of(
        &self,
        pool: &Pool,
        now: Timestamp,
        mut selected_pools: BTreeMap<Key, Key>,
    ) -> (Vec<Waiting>, BTreeMap<Key, Key>) {
        let as_waiting = |claim: &Arc<Claim>| self.waiting(claim, &pool.claim_defaults, now);
        let mut waiting: Vec<_> = self.queued(&pool.key).map(as_waiting).collect();
        selected_pools.retain(|claim, server| {
            // A claim that holds sandboxes of this pool stays with it, whatever labels the pool has now.
            let here = *server == pool.key;
            let claim = self.claims.get(claim).filter(|claim| here || claim.accepts(pool));
            let served_here = claim.filter(|_| here);
            waiting.extend(served_here.map(as_waiting));
            claim.is_some()
        });
        (waiting, selected_pools)
    }

    /// The claims that wait in a queue.
    pub(crate) fn queued<'a>(&'a self, queue: &Key) -> impl Iterator<Item = &'a Arc<Claim>> + use<'a> {
        self.waiting_claims
            .queue(queue)
            .filter_map(|key| self.claims.get(key))
    }

    /// A claim that waits for a pool with these defaults.
    pub(crate) fn waiting(&self, claim: &Arc<Claim>, defaults: &ClaimDefaults, now: Timestamp) -> Waiting {
        let memory = self.memory.claim(&claim.uid);
        let rejection = memory.and_then(|memory| memory.rejection.as_ref());
        let (is_written, written_at) = self.next_write(claim, now);
        let rejected_until = rejection.map(|rejection| rejection.until);
        let binding = self.expectations.bound_to(&claim.uid);
        Waiting {
            resolved_spec: claim.resolved_spec(Some(defaults)),
            is_new: memory.is_some_and(|memory| memory.is_new),
            held: self.held_by(claim).count() + binding,
            binding,
            busy: is_written || memory.is_some_and(|memory| memory.invalid_metadata.is_some()),
            retry_at: rejected_until.max(written_at).filter(|at| *at > now),
            is_rejected: rejection.is_some(),
            rejected_sandboxes: self.rejected_sandboxes(claim),
            claim: Arc::clone(claim),
        }
    }

    /// Whether a write on the claim is under way, and when a failed one may be repeated.
    fn next_write(&self, claim: &Claim, now: Timestamp) -> (bool, Option<Timestamp>) {
        let write = self
            .memory
            .claim(&claim.uid)
            .and_then(|memory| memory.write.as_deref());
        // A claim whose status is about to say why it waits may be bound all the same, or younger claims would overtake it.
        let write = write.filter(|write| write.purpose != Purpose::Report);
        match write.map(|write| write.next(write.purpose, &claim.resource_version, now)) {
            None | Some(NextWrite::Write) => (false, None),
            Some(NextWrite::Wait(at)) => (false, Some(at)),
            Some(NextWrite::Await | NextWrite::Read) => (true, None),
        }
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

    /// Whether a waiting claim holds all its sandboxes, and its status is about to say so.
    pub fn has_unpublished_claims(&self, now: Timestamp) -> bool {
        let mut waiting = self.waiting_claims.all().filter_map(|key| self.claims.get(key));
        waiting.any(|claim| {
            let is_bound = self.held_by(claim).count() >= claim.wanted();
            is_bound
                && !self.is_served_elsewhere(claim)
                && claim.spec.is_ok()
                && self.next_write(claim, now).1.is_none()
        })
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

    /// The API server rejected the last binding of the claim, or failed to make it.
    pub(crate) fn is_rejected(&self, claim: &Claim) -> bool {
        self.memory
            .claim(&claim.uid)
            .is_some_and(|memory| memory.rejection.is_some())
    }

    /// UIDs of the sandboxes that the API server did not bind to the claim.
    pub(crate) fn rejected_sandboxes(&self, claim: &Claim) -> Arc<[SmolStr]> {
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

    /// A plan has counted the claims among those that arrived.
    pub(crate) fn count_arrivals(&mut self, counted: &[Waiting]) {
        for waiting in counted.iter().filter(|waiting| waiting.is_new) {
            if let Some(memory) = self.claim_memory_mut(&waiting.claim) {
                memory.is_new = false;
            }
        }
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
