//! Builds pools and revisions as the API server returns them.

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use warmpool::cli::kubectl::rollout::history::History;

pub const POOL_UID: &str = "pool-uid";

pub fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "python"}}, "spec": {"containers": [{"name": "main", "image": image}]}})
}

/// A pool of 10 replicas with the template of `image`; `more` is merged over it.
pub fn pool(image: &str, more: &Value) -> DynamicObject {
    let mut pool = json!({
        "apiVersion": "warmpool.dev/v1alpha1",
        "kind": "Pool",
        "metadata": {"name": "python", "namespace": "sandboxes", "uid": POOL_UID, "generation": 3, "resourceVersion": "77"},
        "spec": {"replicas": 10, "template": template(image)},
        "status": {"observedGeneration": 3},
    });
    json_patch::merge(&mut pool, more);
    serde_json::from_value(pool).unwrap()
}

/// The `ownerReferences` of an object that the pool controls.
pub fn owned_by_pool() -> Value {
    json!([{
        "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool", "name": "python", "uid": POOL_UID, "controller": true,
    }])
}

pub fn revision(number: i64, image: &str, cause: Option<&str>) -> ControllerRevision {
    let mut revision = json!({
        "metadata": {
            "name": format!("python-{number}"),
            "labels": {"warmpool.dev/pool": "python", "warmpool.dev/revision": format!("hash{number}")},
            "ownerReferences": owned_by_pool(),
        },
        "revision": number,
        "data": {"spec": {"template": template(image)}},
    });
    if let Some(cause) = cause {
        revision["metadata"]["annotations"] = json!({"kubernetes.io/change-cause": cause});
    }
    serde_json::from_value(revision).unwrap()
}

pub fn history(revisions: Vec<ControllerRevision>) -> History {
    History::of(&pool("image:1", &json!({})), revisions)
}
