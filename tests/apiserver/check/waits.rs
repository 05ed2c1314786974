//! Computes percentiles of waiting times.

use jiff::SignedDuration;
use std::fmt;

#[derive(Clone, Debug, Default)]
pub struct Waits(Vec<SignedDuration>);

impl Waits {
    pub fn add(&mut self, wait: SignedDuration) {
        self.0.push(wait);
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The shortest of them that `percent` of all do not exceed.
    pub fn percentile(&self, percent: usize) -> SignedDuration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100);
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }
}

impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p90, p99, max] = [50, 90, 99, 100].map(|percent| self.percentile(percent).as_millis());
        write!(f, "p50 {p50}, p90 {p90}, p99 {p99}, max {max} ms")
    }
}
