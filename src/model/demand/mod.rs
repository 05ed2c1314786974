//! What a pool has learned of the demand for its sandboxes: plain data of at most some 12 KiB.

pub mod histogram;
pub mod hit_count;
pub mod recent_needs;
pub mod recent_rate;
pub mod sliding_window;
pub mod warm_up_times;

use crate::model::demand::histogram::Histogram;
use crate::model::demand::hit_count::HitCount;
use crate::model::demand::recent_needs::RecentNeeds;
use crate::model::demand::recent_rate::RecentRate;
use crate::model::demand::sliding_window::SlidingWindow;
use crate::model::demand::warm_up_times::{DEFAULT_WARM_UP, WarmUpTimes};
use jiff::{SignedDuration, Timestamp};

/// Half-life of what was seen at arrivals, unless warm-up times call for a longer one.
const HALF_LIFE: SignedDuration = SignedDuration::from_hours(1);
/// Warm-up times in a half-life at least: fewer say little about the highest numbers.
const WARM_UPS_PER_HALF_LIFE: i32 = 100;
/// Shortest time over which the rate is taken.
const LEAST_RATE_MEMORY: SignedDuration = SignedDuration::from_secs(30);
/// Warm-up times over which the rate is taken at least.
const WARM_UPS_PER_RATE: i32 = 10;

/// What the operator remembers of the claims on an autoscaled pool.
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
    /// The warm-up time with which `seen` was counted.
    pub seen_with: SignedDuration,
    /// Measured warm-up times.
    pub warm_up_times: WarmUpTimes,
    /// Sandboxes that were asked for within the last warm-up time.
    pub recent: SlidingWindow,
    /// How many were asked for within a warm-up time, as seen at each arrival.
    pub seen: Histogram,
    /// The rate of arrivals.
    pub rate: RecentRate,
    /// The highest needs of the last minutes.
    pub recent_needs: RecentNeeds,
    /// Claims that found a sandbox available, and those that did not.
    pub hits: HitCount,
    /// When the last claim arrived.
    pub last_arrival: Option<Timestamp>,
}

impl Default for Demand {
    fn default() -> Self {
        Self {
            size: 0,
            resized_at: None,
            shrunk_at: None,
            warm_up: DEFAULT_WARM_UP,
            seen_with: DEFAULT_WARM_UP,
            warm_up_times: WarmUpTimes::default(),
            recent: SlidingWindow::default(),
            seen: Histogram::default(),
            rate: RecentRate::default(),
            recent_needs: RecentNeeds::default(),
            hits: HitCount::default(),
            last_arrival: None,
        }
    }
}

impl Demand {
    /// Counts the arrival of a claim for `wanted` sandboxes at `at`. Returns the size with which it would find them
    /// available.
    pub fn arrive(&mut self, wanted: usize, at: Timestamp) -> usize {
        let asked_for = self.recent.arrive(at, wanted, self.warm_up);
        self.seen.add(asked_for, at, self.half_life());
        self.rate.add(wanted, at, self.rate_memory());
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

    /// Sandboxes that claims asked for in a second lately.
    pub fn arrivals_per_second(&self, now: Timestamp) -> f64 {
        self.rate.per_second(now, self.rate_memory())
    }

    /// Sandboxes that are asked for within a warm-up time on average, at the rate of the last half minute.
    pub fn arrivals_per_warm_up(&self, now: Timestamp) -> f64 {
        self.arrivals_per_second(now) * self.warm_up.as_secs_f64()
    }

    /// The share of recent claims that found a sandbox available; `None` before the first.
    pub fn hit_rate(&self) -> Option<f64> {
        self.hits.share()
    }
}
