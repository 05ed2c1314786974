//! Limits the bindings of one pool in flight.

use crate::model::Key;
use std::collections::HashMap;

/// Most bindings of one pool in flight. A binding already decided cannot serve a higher-priority claim that arrives later,
/// and more requests only make the API server answer slower.
pub const AT_ONCE: usize = 32;

/// Bindings in flight, by pool.
#[derive(Clone, Debug, Default)]
pub struct BindLimit(HashMap<Key, InFlight>);

#[derive(Clone, Debug, Default)]
struct InFlight {
    count: usize,
    /// A binding was held back since the last one ended.
    held_back: bool,
}

impl BindLimit {
    /// Starts the bindings of `sandboxes` of `pool` to one claim; false while [`AT_ONCE`] are in flight. A claim for several
    /// gets all its sandboxes together, however many.
    #[must_use]
    pub fn start(&mut self, pool: &Key, sandboxes: usize) -> bool {
        let in_flight = self.0.entry(pool.clone()).or_default();
        let may_start = in_flight.count < AT_ONCE;
        if may_start {
            in_flight.count += sandboxes;
        } else {
            in_flight.held_back = true;
        }
        may_start
    }

    /// The bindings of one claim ended, whatever their outcome. True when a binding was held back, so that the pool has to be
    /// reconciled.
    #[must_use]
    pub fn end(&mut self, pool: &Key, sandboxes: usize) -> bool {
        let Some(in_flight) = self.0.get_mut(pool) else {
            return false;
        };
        in_flight.count = in_flight.count.saturating_sub(sandboxes);
        let held_back = std::mem::take(&mut in_flight.held_back);
        if in_flight.count == 0 {
            self.0.remove(pool);
        }
        held_back
    }
}
