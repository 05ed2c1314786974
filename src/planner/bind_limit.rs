//! Limits the bindings of one pool in flight.

use crate::cache::index::Index;
use crate::cache::waiting_claim::Waiting;
use crate::model::pool::Pool;
use crate::planner::actions::WaitsFor;
use jiff::Timestamp;

/// Most bindings of one pool in flight, from the first request to the published status. A binding already decided
/// cannot serve a higher-priority claim that arrives later.
pub(crate) const BINDINGS_IN_FLIGHT: usize = 32;

/// The bindings of one pool in flight, with those that the plan adds.
pub(crate) struct BindLimit {
    in_flight: usize,
}

impl BindLimit {
    /// The bindings in flight of these claims.
    pub(crate) fn of(claims: &[Waiting]) -> Self {
        Self {
            in_flight: claims.iter().map(Waiting::unpublished).sum(),
        }
    }

    /// How many there are.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Adds the bindings of one claim, which gets all its sandboxes together, however many. Returns what they wait for.
    pub(crate) fn bind(&mut self, sandboxes: usize) -> Option<WaitsFor> {
        let waits_for = (self.in_flight >= BINDINGS_IN_FLIGHT).then_some(WaitsFor::BindingsInFlight);
        self.in_flight += sandboxes;
        waits_for
    }
}

/// Whether as many bindings of the pool are in flight as the limit allows, so that a plan sends none.
pub(crate) fn is_reached(index: &Index, pool: &Pool, now: Timestamp) -> bool {
    let in_flight = index.unpublished_bindings(pool, now).take(BINDINGS_IN_FLIGHT);
    in_flight.sum::<usize>() >= BINDINGS_IN_FLIGHT
}
