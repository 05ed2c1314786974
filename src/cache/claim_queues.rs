//! Which claims wait, by the queue that each waits in.

use crate::cache::grouped::remove_from;
use crate::model::Key;
use crate::model::claim::Claim;
use std::collections::{BTreeSet, HashMap};

/// Keys of the claims that wait, by queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitingClaims(HashMap<Key, BTreeSet<Key>>);

/// The queue that a claim waits in: the queue of the pool that it names, or the one that all selector claims of its
/// namespace share.
pub(crate) fn queue_of(claim: &Claim) -> Key {
    claim
        .named_pool()
        .unwrap_or_else(|| selector_queue(&claim.key.namespace))
}

/// The queue of the selector claims of a namespace. No pool has its name.
pub(crate) fn selector_queue(namespace: &str) -> Key {
    Key::new(namespace, "")
}

impl WaitingClaims {
    /// Puts a claim into its queue.
    pub(crate) fn add(&mut self, claim: &Claim) {
        self.0
            .entry(queue_of(claim))
            .or_default()
            .insert(claim.key.clone());
    }

    /// Takes a claim out of its queue. Returns whether the claim waited.
    pub(crate) fn remove(&mut self, claim: &Claim) -> bool {
        remove_from(&mut self.0, &queue_of(claim), |keys| keys.remove(&claim.key))
    }

    /// How many claims wait in one queue.
    pub(crate) fn len(&self, queue: &Key) -> usize {
        self.0.get(queue).map_or(0, BTreeSet::len)
    }

    /// The claims of one queue.
    pub(crate) fn queue<'a>(&'a self, queue: &Key) -> impl Iterator<Item = &'a Key> + use<'a> {
        self.0.get(queue).into_iter().flatten()
    }

    /// How many claims a queue has.
    pub(crate) fn length(&self, queue: &Key) -> usize {
        self.0.get(queue).map_or(0, |claims| claims.len())
    }

    /// The claims of all queues.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Key> {
        self.0.values().flatten()
    }
}
