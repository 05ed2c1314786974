//! `spec.disruption` of a pool: what happens to its unclaimed sandboxes when their node has to go.

use crate::api::pool_defaults;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens to the unclaimed sandboxes of a node that is drained, cordoned, tainted or about to be deleted.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// Wait creates the replacement of an available sandbox elsewhere first, and deletes the sandbox when the
    /// replacement is available. Break deletes the sandboxes of the node at once, within no budget.
    #[serde(default)]
    pub drain_policy: DrainPolicy,
    /// Seconds that `drainPolicy` Wait waits for replacements. After that the sandboxes of the node are deleted within
    /// no budget, so that no drain waits for ever.
    #[serde(default = "pool_defaults::drain_deadline_seconds")]
    #[x_kube(validation = kube::core::Rule::new("self >= 1").message("disruption.drainDeadlineSeconds must be 1 or more"))]
    pub drain_deadline_seconds: i32,
    /// Keeps a PodDisruptionBudget over the unclaimed sandboxes, so that `kubectl drain`, the descheduler and
    /// autoscalers evict no more of them than `updateStrategy.maxUnavailable` allows. A pool of which every sandbox may
    /// go has none. A PodDisruptionBudget of a user over the same sandboxes takes its place.
    #[serde(default = "pool_defaults::pod_disruption_budget")]
    pub pod_disruption_budget: bool,
}

impl Default for Disruption {
    fn default() -> Self {
        Self {
            drain_policy: DrainPolicy::default(),
            drain_deadline_seconds: pool_defaults::drain_deadline_seconds(),
            pod_disruption_budget: pool_defaults::pod_disruption_budget(),
        }
    }
}

/// Whether an available sandbox on a leaving node waits for its replacement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DrainPolicy {
    /// It is deleted when its replacement is available.
    #[default]
    Wait,
    /// It is deleted at once.
    Break,
}
