//! When claims took sandboxes of a pool lately. A rollout needs to know how many of the sandboxes that are warming only
//! make up for those.

use jiff::{SignedDuration, Timestamp};
use std::collections::{HashMap, VecDeque};

/// How long a taking is remembered: longer than most sandboxes take to warm up.
pub const LATELY: SignedDuration = SignedDuration::from_secs(10);
/// Takings remembered of one pool at most.
const MOST: usize = 1_000;

/// Moments of takings, by UID of the pool, oldest first.
#[derive(Clone, Debug, Default)]
pub struct RecentClaims(HashMap<String, VecDeque<Timestamp>>);

impl RecentClaims {
    /// A claim takes a sandbox of the pool with UID `pool`.
    pub fn note(&mut self, pool: &str, now: Timestamp) {
        let moments = self.0.entry(pool.to_string()).or_default();
        moments.retain(|at| is_late(*at, now));
        moments.push_back(now);
        if moments.len() > MOST {
            moments.pop_front();
        }
    }

    /// The takings of the last while.
    pub fn lately(&self, pool: &str, now: Timestamp) -> Vec<Timestamp> {
        let moments = self.0.get(pool).into_iter().flatten();
        moments.copied().filter(|at| is_late(*at, now)).collect()
    }

    /// The pool with UID `pool` is gone.
    pub fn forget(&mut self, pool: &str) {
        self.0.remove(pool);
    }
}

fn is_late(at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(at) < LATELY
}
