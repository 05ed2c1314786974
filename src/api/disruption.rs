//! What a pool does when nodes are drained: its field `disruption`.

use crate::api::pool_defaults;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the pool does when its nodes are drained or its sandboxes are evicted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// Keeps a PodDisruptionBudget over the unclaimed sandboxes, so that `kubectl drain`, the descheduler and autoscalers
    /// evict no more of them than `updateStrategy.maxUnavailable` allows. A pool of which every sandbox may go has none. A
    /// PodDisruptionBudget of a user over the same sandboxes takes its place.
    #[serde(default = "pool_defaults::pod_disruption_budget")]
    pub pod_disruption_budget: bool,
}

impl Default for Disruption {
    fn default() -> Self {
        Self {
            pod_disruption_budget: pool_defaults::pod_disruption_budget(),
        }
    }
}
