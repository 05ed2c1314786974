//! The sizes that arrivals would have needed, and how many sandboxes would have been idle.

use crate::cli::kubectl::size::arrivals::Arrival;
use jiff::{SignedDuration, Timestamp};
use std::collections::VecDeque;

/// What arrivals would have needed with a warm-up time.
pub struct Needed {
    /// For each arrival the sandboxes that were requested within the warm-up time, its own included; sorted.
    seen: Vec<usize>,
    /// How many seconds how many sandboxes were warming up, for as long as the arrivals lasted.
    warming: Vec<(usize, f64)>,
    /// Seconds from the first to the last arrival.
    seconds: f64,
    sandboxes: usize,
}

impl Needed {
    /// Counts arrivals, which are sorted by time.
    pub fn of(arrivals: &[Arrival], warm_up: SignedDuration) -> Self {
        let mut needed = Self {
            seen: Vec::with_capacity(arrivals.len()),
            warming: Vec::new(),
            seconds: 0.0,
            sandboxes: 0,
        };
        let mut recent: VecDeque<(Timestamp, usize)> = VecDeque::new();
        let (mut total, mut before) = (0, arrivals.first().map(|arrival| arrival.at));
        for arrival in arrivals {
            while let Some((ready, count)) = recent
                .front()
                .copied()
                .and_then(|(at, count)| Some((at.checked_add(warm_up).ok()?, count)))
                .filter(|(ready, _)| *ready <= arrival.at)
            {
                needed.pass(before.replace(ready), ready, total);
                total -= count;
                recent.pop_front();
            }
            needed.pass(before.replace(arrival.at), arrival.at, total);
            total += arrival.count;
            recent.push_back((arrival.at, arrival.count));
            needed.seen.push(total);
            needed.sandboxes += arrival.count;
        }
        needed.seen.sort_unstable();
        needed
    }

    fn pass(&mut self, from: Option<Timestamp>, to: Timestamp, warming: usize) {
        let seconds = from.map_or(0.0, |from| to.duration_since(from).as_secs_f64());
        self.seconds += seconds;
        self.warming.push((warming, seconds));
    }

    /// The least size with which this share of the claims finds a sandbox available.
    pub fn size(&self, share: f64) -> usize {
        let rank = (self.seen.len() as f64 * share).ceil() as usize;
        self.seen.get(rank.max(1) - 1).copied().unwrap_or_default()
    }

    /// The mean number of available sandboxes of a pool of this size.
    pub fn idle(&self, size: usize) -> f64 {
        let available = self
            .warming
            .iter()
            .map(|(warming, seconds)| size.saturating_sub(*warming) as f64 * seconds);
        if self.seconds > 0.0 {
            available.sum::<f64>() / self.seconds
        } else {
            size as f64
        }
    }

    /// Sandboxes that were requested in an hour on average.
    pub fn per_hour(&self) -> f64 {
        if self.seconds > 0.0 {
            self.sandboxes as f64 / self.seconds * 3600.0
        } else {
            0.0
        }
    }

    /// How many claims arrived.
    pub fn claims(&self) -> usize {
        self.seen.len()
    }

    /// Hours from the first to the last arrival.
    pub fn hours(&self) -> f64 {
        self.seconds / 3600.0
    }
}
