//! How many bindings of one pool are decided on before the first of them is done. A sandbox that is promised to a
//! claim is lost to one that comes a moment later and goes before it; what is held back is decided anew.

use crate::observe::Key;
use crate::observe::feed::Triggers;
use crate::observe::index::Trigger;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Bindings of one pool that are decided on: as many as can be under way at once.
const AT_ONCE: usize = super::BINDINGS;

/// The turns of all pools. Cheap to clone.
#[derive(Clone)]
pub(super) struct Turns {
    taken: Arc<Mutex<HashMap<Key, Taken>>>,
    triggers: Triggers,
}

#[derive(Default)]
struct Taken {
    count: usize,
    /// Somebody was refused a turn since one was free.
    held_back: bool,
}

impl Turns {
    pub(super) fn new(triggers: Triggers) -> Self {
        Self {
            taken: Arc::default(),
            triggers,
        }
    }

    /// A turn to bind `sandboxes` of `pool` to one claim, until it is dropped; `None` while as many as there are turns
    /// for are decided on. Then the pool is looked at again as soon as one is free. What a claim for several gets it
    /// gets together, however many that are.
    pub(super) fn take(&self, pool: &Key, sandboxes: usize) -> Option<Turn> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of_pool = taken.entry(pool.clone()).or_default();
        if of_pool.count >= AT_ONCE {
            of_pool.held_back = true;
            return None;
        }
        of_pool.count += sandboxes;
        Some(Turn {
            turns: self.clone(),
            pool: pool.clone(),
            sandboxes,
        })
    }

    fn give_back(&self, pool: &Key, sandboxes: usize) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(of_pool) = taken.get_mut(pool) else {
            return;
        };
        of_pool.count = of_pool.count.saturating_sub(sandboxes);
        let held_back = std::mem::take(&mut of_pool.held_back);
        if of_pool.count == 0 {
            taken.remove(pool);
        }
        drop(taken);
        if held_back {
            self.triggers.send([Trigger::Pool(pool.clone())]);
        }
    }
}

/// What one claim is to get, and is decided on.
pub(super) struct Turn {
    turns: Turns,
    pool: Key,
    sandboxes: usize,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.give_back(&self.pool, self.sandboxes);
    }
}
