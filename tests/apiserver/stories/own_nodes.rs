//! Nodes that take the pods of one story alone.

use crate::scene::Scene;
use serde_json::{Value, json};

/// A node that takes pods of this story alone.
pub fn node(scene: &Scene, name: &str) -> Value {
    let story = &scene.namespace;
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"story": story},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "spec": {"taints": [{"key": "story", "value": story, "effect": "NoSchedule"}]},
    })
}

/// A part of a pool's spec: its pods run on the nodes of this story.
pub fn only_there(scene: &Scene) -> Value {
    json!({"template": {"spec": {
        "nodeSelector": {"story": scene.namespace},
        "tolerations": [{"key": "story", "operator": "Exists", "effect": "NoSchedule"}],
    }}})
}
