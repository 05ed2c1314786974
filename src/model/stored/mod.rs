//! Objects as the API server stores them, slim. One object that does not decode must not stop a watch.
//!
//! Specs and statuses of pools and claims stay JSON here; `pool.rs` and `claim.rs` decode them once. Of other objects
//! only fields are decoded that the API server writes or checks.

pub mod eviction_request;
mod lenient_decoding;

use crate::api::{Pool, SandboxClaim};
use crate::model::Key;
use crate::model::stored::lenient_decoding::{data, metadata, template, time};
use crate::model::toleration::StoredToleration;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::{Node, Pod, PodTemplate};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use serde::Deserialize;
use serde_json::Value;
use smol_str::SmolStr;

/// A `Pool` as stored.
#[derive(Resource, Clone, Debug, Default, Deserialize)]
#[resource(inherit = Pool)]
pub struct StoredPool {
    /// Object metadata.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// Undecoded spec.
    #[serde(default)]
    pub spec: Value,
    /// Undecoded status.
    #[serde(default)]
    pub status: Value,
}

/// A `SandboxClaim` as stored.
#[derive(Resource, Clone, Debug, Default, Deserialize)]
#[resource(inherit = SandboxClaim)]
pub struct StoredClaim {
    /// Object metadata.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// Undecoded spec.
    #[serde(default)]
    pub spec: Value,
    /// Undecoded status.
    #[serde(default)]
    pub status: Value,
}

/// A `PodTemplate` as stored.
#[derive(Resource, Clone, Debug, Default, Deserialize)]
#[resource(inherit = PodTemplate)]
pub struct StoredPodTemplate {
    /// Object metadata.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// The undecoded template: labels, annotations and spec, which are all that a pod takes over.
    #[serde(default, deserialize_with = "template")]
    pub template: Value,
}

/// A ControllerRevision as stored.
#[derive(Resource, Clone, Debug, Default, Deserialize)]
#[resource(inherit = ControllerRevision)]
pub struct StoredRevision {
    /// Object metadata.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// Increasing number; the highest is the newest.
    pub revision: i64,
    /// The template of a pool's revision, undecoded but for what a pod does not take over from it; `None` in others.
    #[serde(default, rename = "data", deserialize_with = "data")]
    pub template: Option<Value>,
}

/// A `PodDisruptionBudget` as stored. Its status is never decoded: it changes with every pod.
#[derive(Resource, Clone, Debug, Default, Deserialize)]
#[resource(inherit = PodDisruptionBudget)]
pub struct StoredDisruptionBudget {
    /// Object metadata.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// Undecoded spec.
    #[serde(default)]
    pub spec: Value,
}

/// The few fields of a pod that matter here; the rest is never decoded.
#[derive(Resource, Clone, Debug, Default, Deserialize)]
#[resource(inherit = Pod)]
pub struct StoredPod {
    /// Object metadata.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// Part of the spec.
    #[serde(default)]
    pub spec: StoredPodSpec,
    /// Part of the status.
    #[serde(default)]
    pub status: StoredPodStatus,
}

/// Part of a PodSpec.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StoredPodSpec {
    /// Node the pod is bound to.
    pub node_name: Option<String>,
    /// Taints that the pod tolerates.
    pub tolerations: Option<Vec<StoredToleration>>,
}

/// Part of a PodStatus.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StoredPodStatus {
    /// Pod phase.
    pub phase: Option<String>,
    /// Pod IP.
    #[serde(rename = "podIP")]
    pub pod_ip: Option<String>,
    /// Conditions, in stored order: a binding write tests one of them by its position.
    pub conditions: Option<Vec<StoredPodCondition>>,
    /// Containers that run before the others.
    pub init_container_statuses: Option<Vec<StoredContainerStatus>>,
    /// The containers.
    pub container_statuses: Option<Vec<StoredContainerStatus>>,
}

