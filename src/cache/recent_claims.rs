//! When claims took sandboxes of a pool within the last seconds.

use jiff::{SignedDuration, Timestamp};
use std::collections::VecDeque;

/// How long a taken sandbox is remembered: longer than most sandboxes take to warm up.
pub const LATELY: SignedDuration = SignedDuration::from_secs(10);
/// Most moments remembered of one pool.
const MOST: usize = 1_000;

/// Moments at which claims took sandboxes of one pool, oldest first. A rollout needs to know how many of the warming
/// sandboxes only make up for those.
#[derive(Clone, Debug, Default)]
pub struct RecentClaims(VecDeque<Timestamp>);

impl RecentClaims {
    /// A claim takes a sandbox.
    pub fn note(&mut self, now: Timestamp) {
        self.0.retain(|at| is_recent(*at, now));
        self.0.push_back(now);
        if self.0.len() > MOST {
            self.0.pop_front();
        }
    }

    /// The moments within [`LATELY`] before `now`.
    pub fn lately(&self, now: Timestamp) -> Vec<Timestamp> {
        self.0.iter().copied().filter(|at| is_recent(*at, now)).collect()
    }

    /// Whether a claim took a sandbox after `moment`.
    pub fn any_since(&self, moment: Timestamp) -> bool {
        self.0.back().is_some_and(|at| *at > moment)
    }
}

fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(at) < LATELY
}
