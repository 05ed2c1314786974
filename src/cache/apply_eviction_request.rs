//! What events of EvictionRequests change: the pool or claim of the named pod is reconciled.

use crate::cache::eviction_requests::EvictionRequests;
use crate::cache::index::{Index, absent};
use crate::cache::orphaned_claims::claim_of;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::model::Key;
use crate::model::eviction_request::EvictionRequest;
use crate::model::stored;
use crate::model::stored::eviction_request::StoredEvictionRequest;
use jiff::Timestamp;
use std::collections::HashSet;

impl Index {
    /// An EvictionRequest was created or changed. Most events change only its status, which changes nothing here.
    pub fn apply_eviction_request(
        &mut self,
        stored: &StoredEvictionRequest,
        now: Timestamp,
    ) -> Vec<ReconcileRequest> {
        let key = stored::key(&stored.metadata);
        let known = self.eviction_requests.get(&key);
        let Some(request) = EvictionRequest::read(stored, known, now) else {
            return self.delete_eviction_request(&key);
        };
        if known == Some(&request) {
            return Vec::new();
        }
        let pod = request.pod.clone();
        self.eviction_requests.insert(&key, request);
        self.evicted_from(&pod)
    }

    /// An EvictionRequest is gone, which withdraws it.
    pub fn delete_eviction_request(&mut self, key: &Key) -> Vec<ReconcileRequest> {
        let gone = self.eviction_requests.remove(key);
        gone.map_or_else(Vec::new, |request| self.evicted_from(&request.pod))
    }

    /// After a list: requests missing from it are gone. Everything is reconciled after a list.
    pub fn retain_eviction_requests(&mut self, listed: &HashSet<Key>) {
        for key in absent(self.eviction_requests.keys(), listed) {
            self.eviction_requests.remove(&key);
        }
        self.eviction_requests.denied = false;
    }

    /// The operator may not read EvictionRequests. Forgets what it knew of them, and returns whether the missing right
    /// is new.
    pub fn deny_eviction_requests(&mut self) -> bool {
        let before = std::mem::replace(&mut self.eviction_requests, EvictionRequests::denied());
        !before.denied
    }

    /// The pool and the claim of a pod.
    fn evicted_from(&self, pod: &Key) -> Vec<ReconcileRequest> {
        let Some(sandbox) = self.pod(pod) else {
            return Vec::new();
        };
        let claim = claim_of(&sandbox).map(ReconcileRequest::Claim);
        let pool = ReconcileRequest::Pool(sandbox.pool_key());
        claim.into_iter().chain([pool]).collect()
    }
}
