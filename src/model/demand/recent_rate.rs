//! The rate at which claims ask for sandboxes, over about the last half minute.

use jiff::{SignedDuration, Timestamp};

/// A count that decays with time, as a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecentRate {
    /// Sandboxes, each weighing less the longer ago it was requested.
    weight: f64,
    /// When the first counted.
    began: Option<Timestamp>,
    /// When `weight` was right.
    at: Option<Timestamp>,
}

impl RecentRate {
    /// A rate per second that was known at `now`.
    pub fn known(per_second: f64, now: Timestamp, memory: SignedDuration) -> Self {
        Self {
            weight: per_second * memory.as_secs_f64(),
            began: now.checked_sub(memory.saturating_mul(10)).ok(),
            at: Some(now),
        }
    }

    /// Counts `count` sandboxes at `now`.
    pub fn add(&mut self, count: usize, now: Timestamp, memory: SignedDuration) {
        self.weight = self.weight_at(now, memory) + count as f64;
        self.began.get_or_insert(now);
        self.at = Some(now);
    }

    /// Sandboxes per second at `now`; those more than `memory` ago hardly count.
    pub fn per_second(&self, now: Timestamp, memory: SignedDuration) -> f64 {
        let seconds = memory.as_secs_f64();
        let counted = self
            .began
            .map_or(0.0, |began| now.duration_since(began).as_secs_f64());
        // A count that began a moment ago does not show a rate yet, so at least a tenth of `memory` is assumed.
        let share = 1.0 - (-counted.max(seconds / 10.0) / seconds).exp();
        self.weight_at(now, memory) / (seconds * share)
    }

    fn weight_at(&self, now: Timestamp, memory: SignedDuration) -> f64 {
        let passed = self.at.map_or(0.0, |at| now.duration_since(at).as_secs_f64());
        self.weight * (-passed.max(0.0) / memory.as_secs_f64()).exp()
    }
}
