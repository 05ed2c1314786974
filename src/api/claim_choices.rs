//! Types of the claim fields for which a pool can set a default.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// A PodDisruptionBudget refuses the eviction until the claim ends.
    #[default]
    Block,
    /// The sandbox may be evicted.
    Allow,
    /// When the node has to go, the claim and an annotation of the pod say so; after `disruptionGracePeriodSeconds` the
    /// sandbox may be evicted.
    Notify,
}

/// Which revisions of the pool's template a claim accepts. A claim without a policy of its own prefers the latest revision;
/// with the pool's strategy OnReplenish it takes old sandboxes first.
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

/// Labels and annotations added to a sandbox when it is bound.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PodMetadata {
    /// Labels added to the sandbox. Keys under `warmpool.dev/` belong to the operator. Default: none.
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
        validation = kube::core::Rule::new("self.all(key, key.size() <= 317 && key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))")
            .message("podMetadata.labels must have keys like \"team\" or \"example.com/team\"")
    )]
    pub labels: BTreeMap<String, String>,
    /// Annotations added to the sandbox. Keys under `warmpool.dev/` belong to the operator. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    #[x_kube(
        validation = kube::core::Rule::new("self.all(key, !key.startsWith('warmpool.dev/'))")
            .message("podMetadata.annotations must not hold keys under warmpool.dev/, they belong to the operator"),
        validation = kube::core::Rule::new("self.all(key, key.size() <= 317 && key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))")
            .message("podMetadata.annotations must have keys like \"run-id\" or \"example.com/run-id\"")
    )]
    pub annotations: BTreeMap<String, String>,
}
