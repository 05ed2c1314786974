//! The cache that watches, controllers and executor share, and the inputs of a plan that no watch delivers.

use crate::cache::index::Index;
use crate::cache::watch_states::Watches;
use jiff::Timestamp;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Number of watches that have to deliver a first list before anything is planned; see
/// [`Indexed::IS_REQUIRED`](crate::cache::watch::Indexed::IS_REQUIRED). The watch of nodes may say instead that the
/// operator has no right to it.
pub const KINDS: usize = 6;

/// Whether so many watches with a first list are enough to plan. An earlier plan would take unlisted objects for gone.
pub fn is_complete(watches: usize) -> bool {
    watches >= KINDS
}

/// Inputs of a plan that no watch delivers. A replay passes its own.
#[derive(Clone, Copy, Debug)]
pub struct Inputs {
    /// The current time.
    pub now: fn() -> Timestamp,
    /// A seed of fresh pod names.
    pub seed: fn() -> u64,
}

impl Default for Inputs {
    fn default() -> Self {
        Self {
            now: Timestamp::now,
            seed: rand::random,
        }
    }
}

/// The index, shared between the watches, the controllers and the executor.
#[derive(Clone, Debug, Default)]
pub struct SharedCache {
    /// The state of each watch.
    pub watches: Arc<Watches>,
    index: Arc<Mutex<Index>>,
    /// How many watches have delivered their first list.
    complete: Arc<watch::Sender<usize>>,
    /// Time and seeds.
    pub inputs: Inputs,
}

impl SharedCache {
    /// An empty cache with these inputs.
    pub fn new(inputs: Inputs) -> Self {
        Self {
            inputs,
            ..Self::default()
        }
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        (self.inputs.now)()
    }

    /// Locks the index: for a look-up, a change or a plan, never across a request.
    pub fn lock(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every watch has delivered its first list. An earlier plan would take unlisted objects for gone.
    pub fn synced(&self) -> bool {
        is_complete(*self.complete.borrow())
    }

    /// Waits until [`SharedCache::synced`].
    pub async fn until_synced(&self) {
        let mut complete = self.complete.subscribe();
        // This fails only without a sender, and `self` is one.
        let _ = complete.wait_for(|complete| is_complete(*complete)).await;
    }

    /// One more watch has delivered its first list.
    pub fn watch_synced(&self) {
        self.complete.send_modify(|complete| *complete += 1);
    }
}
