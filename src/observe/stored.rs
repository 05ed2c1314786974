//! Objects as they are stored. Specs and statuses of our own kinds stay JSON here, so that one object that
//! does not decode cannot stop the watch of all others; they are decoded once, in `pool.rs` and `claim.rs`. Of the
//! rest only that is decoded which the API server itself writes or has checked.

use super::Key;
use crate::api::{Pool, SandboxClaim};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::{Pod, PodTemplate};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

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

/// A `PodTemplate` as stored. Its template stays as it is written, as that of a pool does.
#[derive(Resource, Clone, Debug, Default, Deserialize)]
#[resource(inherit = PodTemplate)]
pub struct StoredPodTemplate {
    /// Object metadata.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// Its template, undecoded: labels, annotations and spec, which are all that a pod takes over from it.
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
    /// Undecoded content.
    #[serde(default)]
    pub data: Value,
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
    /// What it does now.
    pub state: StoredContainerState,
}

/// Part of a ContainerState.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StoredContainerState {
    /// It does not run yet, or not again yet.
    pub waiting: Option<StoredContainerWaiting>,
}

/// Part of a ContainerStateWaiting.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StoredContainerWaiting {
    /// One word on what it waits for.
    pub reason: Option<String>,
}

/// The metadata that matters here. `managedFields` is not looked at: whoever may update an object writes there what he
/// likes, and the API server takes years that are not times anywhere else.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    finalizers: Option<Vec<String>>,
    owner_references: Option<Vec<OwnerReference>>,
}

fn metadata<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error> {
    let read = Metadata::deserialize(from)?;
    Ok(ObjectMeta {
        name: read.name,
        namespace: read.namespace,
        uid: read.uid,
        resource_version: read.resource_version,
        generation: read.generation,
        creation_timestamp: read.creation_timestamp,
        deletion_timestamp: read.deletion_timestamp,
        labels: read.labels,
        annotations: read.annotations,
        finalizers: read.finalizers,
        owner_references: read.owner_references,
        ..ObjectMeta::default()
    })
}

/// What a pod takes over from a template. The rest is skipped: nobody checks the `managedFields` that a template has, and
/// they may be nested more deeply than can be decoded.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredTemplate {
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<StoredTemplateMetadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<Value>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredTemplateMetadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<Value>,
}

impl StoredTemplateMetadata {
    fn is_empty(&self) -> bool {
        self.labels.is_none() && self.annotations.is_none()
    }
}

fn template<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
    let mut template = Option::<StoredTemplate>::deserialize(from)?.unwrap_or_default();
    template.metadata = template.metadata.filter(|metadata| !metadata.is_empty());
    serde_json::to_value(template).map_err(D::Error::custom)
}

/// A time, or `None` for what is not one here, such as the last hours of the year 9999.
fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Time>, D::Error> {
    let written = Option::<String>::deserialize(from)?;
    Ok(written.and_then(|written| written.parse().ok()).map(Time))
}

/// Namespace and name out of metadata.
pub fn key(metadata: &ObjectMeta) -> Key {
    Key::new(
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
    )
}

/// UID out of metadata.
pub fn uid(metadata: &ObjectMeta) -> String {
    metadata.uid.clone().unwrap_or_default()
}

/// Whether the object with UID `owner` is one of the owners.
pub fn is_owned_by(metadata: &ObjectMeta, owner: &str) -> bool {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.any(|reference| reference.uid == owner)
}

/// Resource version out of metadata.
pub fn resource_version(metadata: &ObjectMeta) -> String {
    metadata.resource_version.clone().unwrap_or_default()
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