/// Part of a PodCondition.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredPodCondition {
    /// Condition type.
    #[serde(rename = "type")]
    pub type_: String,
    /// True, False or Unknown.
    pub status: String,
    /// One word on the status.
    #[serde(default)]
    pub reason: Option<String>,
    /// A sentence on the status.
    #[serde(default)]
    pub message: Option<String>,
    /// When the status last changed, where that is a time.
    #[serde(default, deserialize_with = "time")]
    pub last_transition_time: Option<Time>,
}

/// Part of a ContainerStatus.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StoredContainerStatus {
    /// Name of the container.
    pub name: String,
    /// Restarts of the container.
    pub restart_count: i32,
    /// It passes its probes; of an init container: it has ended with success.
    pub ready: bool,
    /// What it does now.
    pub state: StoredContainerState,
    /// How its last run ended.
    pub last_state: StoredContainerState,
}

/// Part of a ContainerState.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StoredContainerState {
    /// It does not run yet, or not again yet.
    pub waiting: Option<StoredContainerWaiting>,
    /// It has ended.
    pub terminated: Option<StoredContainerTerminated>,
}

/// Part of a ContainerStateWaiting.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StoredContainerWaiting {
    /// One word on what it waits for.
    pub reason: Option<String>,
    /// A sentence on what it waits for.
    pub message: Option<String>,
}

/// Part of a ContainerStateTerminated. Its message is left out: the container wrote it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StoredContainerTerminated {
    /// One word on how it ended.
    pub reason: Option<String>,
    /// Its exit code.
    pub exit_code: i32,
}

/// The few fields of a node that matter here.
#[derive(Resource, Clone, Debug, Default, Deserialize)]
#[resource(inherit = Node)]
pub struct StoredNode {
    /// Object metadata.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// Part of the spec.
    #[serde(default)]
    pub spec: StoredNodeSpec,
    /// Part of the status.
    #[serde(default)]
    pub status: StoredNodeStatus,
}

/// Part of a NodeSpec.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StoredNodeSpec {
    /// The node is cordoned.
    pub unschedulable: Option<bool>,
    /// Taints.
    pub taints: Option<Vec<StoredTaint>>,
}

/// A taint of a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StoredTaint {
    /// Key.
    pub key: String,
    /// Value.
    pub value: Option<String>,
    /// What it does to pods that do not tolerate it.
    pub effect: String,
    /// When it was added, where that is a time.
    #[serde(deserialize_with = "time")]
    pub time_added: Option<Time>,
}

/// Part of a NodeStatus.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StoredNodeStatus {
    /// Conditions, which have the form of those of a pod.
    pub conditions: Option<Vec<StoredPodCondition>>,
}

/// Namespace and name out of metadata.
pub fn key(metadata: &ObjectMeta) -> Key {
    Key::new(
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    )
}

/// UID out of metadata.
pub fn uid(metadata: &ObjectMeta) -> SmolStr {
    metadata.uid.as_deref().unwrap_or_default().into()
}

/// Whether the object with UID `owner` is one of the owners.
pub fn is_owned_by(metadata: &ObjectMeta, owner: &str) -> bool {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.any(|reference| reference.uid == owner)
}

/// Resource version out of metadata.
pub fn resource_version(metadata: &ObjectMeta) -> SmolStr {
    metadata.resource_version.as_deref().unwrap_or_default().into()
}

/// Creation time out of metadata.
pub fn created(metadata: &ObjectMeta) -> Timestamp {
    metadata
        .creation_timestamp
        .as_ref()
        .map_or(Timestamp::UNIX_EPOCH, |t| t.0)
}

/// An annotation out of metadata.
pub fn annotation(metadata: &ObjectMeta, name: &str) -> Option<String> {
    metadata.annotations.as_ref()?.get(name).cloned()
}

