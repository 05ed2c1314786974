//! Applies an event of a claim to the cache, and returns what to reconcile.

use crate::cache::claim_arrival::arrived_at;
use crate::cache::index::{Index, absent};
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::stale_answers::is_known;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::stored::{self, StoredClaim};
use jiff::Timestamp;
use std::collections::HashSet;
use std::sync::Arc;

impl Index {
    /// A claim was created or changed. `live`: an event of the watch showed it, and not a list, which does not show
    /// when the claim arrived.
    pub fn apply_claim(&mut self, stored: &StoredClaim, live: bool, now: Timestamp) -> Vec<ReconcileRequest> {
        let key = stored::key(&stored.metadata);
        let uid = stored::uid(&stored.metadata);
        let mut to_reconcile = match self.claims.get(&key) {
            Some(known) if known.uid != uid => self.remove_claim(&key),
            _ => Vec::new(),
        };
        let seen = live.then_some(now);
        let is_new = self.is_arrival(&key, live);
        let claim = if let Some(known) = self.claims.get(&key) {
            Claim::read(stored, known.sequence, known.arrived).seen_after(known, seen)
        } else {
            self.sequence += 1;
            Claim::read(stored, self.sequence, arrived_at(stored, seen))
        };
        let claim = Arc::new(claim);
        to_reconcile.extend(self.dequeue(&key));
        if !claim.waiting() {
            self.cancel_bindings(&claim.uid);
        }
        if claim.waiting() {
            if is_new {
                self.note_arrival(&claim);
            }
            self.waiting_claims.add(&claim);
            to_reconcile.extend(self.pools_for(&claim));
        } else {
            self.memory.stop_waiting(&claim.uid);
        }
        to_reconcile.push(ReconcileRequest::Claim(key.clone()));
        self.claims.insert(key, claim);
        to_reconcile
    }

    /// Whether the claim, as an event of the watch shows it, is known at this version or a later one.
    pub fn knows_claim(&self, stored: &StoredClaim) -> bool {
        let known = self.claims.get(&stored::key(&stored.metadata));
        known.is_some_and(|known| is_known(&known.uid, &known.resource_version, &stored.metadata))
    }

    /// A claim is gone. The garbage collector deletes its pods.
    pub fn delete_claim(&mut self, stored: &StoredClaim) -> Vec<ReconcileRequest> {
        self.remove_claim(&stored::key(&stored.metadata))
    }

    /// After a list: claims missing from it are gone.
    pub fn retain_claims(&mut self, listed: &HashSet<Key>) {
        self.claims_listed = true;
        for key in absent(self.claims.keys(), listed) {
            self.remove_claim(&key);
        }
    }

    fn remove_claim(&mut self, key: &Key) -> Vec<ReconcileRequest> {
        let mut to_reconcile = self.dequeue(key);
        // As for a pool: the timer of a claim may be years away.
        to_reconcile.push(ReconcileRequest::Claim(key.clone()));
        if let Some(claim) = self.claims.remove(key) {
            self.memory.forget(&claim.uid);
            self.cancel_bindings(&claim.uid);
            self.reports_over_limit.remove(&claim);
        }
        to_reconcile
    }

    /// Takes a claim out of its queue. Returns the pools that it waited for.
    fn dequeue(&mut self, key: &Key) -> Vec<ReconcileRequest> {
        match self.claims.get(key).cloned() {
            Some(claim) if self.waiting_claims.remove(&claim) => self.pools_for(&claim),
            _ => Vec::new(),
        }
    }
}
