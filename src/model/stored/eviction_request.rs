//! An EvictionRequest as the API server stores it.

use crate::model::stored::lenient_decoding::metadata;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

/// Group and version of EvictionRequests: alpha since Kubernetes 1.37 (KEP-4563).
pub const API_VERSION: &str = "lifecycle.k8s.io/v1alpha1";
/// Kind.
pub const KIND: &str = "EvictionRequest";
/// Resource name.
pub const RESOURCE: &str = "evictionrequests";

/// An `EvictionRequest` as stored. `k8s-openapi` does not have the type.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct StoredEvictionRequest {
    /// Object metadata.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// Undecoded spec.
    #[serde(default)]
    pub spec: Value,
}

impl Resource for StoredEvictionRequest {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        KIND.into()
    }
    fn group(_: &()) -> Cow<'_, str> {
        API_VERSION.split('/').next().unwrap_or_default().into()
    }
    fn version(_: &()) -> Cow<'_, str> {
        API_VERSION.split('/').nth(1).unwrap_or_default().into()
    }
    fn plural(_: &()) -> Cow<'_, str> {
        RESOURCE.into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
