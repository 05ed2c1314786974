//! The kind `SandboxClaim`: its spec, status and validation rules.

use crate::api::claim_defaults::BoundDefaults;
pub use crate::api::claim_policies::{Disruption, OnEmpty, OnSandboxLost, ReleasePolicy, RevisionPolicy};
pub use crate::api::pod_metadata::PodMetadata;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A SandboxClaim takes warm sandboxes from a pool and keeps them until it is deleted or expires.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "warmpool.dev",
    version = "v1alpha1",
    kind = "SandboxClaim",
    plural = "sandboxclaims",
    shortname = "sbc",
    category = "warmpool",
    namespaced,
    status = "SandboxClaimStatus",
    derive = "PartialEq",
    doc = "SandboxClaim takes one or more warm sandboxes from a Pool and keeps them until it is deleted or expires. Wait for it with `kubectl wait --for=condition=Ready`.",
    printcolumn(name = "Pool", type_ = "string", json_path = ".status.pool"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.ready"),
    printcolumn(name = "Sandbox", type_ = "string", json_path = ".status.sandboxes[0].name"),
    printcolumn(name = "IP", type_ = "string", json_path = ".status.sandboxes[0].ip"),
    printcolumn(name = "Wait", type_ = "string", json_path = ".status.wait"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.reason"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.sandboxes[0].node", priority = 1),
    printcolumn(name = "Sandboxes", type_ = "string", json_path = ".status.sandboxNames", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].message", priority = 1),
    validation = kube::core::Rule::new("self.metadata.name.size() <= 63")
        .message("metadata.name must be at most 63 characters, because it becomes the value of a pod label")
        .field_path(".metadata.name"),
    validation = kube::core::Rule::new("has(self.spec.poolRef) != has(self.spec.poolSelector)")
        .message("spec must hold exactly one of poolRef and poolSelector")
        .field_path(".spec"),
    validation = kube::core::Rule::new("!has(self.spec.lifetimeSeconds) || !has(self.spec.shutdownTime)")
        .message("spec must hold at most one of lifetimeSeconds and shutdownTime")
        .field_path(".spec.shutdownTime"),
    validation = kube::core::Rule::new("(has(self.spec.replicas) ? self.spec.replicas : 1) == (has(oldSelf.spec.replicas) ? oldSelf.spec.replicas : 1)")
        .message("spec.replicas is immutable; delete the claim and create a new one")
        .field_path(".spec.replicas"),
    validation = kube::core::Rule::new(immutable_once_bound())
        .message("spec is immutable once the claim is bound, except for lifetimeSeconds, shutdownTime and ttlSecondsAfterFinished; delete the claim and create a new one")
        .field_path(".spec")
)]
#[serde(rename_all = "camelCase")]
pub struct SandboxClaimSpec {
    /// The pool to take sandboxes from, in the namespace of the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_ref: Option<PoolRef>,
    /// Selects pools in the namespace of the claim by their labels. The claim takes sandboxes from the selected pool
    /// with the most available sandboxes of an acceptable revision, where sandboxes that stay on their nodes count
    /// before sandboxes that leave them; if pools are equal, from the pool for which it already waits, else from the
    /// first by name. While the claim waits, the first selected pool that can serve it does. `status.pool` names the
    /// pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_selector: Option<PoolSelector>,
    /// Number of sandboxes. All come from one pool, and they are bound all together or not at all. Immutable.
    #[serde(default = "one")]
    #[x_kube(
        validation = kube::core::Rule::new("self >= 1 && self <= 1000").message("replicas must be from 1 to 1000")
    )]
    pub replicas: i32,
    /// What happens when no sandbox is available: Create, Wait or Fail. Default: the pool's `claimDefaults`, else
    /// Create.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_empty: Option<OnEmpty>,
    /// Which revisions of the pool's template are acceptable during a rollout: PreferLatest, Latest or Any. Default:
    /// the pool's `claimDefaults`, else PreferLatest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_policy: Option<RevisionPolicy>,
    /// Claims with a higher priority are served first; claims with equal priority by age, oldest first. Default: the
    /// pool's `claimDefaults`, else 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    // Kubernetes 1.30 does not know the format int32.
    #[schemars(range(min = -2_147_483_648))]
    pub priority: Option<i32>,
    /// Seconds until a claim that is not bound becomes Failed with reason WaitTimeout. Default: the pool's
    /// `claimDefaults`, else 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 1").message("waitTimeoutSeconds must be 1 or more"))]
    pub wait_timeout_seconds: Option<i32>,
    /// Seconds from the binding until the claim expires. Can be changed while the claim is bound. Default: the pool's
    /// `claimDefaults` at the time of the binding, else the claim does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 1").message("lifetimeSeconds must be 1 or more"))]
    pub lifetime_seconds: Option<i32>,
    /// Time at which the claim expires, bound or not. Can be changed while the claim is bound. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = kube::core::Rule::new("self < timestamp('9999-12-30T00:00:00Z')")
            .message("shutdownTime must be before 9999-12-30T00:00:00Z; leave it out for a claim that never expires")
    )]
    pub shutdown_time: Option<Time>,
    /// Seconds until a Failed or Expired claim is deleted. Default: the pool's `claimDefaults`, else the claim is not
    /// deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 0").message("ttlSecondsAfterFinished must be 0 or more"))]
    pub ttl_seconds_after_finished: Option<i32>,
    /// What happens to the sandboxes when the claim expires: Delete or Retain. Default: the pool's `claimDefaults`,
    /// else Delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_policy: Option<ReleasePolicy>,
    /// What happens when a bound sandbox is to be evicted, because its node is drained or for another reason: Block,
    /// Allow or Notify. Default: the pool's `claimDefaults`, else Block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disruption: Option<Disruption>,
    /// With `disruption: Notify`, seconds from the first sign that the node has to go until the sandbox may be evicted.
    /// Default: the pool's `claimDefaults`, else 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 1").message("disruptionGracePeriodSeconds must be 1 or more"))]
    pub disruption_grace_period_seconds: Option<i32>,
    /// What happens when a bound sandbox is deleted, fails or loses its node: Fail or Replace. Default: the pool's
    /// `claimDefaults`, else Fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_sandbox_lost: Option<OnSandboxLost>,
    /// Labels and annotations added to each sandbox in the same write that binds it. Keys that only the pool's
    /// `claimDefaults` have are added, too. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_metadata: Option<PodMetadata>,
}

