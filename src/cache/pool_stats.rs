//! Counts sandboxes and claims by pool, for the gauges.

use crate::cache::index::Index;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::demand::Demand;
use crate::model::pool::Pool;
use crate::model::sandbox_state::SandboxState;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// Every [`SandboxState`] that is counted.
pub const SANDBOX_STATES: [SandboxState; 4] = [
    SandboxState::Warming,
    SandboxState::Available,
    SandboxState::Claimed,
    SandboxState::Draining,
];

/// The name under which claims without a pool are counted. No pool can have it.
pub const NO_POOL: &str = "<none>";

/// What a pool has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PoolStats {
    /// `spec.replicas`.
    pub replicas: usize,
    /// `spec.capacity.maxTotal`; `None` without a limit.
    pub max_total: Option<usize>,
    /// Unclaimed sandboxes that the pool keeps warm, as its status says.
    pub desired: i32,
    /// What an operator that leads has learned of an autoscaled pool.
    pub demand: Option<DemandStats>,
    /// Sandboxes that are not terminating, by state and by whether they run the update revision.
    pub sandboxes: BTreeMap<(SandboxState, bool), usize>,
    /// Claims that wait for the pool.
    pub waiting: usize,
    /// Since when the oldest of them waits.
    pub waiting_since: Option<Timestamp>,
    /// Type, status and reason of each condition.
    pub conditions: Vec<[String; 3]>,
}

/// The demand for the sandboxes of an autoscaled pool.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DemandStats {
    /// Sandboxes that claims requested per second recently.
    pub arrivals_per_second: f64,
    /// Seconds from a claim until the sandbox that replaces the claimed one is available.
    pub warm_up_seconds: f64,
    /// Share of recent claims that found a sandbox available; `None` before the first.
    pub hit_rate: Option<f64>,
}

impl DemandStats {
    fn of(demand: &Demand, now: Timestamp) -> Self {
        Self {
            arrivals_per_second: demand.arrivals_per_second(now),
            warm_up_seconds: demand.warm_up.as_secs_f64(),
            hit_rate: demand.hit_rate(),
        }
    }
}

impl PoolStats {
    fn of(pool: &Pool, demand: Option<DemandStats>) -> Self {
        let conditions = pool.status.conditions.iter();
        Self {
            replicas: pool.spec.replicas,
            max_total: pool.spec.max_total,
            desired: pool.status.desired_replicas,
            demand,
            conditions: conditions
                .map(|c| [c.type_.clone(), c.status.clone(), c.reason.clone()])
                .collect(),
            ..Self::default()
        }
    }

    fn count(&mut self, claim: &Claim) {
        self.waiting += 1;
        let since = claim.waits_from(claim.arrived);
        self.waiting_since = Some(self.waiting_since.map_or(since, |first| first.min(since)));
    }
}

impl Index {
    /// Counts what this operator serves at `now`, by pool; `selected_pools` holds the pool that serves each selector
    /// claim. Claims without a pool are counted under [`NO_POOL`] of their namespace.
    pub fn stats(&self, now: Timestamp, selected_pools: &BTreeMap<Key, Key>) -> BTreeMap<Key, PoolStats> {
        let mut all: BTreeMap<Key, PoolStats> = BTreeMap::new();
        let served = self.pools.iter().filter(|(_, pool)| self.serves_pool(pool));
        for (key, pool) in served {
            let demand = self.pool_memory(pool).and_then(|memory| memory.demand.as_ref());
            let mut stats = PoolStats::of(pool, demand.map(|demand| DemandStats::of(demand, now)));
            let sandboxes = self.sandboxes_of(key);
            for sandbox in sandboxes {
                let updated = [sandbox.revision.as_str(), ""].contains(&pool.status.update_revision.as_str());
                let state = sandbox.state_at(&pool.uid, &pool.spec.availability_rule, now);
                if SANDBOX_STATES.contains(&state) && !sandbox.finished() {
                    *stats.sandboxes.entry((state, updated)).or_default() += 1;
                }
            }
            all.insert(key.clone(), stats);
        }
        let waiting = self.waiting_claims(now);
        for claim in waiting.filter(|claim| !self.is_served_elsewhere(claim)) {
            let serving_pool = claim
                .named_pool()
                .or_else(|| selected_pools.get(&claim.key).cloned());
            let pool = serving_pool.filter(|key| self.pools.contains_key(key));
            let pool = pool.unwrap_or_else(|| Key::new(claim.key.namespace.clone(), NO_POOL));
            all.entry(pool).or_default().count(claim);
        }
        all
    }
}
