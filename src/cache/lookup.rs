//! What the index answers: the views of pools and claims, and single objects.

use crate::cache::index::{Index, Trigger};
use crate::cache::snapshot::{ClaimView, Creation, PoolView, Seen, Server};
use crate::cache::waiting_claims::shared_line;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pool::Pool;
use crate::model::sandbox::Sandbox;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Index {
    /// Every pool and claim.
    pub fn all(&self) -> Vec<Trigger> {
        let pools = self.pools.keys().cloned().map(Trigger::Pool);
        pools
            .chain(self.claims.keys().cloned().map(Trigger::Claim))
            .collect()
    }

    /// Keys of all pools, sorted.
    pub fn pool_keys(&self) -> Vec<Key> {
        let mut keys: Vec<_> = self.pools.keys().cloned().collect();
        keys.sort();
        keys
    }

    /// The view of a pool; `None` when it is gone.
    pub fn pool_view(&self, key: &Key, now: Timestamp, seed: u64, creation: Creation) -> Option<PoolView> {
        let pool = Arc::clone(self.pools.get(key)?);
        let (claims, chosen) = self.claims_of(&pool, now);
        Some(PoolView {
            now,
            seed,
            sandboxes: self
                .sandboxes_of(key)
                .map(|s| Seen {
                    sandbox: Arc::clone(s),
                    pending: self.pending.on(&s.uid),
                })
                .collect(),
            creating: self.pending.creations_of(key),
            claims,
            chosen,
            revisions: self
                .revisions
                .get(key)
                .into_iter()
                .flat_map(BTreeMap::values)
                .map(Arc::clone)
                .collect(),
            failures: self.failures.of(&pool.uid),
            takings: self.takings.lately(&pool.uid, now),
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
    pub fn claim_view(&self, key: &Key, now: Timestamp) -> Option<ClaimView> {
        let claim = self.claims.get(key).filter(|c| !self.awaits(&c.uid))?;
        let served_by = self.serving(claim);
        let pool = self.pools.get(&served_by);
        // It is not to be published with one whose deletion was decided on before it waited again.
        let going = |pod: &Sandbox| claim.waiting() && self.pending.is_deleting(&pod.uid);
        Some(ClaimView {
            now,
            claim: Arc::clone(claim),
            sandboxes: self.owned_by(claim).filter(|pod| !going(pod)).collect(),
            binding: self.pending.is_serving(&claim.uid)
                || self.pending.bound_to().any(|uid| uid == claim.uid),
            server: self.server_of(claim),
            terms: claim.terms(pool.map(|p| &p.claim_defaults)),
            pool: served_by.name,
            verdict: self.queue.verdict(&claim.uid).cloned(),
        })
    }

    /// The pool whose sandboxes a claim holds, or else the one that serves it, that it asks for, or that was told last to
    /// serve it; named as no pool is while any of several may.
    fn serving(&self, claim: &Claim) -> Key {
        let told = || self.told_server(&claim.uid).cloned();
        self.pool_held_of(claim).unwrap_or_else(|| match claim.pool() {
            "" => told().unwrap_or_else(|| shared_line(&claim.key.namespace)),
            pool => Key::new(claim.key.namespace.clone(), pool),
        })
    }

    /// The pool whose sandboxes a claim holds.
    pub(crate) fn pool_held_of(&self, claim: &Claim) -> Option<Key> {
        self.held_by(claim).next().map(|pod| pod.pool_key())
    }

    fn server_of(&self, claim: &Claim) -> Server {
        let all_from = self.pool_held_of(claim);
        let pools: Vec<_> = match all_from {
            Some(pool) => self.pools.get(&pool).into_iter().collect(),
            None => self.accepted_by(claim).collect(),
        };
        if pools.iter().any(|pool| !pool.terminating) {
            Server::Present
        } else if pools.is_empty() {
            Server::Absent
        } else {
            Server::Terminating
        }
    }

    /// Whether a plan has left the claim without a sandbox.
    pub fn has_waited(&self, claim: &Claim) -> bool {
        self.queue.verdict(&claim.uid).is_some()
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
