//! What a pool has learned of the demand for its sandboxes: plain data of some 10 KiB at most.

pub mod arrivals;
pub mod histogram;
pub mod hit_count;
pub mod recent_needs;
pub mod recent_rate;
pub mod sliding_window;
pub mod warm_up_times;

use crate::model::demand::arrivals::Arrivals;
use crate::model::demand::hit_count::HitCount;
use crate::model::demand::warm_up_times::{DEFAULT_WARM_UP, WarmUpTimes};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

/// Half-life of what was seen at arrivals, unless warm-up times call for a longer one.
const HALF_LIFE: SignedDuration = SignedDuration::from_hours(1);
/// Warm-up times in a half-life at least: fewer say little about the highest numbers.
const WARM_UPS_PER_HALF_LIFE: i32 = 100;
/// Shortest time over which the rate is taken.
const LEAST_RATE_MEMORY: SignedDuration = SignedDuration::from_secs(30);
/// Warm-up times over which the rate is taken at least.
const WARM_UPS_PER_RATE: i32 = 10;

/// What the operator remembers of the claims on an autoscaled pool. A copy shares the large parts until one of them
/// changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// The size that was chosen last.
    pub size: usize,
    /// When the size last changed, as far as this process or the status knows.
    pub resized_at: Option<Timestamp>,
    /// When the size last went down.
    pub shrunk_at: Option<Timestamp>,
    /// The warm-up time that the estimate uses.
    pub warm_up: SignedDuration,
    /// The warm-up time with which `arrivals.seen` was counted.
    pub seen_with: SignedDuration,
    /// Measured warm-up times.
    pub warm_up_times: Arc<WarmUpTimes>,
    /// What was seen when claims arrived.
    pub arrivals: Arc<Arrivals>,
    /// Claims that found a sandbox available, and those that did not.
    pub hits: HitCount,
}

impl Default for Demand {
    fn default() -> Self {
        Self {
            size: 0,
            resized_at: None,
            shrunk_at: None,
            warm_up: DEFAULT_WARM_UP,
            seen_with: DEFAULT_WARM_UP,
            warm_up_times: Arc::default(),
            arrivals: Arc::default(),
            hits: HitCount::default(),
        }
    }
}

impl Demand {
    /// Counts the arrival of a claim for `wanted` sandboxes at `at`. Returns the size with which it would find them
    /// available.
    pub fn arrive(&mut self, wanted: usize, at: Timestamp) -> usize {
        let (half_life, rate_memory) = (self.half_life(), self.rate_memory());
        let arrivals = Arc::make_mut(&mut self.arrivals);
        let asked_for = arrivals.recent.arrive(at, wanted, self.warm_up);
        arrivals.seen.add(asked_for, at, half_life);
        arrivals.rate.add(wanted, at, rate_memory);
        arrivals.last = Some(at);
        asked_for
    }

    /// How long it takes until what was seen at an arrival weighs half.
    pub fn half_life(&self) -> SignedDuration {
        HALF_LIFE.max(self.warm_up.saturating_mul(WARM_UPS_PER_HALF_LIFE))
    }

    /// The time over which the rate of arrivals is taken.
    pub fn rate_memory(&self) -> SignedDuration {
        LEAST_RATE_MEMORY.max(self.warm_up.saturating_mul(WARM_UPS_PER_RATE))
    }

    /// Sandboxes that claims requested per second recently.
    pub fn arrivals_per_second(&self, now: Timestamp) -> f64 {
        self.arrivals.rate.per_second(now, self.rate_memory())
    }

    /// Sandboxes that are requested within a warm-up time on average, at the rate of the last half minute.
    pub fn arrivals_per_warm_up(&self, now: Timestamp) -> f64 {
        self.arrivals_per_second(now) * self.warm_up.as_secs_f64()
    }

    /// The share of recent claims that found a sandbox available; `None` before the first.
    pub fn hit_rate(&self) -> Option<f64> {
        self.hits.share()
    }
}
