//! Computes how long the claims of a load waited, and which ones a later one passed.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How the claims of a load were served.
#[derive(Default)]
pub struct Served {
    /// Time from the moment at which each claim was meant to arrive until the watch shows it Ready, sorted.
    pub latencies: Vec<Duration>,
    /// Claims whose sandbox was not Ready before the claim's creation.
    pub cold: usize,
    /// Claims that became Ready after a claim created later.
    pub passed: usize,
    /// Longest time between the later claim and the passed claim becoming Ready.
    pub passed_by: Duration,
}

impl Served {
    /// `due` holds when each claim was meant to arrive, `ready` when the watch showed it Ready, and `order` the names of
    /// all in the order of creation. `cold` counts the claims whose sandbox was not Ready before.
    pub fn new(
        due: &HashMap<String, Instant>,
        ready: &HashMap<String, Instant>,
        order: &[String],
        cold: usize,
    ) -> Self {
        let waited = |(name, due): (&String, &Instant)| Some(ready.get(name)?.duration_since(*due));
        let mut latencies: Vec<Duration> = due.iter().filter_map(waited).collect();
        latencies.sort_unstable();
        let (passed, passed_by) = passed(order.iter().filter_map(|name| ready.get(name)));
        Self {
            latencies,
            cold,
            passed,
            passed_by,
        }
    }
}

/// Counts the claims that became Ready after a later claim, and the longest such delay. `ready` is in the order of creation.
fn passed<'a>(ready: impl DoubleEndedIterator<Item = &'a Instant>) -> (usize, Duration) {
    let (mut count, mut most, mut first_of_later) = (0, Duration::ZERO, None);
    for at in ready.rev() {
        if let Some(later) = first_of_later.filter(|later| at > *later) {
            count += 1;
            most = most.max(at.duration_since(*later));
        }
        first_of_later = Some(first_of_later.map_or(at, |later: &Instant| later.min(at)));
    }
    (count, most)
}