/// The CEL rule that makes these fields of the spec immutable after the first binding, also while the claim waits for
/// a replacement and after it has ended. A field that is absent before and after is unchanged. `status.waitSeconds`
/// is set by the first binding and never removed.
fn immutable_once_bound() -> String {
    let fields = [
        "poolRef",
        "poolSelector",
        "onEmpty",
        "revisionPolicy",
        "priority",
        "waitTimeoutSeconds",
        "releasePolicy",
        "disruption",
        "disruptionGracePeriodSeconds",
        "onSandboxLost",
        "podMetadata",
    ];
    let same = fields.map(|field| {
        let (new, old) = (format!("self.spec.{field}"), format!("oldSelf.spec.{field}"));
        format!("has({new}) == has({old}) && (!has({new}) || {new} == {old})")
    });
    let was_bound = "has(oldSelf.status) && has(oldSelf.status.waitSeconds)";
    format!("!({was_bound}) || ({})", same.join(" && "))
}

/// Selects pools in the namespace of the claim by their labels.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolSelector {
    /// Labels and values that a pool must have.
    #[schemars(extend("maxProperties" = 16))]
    #[x_kube(validation = kube::core::Rule::new("self.size() >= 1").message("poolSelector.matchLabels must hold at least one label"))]
    pub match_labels: BTreeMap<String, String>,
}

/// Reference to a pool in the same namespace.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoolRef {
    /// Name of the pool.
    #[schemars(length(max = 253))]
    #[x_kube(validation = kube::core::Rule::new("self.size() >= 1").message("poolRef.name must name a pool"))]
    pub name: String,
}

/// Phase of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// The claim waits for its sandboxes.
    #[default]
    Pending,
    /// The claim has all its sandboxes.
    Bound,
    /// The claim was not bound, or it lost a sandbox; the conditions say why.
    Failed,
    /// The lifetime of the claim has ended.
    Expired,
}

/// Observed state of a claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SandboxClaimStatus {
    /// Phase of the claim: Pending, Bound, Failed or Expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The `metadata.generation` that this status describes.
    pub observed_generation: i64,
    /// The pool that serves the claim.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pool: String,
    /// Ready sandboxes and wanted sandboxes, such as `3/3`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ready: String,
    /// Why the claim is not Ready: the reason of the condition Bound, or of Ready once it is bound. Absent while it is
    /// Ready.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Conditions: Bound, Ready, and DisruptionPending while a sandbox cannot stay on its node.
    pub conditions: Vec<Condition>,
    /// The sandboxes of the claim.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sandboxes: Vec<BoundSandbox>,
    /// Names of the sandboxes, joined by commas, of a claim that has several. A column of a table shows a single value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sandbox_names: String,
    /// Seconds from the creation of the claim to its first binding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<f64>,
    /// `waitSeconds` in short form, such as `12ms`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub wait: String,
    /// Time of the first binding. The replacement of a lost sandbox does not change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_time: Option<Time>,
    /// Time at which the claim expires. Absent when it does not expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration_time: Option<Time>,
    /// Time at which the claim became Failed or Expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_time: Option<Time>,
    /// The pool's `claimDefaults` at the time of the first binding, or at the end of a claim that was never bound. They
    /// apply from then on, even if the pool changes or is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defaults: Option<BoundDefaults>,
}

/// A sandbox of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BoundSandbox {
    /// Name of the pod.
    pub name: String,
    /// UID of the pod.
    pub uid: String,
    /// IP address of the pod. Absent once the pod of a Failed or Expired claim has ended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ip: String,
    /// Name of the node of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// Revision of the pod's template.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// Time at which the sandbox was bound.
    pub bound_time: Time,
    /// True when the sandbox was already available when the claim was created.
    #[serde(default)]
    pub warm: bool,
}

fn one() -> i32 {
    1
}
