//! What the index answers: the views of pools and claims, and single objects.

use crate::cache::index::{Index, ReconcileRequest};
use crate::cache::snapshot::{ClaimSnapshot, Creation, PoolPresence, PoolSnapshot, SandboxEntry};
use crate::cache::waiting_claims::selector_queue;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use crate::model::sandbox::Sandbox;
use jiff::Timestamp;
use std::collections::BTreeMap;
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

    /// The view of a pool; `None` when it is gone.
    pub fn pool_snapshot(
        &self,
        key: &Key,
        now: Timestamp,
        seed: u64,
        creation: Creation,
    ) -> Option<PoolSnapshot> {
        let pool = Arc::clone(self.pools.get(key)?);
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
            failures: self.failures.of(&pool.uid),
            recent_claims: self.recent_claims.lately(&pool.uid, now),
            pool,
            creation,
        })
    }

    /// The pods that carry the label of a pool.
    pub(crate) fn sandboxes_of(&self, pool: &Key) -> impl Iterator<Item = &Arc<Sandbox>> + Clone {
        self.sandboxes.get(pool).into_iter().flat_map(BTreeMap::values)
    }

    /// Whether the last status written for the object with UID `uid` is still to be seen.
    pub fn awaits(&self, uid: &str) -> bool {
        self.published.contains_key(uid)
    }

    /// The view of a claim; `None` when it is gone, or when its own status write is still to be seen.
    pub fn claim_snapshot(&self, key: &Key, now: Timestamp) -> Option<ClaimSnapshot> {
        let claim = self.claims.get(key).filter(|c| !self.awaits(&c.uid))?;
        let served_by = self.serving(claim);
        let pool = self.pools.get(&served_by);
        // It is not to be published with one whose deletion was decided on before it waited again.
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
            wait_reason: self.waiting_claims.wait_reason(&claim.uid).cloned(),
        })
    }

    /// The pool whose sandboxes a claim holds, or else the one that serves it, that it asks for, or that was told last to
    /// serve it; named as no pool is while any of several may.
    fn serving(&self, claim: &Claim) -> Key {
        let told = || self.assigned_pool(&claim.uid).cloned();
        self.pool_held_of(claim).unwrap_or_else(|| match claim.pool() {
            "" => told().unwrap_or_else(|| selector_queue(&claim.key.namespace)),
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

    /// Whether a plan has left the claim without a sandbox.
    pub fn has_waited(&self, claim: &Claim) -> bool {
        self.waiting_claims.wait_reason(&claim.uid).is_some()
    }

    /// The claim with the resource version of its last status write, which the watch may not have shown yet.
    pub fn as_written(&self, claim: &Arc<Claim>) -> Arc<Claim> {
        match self.published.get(&claim.uid) {
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
}
