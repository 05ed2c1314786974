//! What the spec of a pool allows, read from its JSON and not by the operator's own code.

use crate::object::Object;

/// Bounds of one pool, in sandboxes.
pub struct Bounds {
    pub replicas: usize,
    /// Of `replicas`, those that a rollout or an eviction may take away.
    pub unavailable: usize,
    /// Unclaimed ones that there may be when no claim waits.
    pub most: usize,
    /// Those of a revision that never comes up that there may be.
    pub width: usize,
    /// All that there may be, those of claims among them.
    pub total: Option<usize>,
}

impl Bounds {
    pub fn of(pool: &Object) -> Self {
        let replicas = pool.number("/spec/replicas");
        let unavailable = pool.number("/spec/updateStrategy/maxUnavailable");
        let surge = pool.number("/spec/updateStrategy/maxSurge");
        let upper = pool
            .number("/spec/capacity/maxWarm")
            .max(pool.number("/spec/capacity/minTotal"));
        let total = pool.value.pointer("/spec/capacity/maxTotal");
        Self {
            replicas,
            unavailable,
            most: replicas.max(upper) + surge,
            width: (unavailable + surge).max(1),
            total: total.map(|_| pool.number("/spec/capacity/maxTotal")),
        }
    }

    /// Fewest that stay available beside `claimed` ones. Where there is no room for `replicas`, one at a time of those
    /// that there is room for may go, if any may.
    pub fn least_beside(&self, claimed: usize) -> usize {
        let least = self.replicas.saturating_sub(self.unavailable);
        let room = self.total.map(|most| most.saturating_sub(claimed));
        match room.filter(|room| *room < self.replicas) {
            Some(room) => least.min(room.saturating_sub(self.unavailable.min(1))),
            None => least,
        }
    }
}
