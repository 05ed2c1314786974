//! The highest needs of the last minutes, so that a pool shrinks only when a smaller size has been enough for a while.

use jiff::{SignedDuration, Timestamp};
use std::collections::VecDeque;

/// Parts of the stabilization window. What happened in a part is forgotten as a whole.
pub const PARTS: i32 = 8;

/// What the pool needed at most, in sandboxes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// Most sandboxes that were requested within a warm-up time.
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
    /// Oldest first.
    parts: VecDeque<Part>,
}

/// A part of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    began: Timestamp,
    /// When its last need was noted.
    last: Timestamp,
    highest: Need,
}

impl RecentNeeds {
    /// Notes a need at `now`.
    pub fn note(&mut self, need: Need, now: Timestamp, window: SignedDuration) {
        match self.parts.back_mut() {
            Some(part) if now.duration_since(part.began).saturating_mul(PARTS) < window => {
                part.last = part.last.max(now);
                part.highest.raise(need);
            }
            _ => self.parts.push_back(Part {
                began: now,
                last: now,
                highest: need,
            }),
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
        self.parts.iter().for_each(|part| highest.raise(part.highest));
        highest
    }

    /// When the oldest part leaves the window. The window may have been longer, and so its parts, when the last need of
    /// that part was noted: a whole window counts from there all the same.
    pub fn first_end(&self, window: SignedDuration) -> Option<Timestamp> {
        let first = self.parts.front()?;
        let part = window.checked_div(PARTS).unwrap_or_default();
        let end = first.began.checked_add(window.saturating_add(part)).ok()?;
        Some(end.max(first.last.checked_add(window).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use crate::model::demand::recent_needs::{Need, RecentNeeds};
    use jiff::{SignedDuration, Timestamp};

    #[test]
    fn a_need_counts_for_a_whole_window_though_the_window_was_longer_when_it_was_noted() {
        let (mut needs, begin) = (RecentNeeds::default(), Timestamp::UNIX_EPOCH);
        let at = |seconds| begin + SignedDuration::from_secs(seconds);
        let (long, short) = (SignedDuration::from_secs(800), SignedDuration::from_secs(60));
        let need = |peak| Need {
            peak,
            ..Need::default()
        };
        needs.note(need(1), at(0), long);
        needs.note(need(7), at(90), long);
        needs.forget(at(149), short);
        assert_eq!(needs.highest().peak, 7, "I8: it is forgotten after 59 s");
        needs.forget(at(150), short);
        assert_eq!(needs.highest().peak, 0);
    }
}
