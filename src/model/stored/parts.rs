//! Parts of stored objects that more people may write than may stop the operator: only what is needed of them is
//! decoded, and what does not decode is left out where that is safe.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

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

pub(crate) fn metadata<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error> {
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

impl StoredTemplate {
    fn into_value<E: serde::de::Error>(mut self) -> Result<Value, E> {
        self.metadata = self.metadata.filter(|metadata| !metadata.is_empty());
        serde_json::to_value(self).map_err(E::custom)
    }
}

pub(crate) fn template<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
    let template = Option::<StoredTemplate>::deserialize(from)?;
    template.unwrap_or_default().into_value()
}

/// What a ControllerRevision of a pool keeps, and those of StatefulSets and DaemonSets do.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Data {
    spec: Option<DataSpec>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DataSpec {
    template: Option<StoredTemplate>,
}

/// Nobody checks the content of a ControllerRevision, and those of StatefulSets and DaemonSets get the labels of their
/// template: whoever writes one of these in any namespace could otherwise have the list of all revisions not decode.
pub(crate) fn data<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    let written = Option::<Box<RawValue>>::deserialize(from)?;
    let data = written.and_then(|written| serde_json::from_str::<Data>(written.get()).ok());
    let template = data.and_then(|data| data.spec?.template);
    template.map(StoredTemplate::into_value).transpose()
}

/// A time, or `None` for what is not one here, such as the last hours of the year 9999.
pub(crate) fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Time>, D::Error> {
    let written = Option::<String>::deserialize(from)?;
    Ok(written.and_then(|written| written.parse().ok()).map(Time))
}
