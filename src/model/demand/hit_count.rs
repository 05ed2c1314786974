//! How many claims found a sandbox available, recent claims weighing more than old ones.

use jiff::{SignedDuration, Timestamp};

/// Claims that found a sandbox available and those that did not, with weights that decay by time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HitCount {
    hits: f64,
    claims: f64,
    decayed_at: Option<Timestamp>,
}

impl HitCount {
    /// This many claims, of which a `share` found a sandbox available.
    pub fn known(claims: f64, share: f64) -> Self {
        Self {
            hits: claims * share,
            claims,
            decayed_at: None,
        }
    }

    /// Counts a claim at `now`. The weight of older ones halves with each `half_life`.
    pub fn add(&mut self, is_hit: bool, now: Timestamp, half_life: SignedDuration) {
        let since = self.decayed_at.replace(now).unwrap_or(now);
        let passed = now.duration_since(since).max(SignedDuration::ZERO);
        if !passed.is_zero() {
            let factor = (-passed.as_secs_f64() / half_life.as_secs_f64()).exp2();
            self.hits *= factor;
            self.claims *= factor;
        }
        self.hits += if is_hit { 1.0 } else { 0.0 };
        self.claims += 1.0;
    }

    /// The share of claims that found a sandbox available; `None` before the first.
    pub fn share(&self) -> Option<f64> {
        (self.claims >= 0.5).then(|| self.hits / self.claims)
    }
}
