//! The policies that a claim chooses, or its pool for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens when no sandbox is available.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnEmpty {
    /// The operator creates a sandbox for the claim, in addition to the pool's `replicas`.
    #[default]
    Create,
    /// The claim waits for a sandbox that the pool creates to refill itself to `replicas`.
    Wait,
    /// The claim becomes Failed at once.
    Fail,
}

/// What happens to the sandboxes when a claim expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReleasePolicy {
    /// The sandboxes are deleted.
    #[default]
    Delete,
    /// The sandboxes remain until the claim is deleted.
    Retain,
}

/// What happens when a bound sandbox is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnSandboxLost {
    /// The claim becomes Failed.
    #[default]
    Fail,
    /// The claim gets another sandbox, before any newer claim of equal priority.
    Replace,
}

/// What happens when a sandbox of a claim is to be evicted, because its node is drained or for another reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Disruption {
    /// A PodDisruptionBudget blocks the eviction until the claim ends.
    #[default]
    Block,
    /// The sandbox may be evicted.
    Allow,
    /// When the node has to go, the claim and an annotation of the pod say so; after `disruptionGracePeriodSeconds` the
    /// sandbox may be evicted.
    Notify,
}

/// Which revisions of the pool's template a claim accepts. A claim without a policy of its own prefers the latest
/// revision; with the pool's strategy OnReplenish it takes old sandboxes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RevisionPolicy {
    /// Any revision; the update revision when such a sandbox is available.
    #[default]
    PreferLatest,
    /// Only the update revision; the claim waits for such a sandbox.
    Latest,
    /// Any revision, without preference.
    Any,
}
