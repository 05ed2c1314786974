//! What the spec of a pool allows, read from its JSON and not by the operator's own code.

use crate::object::Object;

/// Bounds of one pool, in sandboxes.
pub struct Bounds {
    pub replicas: usize,
    /// Of `replicas`, those that a rollout or an eviction may take away.
    pub unavailable: usize,
    /// `maxUnavailable` and `maxSurge` are both 0: a surge of 1 or, where there is no place for it, one that is missing.
    pub both_zero: bool,
    /// Unclaimed ones that there may be when no claim waits.
    pub most: usize,
    /// As `most`, while nodes are cordoned.
    pub most_in_drain: usize,
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
        let both_zero = unavailable + surge == 0;
        let surge = surge.max(usize::from(both_zero));
        let upper = pool
            .number("/spec/capacity/maxWarm")
            .max(pool.number("/spec/capacity/minTotal"))
            .max(pool.number("/spec/autoscaling/maxReplicas"));
        let total = pool.value.pointer("/spec/capacity/maxTotal");
        Self {
            replicas,
            unavailable,
            both_zero,
            most: replicas.max(upper) + surge,
            most_in_drain: replicas.max(upper) + unavailable + surge,
            width: unavailable + surge,
            total: total.map(|_| pool.number("/spec/capacity/maxTotal")),
        }
    }

    /// Fewest that stay available beside `claimed` ones. Where `replicas` do not fit, one at a time of those that do may go,
    /// if any may.
    pub fn least_beside(&self, claimed: usize) -> usize {
        let capacity = self.total.map(|most| most.saturating_sub(claimed));
        let no_surge = self.both_zero && capacity.is_some_and(|capacity| capacity <= self.replicas);
        let unavailable = self.unavailable.max(usize::from(no_surge));
        let least = self.replicas.saturating_sub(unavailable);
        match capacity.filter(|capacity| *capacity < self.replicas) {
            Some(capacity) => least.min(capacity.saturating_sub(unavailable.min(1))),
            None => least,
        }
    }
}
