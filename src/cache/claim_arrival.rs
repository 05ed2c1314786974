//! When a claim counts as arrived, and which arrivals no plan has counted yet.

use crate::cache::index::Index;
use crate::cache::waiting_claim::Waiting;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::stored::{self, StoredClaim};
use jiff::Timestamp;

/// When a claim arrived that was not known before: when an event of the watch showed it, at `seen`. A list does not
/// show that, so the API server's time of its creation counts for a claim that a list shows first.
pub(crate) fn arrived_at(stored: &StoredClaim, seen: Option<Timestamp>) -> Timestamp {
    seen.unwrap_or_else(|| stored::created(&stored.metadata))
}

impl Index {
    /// Whether claim `key`, which an event of the watch (`live`) or a list shows, is new. What the first list shows is
    /// not: it may have arrived long ago.
    pub(crate) fn is_arrival(&self, key: &Key, live: bool) -> bool {
        !self.claims.contains_key(key) && (live || self.claims_listed)
    }

    /// A new claim waits, and no plan has counted it.
    pub(crate) fn note_arrival(&mut self, claim: &Claim) {
        self.memory.claim_mut(&claim.uid).is_new = true;
    }

    /// A plan has counted the claims among those that arrived.
    pub(crate) fn count_arrivals(&mut self, counted: &[Waiting]) {
        for waiting in counted.iter().filter(|waiting| waiting.is_new) {
            if let Some(memory) = self.claim_memory_mut(&waiting.claim) {
                memory.is_new = false;
            }
        }
    }
}
