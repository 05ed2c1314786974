//! The `SandboxClaim`: one sandbox, for as long as the claim lives.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A SandboxClaim takes one warm sandbox from a pool and keeps it until the claim is deleted.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    doc = "SandboxClaim takes one warm sandbox from a Pool and keeps it until the claim is deleted. Wait for it with `kubectl wait --for=condition=Ready`.",
    printcolumn(name = "Pool", type_ = "string", json_path = ".status.pool"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Sandbox", type_ = "string", json_path = ".status.sandboxes[0].name"),
    printcolumn(name = "IP", type_ = "string", json_path = ".status.sandboxes[0].ip"),
    printcolumn(name = "Wait", type_ = "string", json_path = ".status.wait"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = kube::core::Rule::new("self.metadata.name.size() <= 63")
        .message("metadata.name must be at most 63 characters, because it becomes the value of a pod label"),
    validation = kube::core::Rule::new(
        "!has(oldSelf.status) || !has(oldSelf.status.phase) || oldSelf.status.phase != 'Bound' || self.spec == oldSelf.spec"
    )
    .message("spec is immutable once the claim is bound; delete the claim and create a new one")
)]
#[serde(rename_all = "camelCase")]
pub struct SandboxClaimSpec {
    /// The pool, in the namespace of the claim, to take a sandbox from.
    pub pool_ref: PoolRef,
    /// What happens when no sandbox is available.
    #[serde(default)]
    pub on_empty: OnEmpty,
    /// Which revisions of the pool's template will do while a rollout is under way.
    #[serde(default)]
    pub revision_policy: RevisionPolicy,
    /// Claims of higher priority are served first; among equals the oldest first.
    #[serde(default)]
    pub priority: i32,
    /// A claim not bound after this many seconds becomes Failed with reason WaitTimeout.
    #[serde(default = "five_minutes")]
    #[x_kube(validation = kube::core::Rule::new("self >= 1").message("waitTimeoutSeconds must be 1 or more"))]
    pub wait_timeout_seconds: i32,
    /// Labels and annotations added to the sandbox in the same write that binds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_metadata: Option<PodMetadata>,
}

/// Reference to a pool in the same namespace.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoolRef {
    /// Name of the pool.
    #[schemars(length(max = 253))]
    #[x_kube(validation = kube::core::Rule::new("self.size() >= 1").message("poolRef.name must name a pool"))]
    pub name: String,
}

/// What happens when no sandbox is available.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnEmpty {
    /// The claim adds to the demand: a sandbox beyond `replicas` is created for it.
    #[default]
    Create,
    /// The claim waits for the pool's own refill.
    Wait,
    /// The claim fails at once.
    Fail,
}

/// Which revisions of the pool's template will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RevisionPolicy {
    /// A sandbox of the update revision when one is available, else one of an old revision.
    #[default]
    PreferLatest,
    /// A sandbox of the update revision only; the claim waits for one.
    Latest,
    /// Any sandbox, without a preference.
    Any,
}

/// Metadata added to the sandbox when it is bound.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PodMetadata {
    /// Labels added to the sandbox. Keys under `warmpool.dev/` belong to the operator.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = {
        "type": "string",
        "maxLength": 63,
        "x-kubernetes-validations": [{
            "rule": "self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",
            "message": "a label value holds letters, digits, '-', '_' and '.', and begins and ends with a letter or digit",
        }],
    }))]
    #[x_kube(
        validation = kube::core::Rule::new("self.all(key, !key.startsWith('warmpool.dev/'))")
            .message("podMetadata.labels must not hold keys under warmpool.dev/, they belong to the operator"),
        validation = kube::core::Rule::new("self.all(key, key.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))")
            .message("podMetadata.labels must have keys like \"team\" or \"example.com/team\"")
    )]
    pub labels: BTreeMap<String, String>,
    /// Annotations added to the sandbox. Keys under `warmpool.dev/` belong to the operator.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    #[x_kube(
        validation = kube::core::Rule::new("self.all(key, !key.startsWith('warmpool.dev/'))")
            .message("podMetadata.annotations must not hold keys under warmpool.dev/, they belong to the operator"),
        validation = kube::core::Rule::new("self.all(key, key.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))")
            .message("podMetadata.annotations must have keys like \"run-id\" or \"example.com/run-id\"")
    )]
    pub annotations: BTreeMap<String, String>,
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
}

/// What the operator last saw and did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SandboxClaimStatus {
    /// Where the claim stands: Pending, Bound or Failed.
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

fn five_minutes() -> i32 {
    300
}