/// Decodes a part of a stored object. The error names the field.
///
/// # Errors
/// A sentence like `spec.replicas: invalid type: string "x", expected i32`.
pub fn decode<T: for<'de> Deserialize<'de>>(root: &str, value: &Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        if path == "." {
            format!("{root}: {}", error.inner())
        } else {
            format!("{root}.{path}: {}", error.inner())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// After the last moment that is a time here, and none that the API server minds.
    const TOO_LATE: &str = "9999-12-31T23:59:59Z";

    #[test]
    fn what_a_template_nests_deeply_where_nobody_looks_does_not_stop_its_decoding()
    -> Result<(), serde_json::Error> {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(500), "}".repeat(500));
        let text = format!(
            r#"{{"metadata": {{"name": "odd"}}, "template": {{
                "metadata": {{"labels": {{"a": "b"}}, "managedFields": [{{"fieldsV1": {deep}}}]}}, "spec": {{"containers": []}}
            }}}}"#
        );
        let stored: StoredPodTemplate = serde_json::from_str(&text)?;
        let kept = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}});
        assert_eq!(stored.template, kept);
        Ok(())
    }

    #[test]
    fn content_that_is_no_template_of_ours_does_not_stop_the_decoding_of_a_revision()
    -> Result<(), serde_json::Error> {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(500), "}".repeat(500));
        let spec = r#""spec": {"containers": []}"#;
        let kept = json!({"spec": {"containers": []}});
        for (template, expected) in [
            (
                format!(r#"{{{spec}, "metadata": {{"managedFields": [{deep}]}}}}"#),
                Some(kept.clone()),
            ),
            (
                format!(r#"{{{spec}, "metadata": {{"name": "x"}}, "more": 1}}"#),
                Some(kept),
            ),
            (format!(r#"{{"spec": {deep}}}"#), None),
            ("7".into(), None),
            ("null".into(), None),
        ] {
            for data in [format!(r#"{{"spec": {{"template": {template}}}}}"#), template] {
                let is_whole = data.contains("template");
                let text = format!(r#"{{"metadata": {{"name": "odd"}}, "revision": 1, "data": {data}}}"#);
                let stored: StoredRevision = serde_json::from_str(&text)?;
                assert_eq!(stored.template, expected.clone().filter(|_| is_whole), "{text}");
            }
        }
        Ok(())
    }

    #[test]
    fn times_that_anybody_may_write_stop_the_decoding_of_nothing() -> Result<(), serde_json::Error> {
        let metadata = json!({
            "name": "python", "uid": "uid", "resourceVersion": "7", "generation": 2,
            "creationTimestamp": "2026-01-31T12:00:00Z", "labels": {"a": "b"}, "annotations": {"c": "d"},
            "finalizers": ["example.com/scrub"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pool", "name": "python", "uid": "owner"}],
        });
        let mut odd = metadata.clone();
        odd["managedFields"] = json!([{"manager": "x", "operation": "Update", "time": TOO_LATE}]);
        let condition = json!({"type": "Ready", "status": "True", "lastTransitionTime": TOO_LATE});
        let object = json!({"metadata": odd, "revision": 1, "status": {"conditions": [condition]}});
        let known: ObjectMeta = serde_json::from_value(metadata)?;
        let pod: StoredPod = serde_json::from_value(object.clone())?;
        let conditions = pod.status.conditions.unwrap_or_default();
        assert!(conditions.iter().all(|c| c.last_transition_time.is_none()));
        assert_eq!(pod.metadata, known);
        assert_eq!(
            serde_json::from_value::<StoredPool>(object.clone())?.metadata,
            known
        );
        assert_eq!(
            serde_json::from_value::<StoredClaim>(object.clone())?.metadata,
            known
        );
        assert_eq!(
            serde_json::from_value::<StoredRevision>(object.clone())?.metadata,
            known
        );
        assert_eq!(
            serde_json::from_value::<StoredPodTemplate>(object)?.metadata,
            known
        );
        Ok(())
    }
}
