//! How many sandboxes claims requested within the last moments.

use jiff::{SignedDuration, Timestamp};
use std::collections::VecDeque;

/// Arrivals within this part of the window are kept as one.
const PARTS: i64 = 64;
/// Most entries: the two oldest become one before there are more.
const MOST: usize = 128;

/// Arrivals within a window that ends now. Arrivals that are kept as one leave the window together with the last of
/// them, so the count is never too low. It takes 3 KiB at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlidingWindow {
    arrivals: VecDeque<Arrivals>,
    /// The sum of all counts.
    total: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrivals {
    /// Microseconds since the Unix epoch: half the memory of a [`Timestamp`].
    first: i64,
    /// Microseconds since the Unix epoch.
    last: i64,
    count: u32,
}

impl SlidingWindow {
    /// Notes that `count` sandboxes were requested at `at`. Returns how many were within the window of this length that
    /// ends then, these included.
    pub fn arrive(&mut self, at: Timestamp, count: usize, length: SignedDuration) -> usize {
        // First, so that entries that have left the window make space for the new one.
        self.forget(at, length);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let (micros, part) = (at.as_microsecond(), micros(length) / PARTS);
        match self.arrivals.back_mut() {
            Some(back) if micros.saturating_sub(back.first) <= part => {
                back.last = back.last.max(micros);
                back.count = back.count.saturating_add(count);
            }
            _ => {
                if self.arrivals.len() == MOST {
                    self.merge_oldest();
                }
                self.arrivals.push_back(Arrivals {
                    first: micros,
                    last: micros,
                    count,
                });
            }
        }
        self.total = self.total.saturating_add(count as usize);
        self.total
    }

    fn merge_oldest(&mut self) {
        if let Some(oldest) = self.arrivals.pop_front()
            && let Some(next) = self.arrivals.front_mut()
        {
            next.count = next.count.saturating_add(oldest.count);
        }
    }

    /// How many sandboxes were requested within the window of this length that ends at `now`.
    pub fn count(&self, now: Timestamp, length: SignedDuration) -> usize {
        let gone = self
            .arrivals
            .iter()
            .take_while(|arrivals| has_left(arrivals, now, length));
        self.total - gone.map(|arrivals| arrivals.count as usize).sum::<usize>()
    }

    fn forget(&mut self, now: Timestamp, length: SignedDuration) {
        while let Some(oldest) = self
            .arrivals
            .front()
            .filter(|oldest| has_left(oldest, now, length))
        {
            self.total = self.total.saturating_sub(oldest.count as usize);
            self.arrivals.pop_front();
        }
    }
}

fn has_left(arrivals: &Arrivals, now: Timestamp, length: SignedDuration) -> bool {
    now.as_microsecond().saturating_sub(arrivals.last) >= micros(length)
}

fn micros(length: SignedDuration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}
