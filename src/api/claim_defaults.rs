//! `claimDefaults` of a Pool.

use crate::api::claim_policy::{OnEmpty, OnSandboxLost, PodMetadata, ReleasePolicy, RevisionPolicy};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What holds for claims on the pool that leave the field of the same name out. A claim keeps what was the default when it
/// was bound first, or ended without that.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimDefaults {
    /// What happens when no sandbox is available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_empty: Option<OnEmpty>,
    /// Which revisions of the pool's template will do while a rollout is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_policy: Option<RevisionPolicy>,
    /// Claims of higher priority are served first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// A claim not bound after this many seconds becomes Failed with reason WaitTimeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 1").message("waitTimeoutSeconds must be 1 or more"))]
    pub wait_timeout_seconds: Option<i32>,
    /// Seconds after the binding when the claim expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 1").message("lifetimeSeconds must be 1 or more"))]
    pub lifetime_seconds: Option<i32>,
    /// Seconds after which a claim that has Failed or Expired is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 0").message("ttlSecondsAfterFinished must be 0 or more"))]
    pub ttl_seconds_after_finished: Option<i32>,
    /// What becomes of the sandboxes when the claim expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_policy: Option<ReleasePolicy>,
    /// What happens when a bound sandbox is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_sandbox_lost: Option<OnSandboxLost>,
    /// Labels and annotations added to claimed sandboxes, where the claim has no such key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_metadata: Option<PodMetadata>,
}

/// What a pool's `claimDefaults` said when a claim was bound first, or ended without that. What they said of `podMetadata`
/// is on its sandboxes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BoundDefaults {
    /// What happens when no sandbox is available in the place of a lost one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_empty: Option<OnEmpty>,
    /// Which revisions will do in the place of a lost sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_policy: Option<RevisionPolicy>,
    /// Claims of higher priority are served first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// A lost sandbox that is not replaced after this many seconds fails the claim with reason WaitTimeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_timeout_seconds: Option<i32>,
    /// Seconds after the binding when the claim expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetime_seconds: Option<i32>,
    /// Seconds after which a claim that has Failed or Expired is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i32>,
    /// What becomes of the sandboxes when the claim expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_policy: Option<ReleasePolicy>,
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
            on_sandbox_lost: defaults.on_sandbox_lost,
        }
    }
}
