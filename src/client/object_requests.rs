//! Requests that kube-rs has no function for: creation and statuses from parts of an object, and conditional deletion.

use crate::client::call::call;
use crate::client::request_errors::CallError;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::core::Request;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Creates an object from JSON, so that no field is lost that `K` does not know. The answer is read as far as `K` knows
/// it.
pub(crate) async fn create<K: Resource + DeserializeOwned>(
    client: &Client,
    api: &Api<K>,
    object: &Value,
) -> Result<K, CallError> {
    let body = object.to_string().into_bytes();
    let request = Request::new(api.resource_url()).create(&PostParams::default(), body);
    call(async {
        let request = request.map_err(kube::Error::BuildRequest)?;
        client.request(request).await
    })
    .await
}

/// Replaces the status of the object that `body` names the UID and the resource version of.
pub(crate) async fn replace_status<K: Resource + DeserializeOwned>(
    client: &Client,
    api: &Api<K>,
    name: &str,
    body: &impl Serialize,
) -> Result<K, CallError> {
    call(async {
        let body = serde_json::to_vec(body).map_err(kube::Error::SerdeError)?;
        let request = Request::new(api.resource_url())
            .replace_subresource("status", name, &PostParams::default(), body)
            .map_err(kube::Error::BuildRequest)?;
        client.request(request).await
    })
    .await
}

/// Parameters that delete only the object with this UID and, where a resource version is named, only that version.
pub fn only(uid: &str, resource_version: Option<&str>) -> DeleteParams {
    DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(uid.to_string()),
            resource_version: resource_version.map(ToString::to_string),
        }),
        ..DeleteParams::default()
    }
}
