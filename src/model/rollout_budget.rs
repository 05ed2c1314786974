//! What `maxUnavailable` and `maxSurge` allow: how many sandboxes a rollout or an eviction may have missing and extra.

use crate::model::resolved_pool_spec::ResolvedPoolSpec;

/// How many sandboxes a rollout or an eviction may have missing and extra at one time; never both 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolloutBudget {
    /// Sandboxes of `replicas` that may be unavailable.
    pub max_unavailable: usize,
    /// Sandboxes that may exist above `replicas`.
    pub max_surge: usize,
}

impl ResolvedPoolSpec {
    /// `maxUnavailable` and `maxSurge` as they count beside `claimed` sandboxes. Nothing could ever be replaced with
    /// both at 0, so they count as a surge of 1, which keeps even a pool of one available throughout. Where `maxTotal`
    /// leaves no capacity for the extra sandbox, `maxUnavailable` counts as 1.
    pub fn rollout_budget(&self, claimed: usize) -> RolloutBudget {
        let (max_unavailable, max_surge) = match (self.max_unavailable, self.max_surge) {
            (0, 0) if self.total_capacity_left(claimed) > self.replicas => (0, 1),
            (0, 0) => (1, 0),
            as_written => as_written,
        };
        RolloutBudget {
            max_unavailable,
            max_surge,
        }
    }

    /// The budget is not as written: a pool with no capacity for a surge replaces one sandbox at a time.
    pub fn replaces_without_surge(&self, claimed: usize) -> bool {
        self.rollout_budget(claimed).max_unavailable > self.max_unavailable
    }

    /// `maxUnavailable + maxSurge`: sandboxes of one revision that may warm up before one of them is available.
    pub fn rollout_width(&self) -> usize {
        (self.max_unavailable + self.max_surge).max(1)
    }

    /// Fewest sandboxes that a rollout or an eviction leaves available beside `claimed` ones:
    /// `replicas - maxUnavailable`. Where `maxTotal` leaves capacity for fewer than `replicas`, more than that might
    /// never be available and nothing would ever be replaced, so there one sandbox at a time may go, unless
    /// `maxUnavailable` is 0.
    pub fn min_available_beside(&self, claimed: usize) -> usize {
        let max_unavailable = self.rollout_budget(claimed).max_unavailable;
        let capacity = self.total_capacity_left(claimed);
        let least = self.replicas.saturating_sub(max_unavailable);
        if capacity < self.replicas {
            least.min(capacity.saturating_sub(max_unavailable.min(1)))
        } else {
            least
        }
    }
}
