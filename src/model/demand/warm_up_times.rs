//! How long sandboxes take from their creation until they are available, measured by the operator.

use jiff::{SignedDuration, Timestamp};
use smol_str::SmolStr;
use std::collections::{BTreeMap, VecDeque};

/// Most measured times that are kept.
const MOST_TIMES: usize = 32;
/// Most creations that are followed at one time.
const MOST_FOLLOWED: usize = 32;
/// Fewest times from which the time is taken.
const FEWEST_TIMES: usize = 3;
/// What counts until enough times were measured: a pod whose image is on the node takes about as long.
pub const DEFAULT_WARM_UP: SignedDuration = SignedDuration::from_secs(5);

/// The last warm-up times. The API has creation times in whole seconds, so the operator follows some of its creations
/// itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WarmUpTimes {
    times: VecDeque<SignedDuration>,
    /// Creations that are followed: names of pods, and when they were decided on.
    pub followed: BTreeMap<SmolStr, Timestamp>,
}

impl WarmUpTimes {
    /// Follows the creation of a pod that was decided on at `now`, unless enough are followed.
    pub fn follow(&mut self, pod: &SmolStr, now: Timestamp) {
        if self.can_follow() {
            self.followed.insert(pod.clone(), now);
        }
    }

    /// Whether more creations can be followed.
    pub fn can_follow(&self) -> bool {
        self.followed.len() < MOST_FOLLOWED
    }

    /// The pod is available at `now`.
    pub fn is_available(&mut self, pod: &str, now: Timestamp) {
        if let Some(created) = self.followed.remove(pod) {
            if self.times.len() == MOST_TIMES {
                self.times.pop_front();
            }
            self.times
                .push_back(now.duration_since(created).max(SignedDuration::ZERO));
        }
    }

    /// The time within which 9 of 10 sandboxes were available; `None` until enough were measured.
    pub fn measured(&self) -> Option<SignedDuration> {
        if self.times.len() < FEWEST_TIMES {
            return None;
        }
        let mut sorted: Vec<_> = self.times.iter().copied().collect();
        sorted.sort_unstable();
        let rank = (sorted.len() * 9).div_ceil(10);
        sorted.get(rank.saturating_sub(1)).copied()
    }
}
