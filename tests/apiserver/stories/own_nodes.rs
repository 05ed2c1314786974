//! Nodes that take the pods of one story alone, and those that have to go.

use crate::check::Drain;
use crate::scene::Scene;
use jiff::Timestamp;
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

/// Declares that a node has to go from now on; `breaks`: its sandboxes need not be replaced first.
pub fn declare_drain(scene: &Scene, node: &str, breaks: bool) {
    scene.declare(|rules| {
        rules.drains.push(Drain {
            node: node.to_string(),
            from: Timestamp::now(),
            to: None,
            breaks,
        });
    });
}
