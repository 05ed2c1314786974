//! The body of a pod to be created. Its name was chosen beforehand: a repeated POST cannot create two.

use crate::api::{API_VERSION, labels};
use crate::model::request::PodCreation;
use serde_json::{Map, Value, json};

/// The pod: the template as written, with the operator's labels, owned by the pool.
pub fn pod_body(creation: &PodCreation) -> Value {
    let pool = &creation.pool;
    let template = &creation.template.value;
    let mut metadata = Map::new();
    for field in ["labels", "annotations"] {
        if let Some(map) = template
            .pointer(&format!("/metadata/{field}"))
            .and_then(Value::as_object)
        {
            metadata.insert(field.into(), Value::Object(map.clone()));
        }
    }
    let pod_labels = metadata.entry("labels").or_insert_with(|| json!({}));
    if let Some(pod_labels) = pod_labels.as_object_mut() {
        pod_labels.insert(labels::POOL.into(), json!(pool.key.name));
        pod_labels.insert(labels::REVISION.into(), json!(creation.revision));
        pod_labels.insert(labels::STATE.into(), json!(labels::WARM));
    }
    metadata.insert("name".into(), json!(creation.pod.name));
    metadata.insert("namespace".into(), json!(creation.pod.namespace));
    metadata.insert(
        "ownerReferences".into(),
        json!([{
            "apiVersion": API_VERSION, "kind": "Pool", "name": pool.key.name, "uid": pool.uid,
            "controller": true, "blockOwnerDeletion": false,
        }]),
    );
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec")})
}
