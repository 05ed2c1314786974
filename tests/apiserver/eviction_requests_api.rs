//! Serves EvictionRequests on an API server that does not: as a CRD with the fields that the operator reads.

use crate::api::{CRDS, Resource};
use crate::lab::Lab;
use crate::wait;
use serde_json::{Value, json};

pub const EVICTION_REQUESTS: Resource = Resource("/apis/lifecycle.k8s.io/v1alpha1", "evictionrequests");
const NAME: &str = "evictionrequests.lifecycle.k8s.io";

/// Serves them from now on, unless the API server does by itself.
pub fn serve(lab: &Lab) -> Result<(), String> {
    if lab.api.list(EVICTION_REQUESTS, "").is_ok() {
        return Ok(());
    }
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({
        "name": "v1alpha1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}},
    });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME, "annotations": {"api-approved.kubernetes.io": "unapproved, a stand-in for a test"}},
        "spec": {
            "group": "lifecycle.k8s.io", "scope": "Namespaced", "versions": [version],
            "names": {"kind": "EvictionRequest", "listKind": "EvictionRequestList", "plural": EVICTION_REQUESTS.1, "singular": "evictionrequest"},
        },
    });
    lab.api.create(CRDS, "", &crd)?;
    wait::until("EvictionRequests were served", 30, || {
        lab.api
            .list(EVICTION_REQUESTS, "")
            .map(drop)
            .map_err(String::from)
    })
}

/// Ends what [`serve`] began. An API server that serves them by itself goes on.
pub fn end(lab: &Lab) -> Result<(), String> {
    if lab.api.get(CRDS, "", NAME)?.is_some() {
        lab.api.delete(CRDS, "", NAME)?;
        wait::until("EvictionRequests were no longer served", 30, || {
            let is_served = lab.api.list(EVICTION_REQUESTS, "").is_ok();
            wait::ensure(!is_served, || "they are".into())
        })?;
    }
    Ok(())
}

/// A request that `pod` is evicted.
pub fn request(name: &str, pod: &Value) -> Value {
    let metadata = &pod["metadata"];
    json!({
        "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "EvictionRequest", "metadata": {"name": name},
        "spec": {
            "target": {"pod": {"name": metadata["name"], "uid": metadata["uid"]}},
            "requester": "example.com/descheduler", "intent": "Eviction",
        },
    })
}
