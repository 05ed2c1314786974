//! Lenient decoding of fields that any tenant may write: a bad value must not stop the operator.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The metadata that matters here. `managedFields` is skipped: a tenant may write any content there, and the API server
/// accepts times that do not decode.
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

/// What a pod takes over from a template. The rest is skipped: the API server does not check a template's
/// `managedFields`, which may be nested too deeply to decode.
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

/// What ControllerRevisions of pools, StatefulSets and DaemonSets store.
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

/// The API server does not check the content of a ControllerRevision, and revisions of StatefulSets carry the labels of
/// their template: without leniency a single one of them could keep the list of all revisions from decoding.
pub(crate) fn data<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    let written = Option::<Box<RawValue>>::deserialize(from)?;
    let data = written.and_then(|written| serde_json::from_str::<Data>(written.get()).ok());
    let template = data.and_then(|data| data.spec?.template);
    template.map(StoredTemplate::into_value).transpose()
}

/// A time, or `None` for a value outside the range, such as the last hours of the year 9999.
pub(crate) fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Time>, D::Error> {
    let written = Option::<String>::deserialize(from)?;
    Ok(written.and_then(|written| written.parse().ok()).map(Time))
}
