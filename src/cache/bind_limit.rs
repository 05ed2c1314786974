//! How many bindings of one pool are decided on before the first of them is done. A sandbox that is promised to a
//! claim is lost to one that comes a moment later and goes before it; what is held back is decided anew.

use crate::model::Key;
use std::collections::HashMap;

/// Bindings of one pool that are decided on at once. More would only queue in the API server, which answers slower the more
/// it holds.
pub const AT_ONCE: usize = 32;

/// The turns of all pools.
#[derive(Clone, Debug, Default)]
pub struct BindLimit(HashMap<Key, Taken>);

#[derive(Clone, Debug, Default)]
struct Taken {
    count: usize,
    /// Somebody was refused a turn since one was free.
    held_back: bool,
}

impl BindLimit {
    /// Takes turns to bind `sandboxes` of `pool` to one claim; false while [`AT_ONCE`] are decided on. What a claim for
    /// several gets it gets together, however many that are.
    #[must_use]
    pub fn take(&mut self, pool: &Key, sandboxes: usize) -> bool {
        let taken = self.0.entry(pool.clone()).or_default();
        let free = taken.count < AT_ONCE;
        if free {
            taken.count += sandboxes;
        } else {
            taken.held_back = true;
        }
        free
    }

    /// Gives back what was taken for one claim, whatever came of it. True when the pool has to be looked at again, because
    /// somebody was held back.
    #[must_use]
    pub fn give_back(&mut self, pool: &Key, sandboxes: usize) -> bool {
        let Some(taken) = self.0.get_mut(pool) else {
            return false;
        };
        taken.count = taken.count.saturating_sub(sandboxes);
        let held_back = std::mem::take(&mut taken.held_back);
        if taken.count == 0 {
            self.0.remove(pool);
        }
        held_back
    }
}
