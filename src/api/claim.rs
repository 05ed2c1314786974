//! The `SandboxClaim`: one sandbox or several, for as long as the claim lives.

use crate::api::claim_defaults::BoundDefaults;
pub use crate::api::claim_policy::{OnEmpty, OnSandboxLost, PodMetadata, ReleasePolicy, RevisionPolicy};
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
    printcolumn(name = "Sandbox", type_ = "string", json_path = ".status.sandboxes[0].name"),
    printcolumn(name = "IP", type_ = "string", json_path = ".status.sandboxes[0].ip"),
    printcolumn(name = "Wait", type_ = "string", json_path = ".status.wait"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = kube::core::Rule::new("self.metadata.name.size() <= 63")
        .message("metadata.name must be at most 63 characters, because it becomes the value of a pod label"),
    validation = kube::core::Rule::new("has(self.spec.poolRef) != has(self.spec.poolSelector)")
        .message("spec must hold exactly one of poolRef and poolSelector"),
    validation = kube::core::Rule::new("!has(self.spec.lifetimeSeconds) || !has(self.spec.shutdownTime)")
        .message("spec must hold at most one of lifetimeSeconds and shutdownTime"),
    validation = kube::core::Rule::new("(has(self.spec.replicas) ? self.spec.replicas : 1) == (has(oldSelf.spec.replicas) ? oldSelf.spec.replicas : 1)")
        .message("spec.replicas is immutable; delete the claim and create a new one"),
    validation = kube::core::Rule::new(immutable_once_bound())
        .message("spec is immutable once the claim is bound, but for lifetimeSeconds, shutdownTime and ttlSecondsAfterFinished; delete the claim and create a new one")
)]
#[serde(rename_all = "camelCase")]
pub struct SandboxClaimSpec {
    /// The pool, in the namespace of the claim, to take from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_ref: Option<PoolRef>,
    /// Takes from the pool with these labels that has the most available sandboxes that will do (among equals from the one
    /// that it waits for already, or else by name). While the claim waits, whichever of them can serve it first does;
    /// `status.pool` says which did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_selector: Option<PoolSelector>,
    /// Sandboxes wanted. They come from one pool and are bound all together or not at all. Immutable.
    #[serde(default = "one")]
    #[x_kube(
        validation = kube::core::Rule::new("self >= 1 && self <= 1000").message("replicas must be from 1 to 1000")
    )]
    pub replicas: i32,
    /// What happens when no sandbox is available. Default: the pool's `claimDefaults`, else Create.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_empty: Option<OnEmpty>,
    /// Which revisions of the pool's template will do while a rollout is under way. Default: the pool's
    /// `claimDefaults`, else PreferLatest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_policy: Option<RevisionPolicy>,
    /// Claims of higher priority are served first; among equals the oldest first. Default: the pool's
    /// `claimDefaults`, else 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// A claim not bound after this many seconds becomes Failed with reason WaitTimeout. Default: the pool's
    /// `claimDefaults`, else 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 1").message("waitTimeoutSeconds must be 1 or more"))]
    pub wait_timeout_seconds: Option<i32>,
    /// Seconds after the binding when the claim expires. May be changed while it is bound. Default: the pool's
    /// `claimDefaults` at the binding, else never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 1").message("lifetimeSeconds must be 1 or more"))]
    pub lifetime_seconds: Option<i32>,
    /// The moment when the claim expires, bound or not. May be changed while it is bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = kube::core::Rule::new("self < timestamp('9999-12-30T00:00:00Z')")
            .message("shutdownTime must be before 9999-12-30T00:00:00Z; leave it out for a claim that never expires")
    )]
    pub shutdown_time: Option<Time>,
    /// Seconds after which a claim that has Failed or Expired is deleted. Default: the pool's `claimDefaults`, else
    /// never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = kube::core::Rule::new("self >= 0").message("ttlSecondsAfterFinished must be 0 or more"))]
    pub ttl_seconds_after_finished: Option<i32>,
    /// What becomes of the sandboxes when the claim expires. Default: the pool's `claimDefaults`, else Delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_policy: Option<ReleasePolicy>,
    /// What happens when a bound sandbox is deleted, fails, or loses its node. Default: the pool's
    /// `claimDefaults`, else Fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_sandbox_lost: Option<OnSandboxLost>,
    /// Labels and annotations added to the sandbox in the same write that binds it. Those of the pool's
    /// `claimDefaults` are added too, where the claim has no such key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_metadata: Option<PodMetadata>,
}

/// Once a claim was bound, these fields of its spec stay as they are, also while it waits for what it has lost to be
/// replaced and after its end; one that is absent before and after is the same. `waitSeconds` comes with the first
/// binding and stays.
fn immutable_once_bound() -> String {
    let fields = [
        "poolRef",
        "poolSelector",
        "onEmpty",
        "revisionPolicy",
        "priority",
        "waitTimeoutSeconds",
        "releasePolicy",
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

/// Selects pools of the claim's namespace by their labels.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolSelector {
    /// Labels that the pool must have, with these values.
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

/// Where a claim stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// The claim waits for a sandbox.
    #[default]
    Pending,
    /// The claim has its sandbox.
    Bound,
    /// The claim ended without a sandbox or lost it; see the conditions.
    Failed,
    /// The claim came to the end of its lifetime.
    Expired,
}

/// What the operator last saw and did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SandboxClaimStatus {
    /// Where the claim stands: Pending, Bound, Failed or Expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// `metadata.generation` this status speaks of.
    pub observed_generation: i64,
    /// The pool that serves the claim.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pool: String,
    /// Conditions: Bound, Ready.
    pub conditions: Vec<Condition>,
    /// The sandboxes of the claim.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sandboxes: Vec<BoundSandbox>,
    /// Seconds from the claim's arrival to its binding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<f64>,
    /// `waitSeconds` for people, as in `12ms`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub wait: String,
    /// When the claim was bound first; a replacement of a lost sandbox changes nothing about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_time: Option<Time>,
    /// When the claim expires, if ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration_time: Option<Time>,
    /// When the claim became Failed or Expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_time: Option<Time>,
    /// What the pool's `claimDefaults` said when the claim was bound first, or ended without that; it holds from then on,
    /// whatever becomes of the pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defaults: Option<BoundDefaults>,
}

/// One sandbox of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BoundSandbox {
    /// Name of the pod.
    pub name: String,
    /// UID of the pod.
    pub uid: String,
    /// IP of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ip: String,
    /// Node of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// Template revision of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// When the sandbox was bound.
    pub bound_time: Time,
    /// True when the sandbox was already available when the claim came.
    #[serde(default)]
    pub warm: bool,
}

fn one() -> i32 {
    1
}
