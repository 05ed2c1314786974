//! The labels and annotations that a claim adds to its sandbox, and the rules that the API server checks them by.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
