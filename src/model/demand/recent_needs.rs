//! The highest needs of the last minutes, so that a pool shrinks only when a smaller size has been enough for a while.

use jiff::{SignedDuration, Timestamp};
use std::collections::VecDeque;

/// Parts of the stabilization window. What happened in a part is forgotten as a whole.
pub const PARTS: i32 = 8;

/// What the pool needed at most, in sandboxes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// Most sandboxes that were asked for within a warm-up time.
    pub peak: usize,
    /// Highest estimate from the claims of the last hours.
    pub long: usize,
    /// Highest estimate from the claims of the last seconds.
    pub fast: usize,
}

impl Need {
    fn raise(&mut self, other: Self) {
        self.peak = self.peak.max(other.peak);
        self.long = self.long.max(other.long);
        self.fast = self.fast.max(other.fast);
    }
}

/// The needs within a window that ends now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentNeeds {
    /// Each part with its beginning, oldest first.
    parts: VecDeque<(Timestamp, Need)>,
}

impl RecentNeeds {
    /// Notes a need at `now`.
    pub fn note(&mut self, need: Need, now: Timestamp, window: SignedDuration) {
        match self.parts.back_mut() {
            Some((began, part)) if now.duration_since(*began).saturating_mul(PARTS) < window => {
                part.raise(need);
            }
            _ => self.parts.push_back((now, need)),
        }
        self.forget(now, window);
    }

    /// Drops the parts that ended before the window.
    pub fn forget(&mut self, now: Timestamp, window: SignedDuration) {
        while self.first_end(window).is_some_and(|end| end <= now) {
            self.parts.pop_front();
        }
    }

    /// The highest needs within the window.
    pub fn highest(&self) -> Need {
        let mut highest = Need::default();
        self.parts.iter().for_each(|(_, part)| highest.raise(*part));
        highest
    }

    /// When the oldest part leaves the window.
    pub fn first_end(&self, window: SignedDuration) -> Option<Timestamp> {
        let (began, _) = self.parts.front()?;
        let part = window.checked_div(PARTS).unwrap_or_default();
        began.checked_add(window.saturating_add(part)).ok()
    }
}
