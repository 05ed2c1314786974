//! Defaults for claims: as a pool sets them, and as a claim keeps them.

use crate::api::claim_policies::{Disruption, OnEmpty, OnSandboxLost, ReleasePolicy, RevisionPolicy};
use crate::api::pod_metadata::PodMetadata;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Defaults for claims that omit the field of the same name. A claim keeps the defaults of the time of its first
/// binding, or of its end if it was never bound.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimDefaults {
    /// What happens when no sandbox is available. Default: Create.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_empty: Option<OnEmpty>,
    /// Which revisions of the pool's template are acceptable during a rollout. Default: PreferLatest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_policy: Option<RevisionPolicy>,
    /// Claims with a higher priority are served first. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    // Kubernetes 1.30 does not know the format int32.
    #[schemars(range(min = -2_147_483_648))]
    pub priority: Option<i32>,
    /// Seconds until a claim that is not bound becomes Failed with reason WaitTimeout. Default: 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 1").message("waitTimeoutSeconds must be 1 or more"))]
    pub wait_timeout_seconds: Option<i32>,
    /// Seconds from the binding until the claim expires. Default: it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 1").message("lifetimeSeconds must be 1 or more"))]
    pub lifetime_seconds: Option<i32>,
    /// Seconds until a Failed or Expired claim is deleted. Default: it is not deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 0").message("ttlSecondsAfterFinished must be 0 or more"))]
    pub ttl_seconds_after_finished: Option<i32>,
    /// What happens to the sandboxes when the claim expires. Default: Delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_policy: Option<ReleasePolicy>,
    /// What happens when a bound sandbox is to be evicted. Default: Block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disruption: Option<Disruption>,
    /// With `disruption: Notify`, seconds from the first sign that a node has to go until its sandbox may be
    /// evicted. Default: 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 1").message("disruptionGracePeriodSeconds must be 1 or more"))]
    pub disruption_grace_period_seconds: Option<i32>,
    /// What happens when a bound sandbox is lost. Default: Fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_sandbox_lost: Option<OnSandboxLost>,
    /// Labels and annotations added to claimed sandboxes, unless the claim sets the same key. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_metadata: Option<PodMetadata>,
}

/// A pool's `claimDefaults` at the time of a claim's first binding, or at the end of a claim that was never bound.
/// Without `podMetadata`, which is on the sandboxes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BoundDefaults {
    /// What happens when no sandbox is available to replace a lost sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_empty: Option<OnEmpty>,
    /// Which revisions are acceptable for the replacement of a lost sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_policy: Option<RevisionPolicy>,
    /// Claims with a higher priority are served first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Seconds until a claim with a lost sandbox that is not replaced becomes Failed with reason WaitTimeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_timeout_seconds: Option<i32>,
    /// Seconds from the binding until the claim expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetime_seconds: Option<i32>,
    /// Seconds until a Failed or Expired claim is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i32>,
    /// What happens to the sandboxes when the claim expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_policy: Option<ReleasePolicy>,
    /// What happens when a bound sandbox is to be evicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disruption: Option<Disruption>,
    /// With `disruption: Notify`, seconds from the first sign that a node has to go until its sandbox may be evicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disruption_grace_period_seconds: Option<i32>,
    /// What happens when a bound sandbox is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_sandbox_lost: Option<OnSandboxLost>,
}

impl From<&ClaimDefaults> for BoundDefaults {
    fn from(defaults: &ClaimDefaults) -> Self {
        Self {
            on_empty: defaults.on_empty,
            revision_policy: defaults.revision_policy,
            priority: defaults.priority,
            wait_timeout_seconds: defaults.wait_timeout_seconds,
            lifetime_seconds: defaults.lifetime_seconds,
            ttl_seconds_after_finished: defaults.ttl_seconds_after_finished,
            release_policy: defaults.release_policy,
            disruption: defaults.disruption,
            disruption_grace_period_seconds: defaults.disruption_grace_period_seconds,
            on_sandbox_lost: defaults.on_sandbox_lost,
        }
    }
}
