//! Applies an event of a pod to the cache, and returns what to reconcile.

use crate::cache::grouped::remove_from;
use crate::cache::index::{Index, absent};
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::stale_answers::newer;
use crate::model::Key;
use crate::model::sandbox::{Owner, Sandbox};
use crate::model::stored::{self, StoredPod};
use std::collections::HashSet;
use std::sync::Arc;

impl Index {
    /// A pod was created or changed.
    pub fn apply_pod(&mut self, stored: &StoredPod) -> Vec<ReconcileRequest> {
        self.watch_progress.pods.up_to(&stored.metadata);
        self.take_over_pod(stored)
    }

    /// A list showed the pod.
    pub(crate) fn apply_sandbox(&mut self, sandbox: Sandbox) {
        self.watch_progress.pods.up_to_version(&sandbox.resource_version);
        self.take_over_sandbox(sandbox);
    }

    /// Stores a pod that a watch or an answer showed.
    pub(crate) fn take_over_pod(&mut self, stored: &StoredPod) -> Vec<ReconcileRequest> {
        match Sandbox::read(stored) {
            Some(sandbox) => self.take_over_sandbox(sandbox),
            None => self.remove_pod(&stored::key(&stored.metadata)),
        }
    }

    fn take_over_sandbox(&mut self, mut sandbox: Sandbox) -> Vec<ReconcileRequest> {
        let key = sandbox.key.clone();
        let before = self.pod(&key);
        if before
            .as_ref()
            .is_some_and(|b| b.uid == sandbox.uid && newer(&b.resource_version, &sandbox.resource_version))
        {
            return Vec::new();
        }
        let bound = self
            .expectations
            .claim_of(&sandbox.uid)
            .map(ReconcileRequest::of_binding);
        let confirmed = self.expectations.seen(&sandbox);
        let pool = Key::new(key.namespace.clone(), sandbox.pool.clone());
        let same = before.as_ref().is_some_and(|before| sandbox.is_as(before));
        let mut to_reconcile = Vec::new();
        if !same {
            to_reconcile = self.remove_pod(&key);
        }
        if !same || confirmed {
            to_reconcile.push(ReconcileRequest::Pool(pool.clone()));
            to_reconcile.extend(bound);
        }
        self.share_pool_uid(&pool, &mut sandbox);
        let sandbox = Arc::new(sandbox);
        if let Owner::Claim { name, uid } = &sandbox.owner {
            self.owned.entry(uid.clone()).or_default().insert(key.clone());
            if !same || confirmed {
                to_reconcile.push(ReconcileRequest::Claim(Key::new(
                    key.namespace.clone(),
                    name.clone(),
                )));
            }
        }
        if !same {
            self.nodes.add_pod(&pool, &sandbox);
        }
        self.pool_of.insert(key.clone(), pool.clone());
        self.sandboxes.entry(pool).or_default().insert(key.name, sandbox);
        to_reconcile
    }

    /// Has all sandboxes of a pool share one copy of its UID, which each would allocate and each plan would compare.
    fn share_pool_uid(&self, pool: &Key, sandbox: &mut Sandbox) {
        if let (Owner::Pool { uid }, Some(pool)) = (&mut sandbox.owner, self.pools.get(pool))
            && *uid == pool.uid
        {
            uid.clone_from(&pool.uid);
        }
    }

    /// A pod is gone.
    pub fn delete_pod(&mut self, stored: &StoredPod) -> Vec<ReconcileRequest> {
        self.watch_progress.pods.up_to(&stored.metadata);
        let key = stored::key(&stored.metadata);
        let uid = stored::uid(&stored.metadata);
        let bound = self.expectations.claim_of(&uid);
        let mut to_reconcile: Vec<_> = bound.map(ReconcileRequest::of_binding).into_iter().collect();
        self.expectations.gone(&key, &uid);
        to_reconcile.extend(self.remove_pod(&key));
        to_reconcile
    }

    /// After a list: pods missing from it are gone.
    pub fn retain_pods(&mut self, listed: &HashSet<Key>) {
        self.watch_progress.pods.by_list();
        for key in absent(self.pool_of.keys(), listed) {
            if let Some(sandbox) = self.pod(&key) {
                self.expectations.gone(&key, &sandbox.uid);
            }
            self.remove_pod(&key);
        }
    }

    pub(crate) fn remove_pod(&mut self, key: &Key) -> Vec<ReconcileRequest> {
        let Some(pool) = self.pool_of.remove(key) else {
            return Vec::new();
        };
        let sandbox = self
            .sandboxes
            .get_mut(&pool)
            .and_then(|of_pool| of_pool.remove(&key.name));
        remove_from(&mut self.sandboxes, &pool, |_| true);
        if let Some(sandbox) = &sandbox {
            self.nodes.remove_pod(&pool, sandbox);
        }
        let mut to_reconcile = vec![ReconcileRequest::Pool(pool)];
        if let Some(Owner::Claim { name, uid }) = sandbox.map(|s| s.owner.clone()) {
            remove_from(&mut self.owned, &uid, |keys| keys.remove(key));
            to_reconcile.push(ReconcileRequest::Claim(Key::new(key.namespace.clone(), name)));
        }
        to_reconcile
    }
}
