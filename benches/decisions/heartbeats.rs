//! What a status of every node costs, as kubelets write it when something changes and every five minutes.

use crate::Outcome;
use crate::operator::used;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;
use warmpool::cache::index::Index;
use warmpool::model::stored::StoredNode;

/// Images that a node lists: the largest part of what the watch sends.
const IMAGES: usize = 50;

/// A node as a kubelet writes it.
fn node(number: usize, beat: usize) -> Value {
    let at = format!("2026-01-31T12:{beat:02}:00Z");
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status, "reason": "KubeletHasSufficientMemory", "message": "kubelet has sufficient memory",
            "lastHeartbeatTime": at, "lastTransitionTime": "2026-01-31T11:00:00Z",
        })
    };
    let conditions = [
        condition("MemoryPressure", "False"),
        condition("DiskPressure", "False"),
        condition("PIDPressure", "False"),
        condition("Ready", "True"),
    ];
    let image = |n: usize| json!({"names": [format!("registry.example.com/image-{n}@sha256:{n:064}")], "sizeBytes": n});
    json!({
        "metadata": {
            "name": format!("node-{number}"), "uid": format!("{number:036}"),
            "resourceVersion": (number + 1_000_000 * beat).to_string(),
            "labels": {"topology.kubernetes.io/zone": "a", "kubernetes.io/hostname": format!("node-{number}")},
        },
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": {
            "conditions": conditions,
            "images": (0..IMAGES).map(image).collect::<Vec<_>>(),
            "capacity": {"cpu": "64", "memory": "256Gi", "pods": "110"},
        },
    })
}

/// Processor time of one status of each of `nodes`, from the text to the cache. It fails if one has anything reconciled.
pub fn heartbeats(nodes: usize) -> Outcome<Duration> {
    let mut index = Index::default();
    let now: Timestamp = "2026-01-31T12:00:00Z".parse()?;
    for number in 0..nodes {
        index.apply_node(&serde_json::from_value(node(number, 0))?, now);
    }
    let mut spent = Duration::ZERO;
    for number in 0..nodes {
        let text = node(number, 1).to_string();
        let began = used();
        let stored: StoredNode = serde_json::from_str(&text)?;
        let to_reconcile = index.apply_node(&stored, now);
        spent += used().saturating_sub(began);
        if !to_reconcile.is_empty() {
            return Err(format!("a heartbeat reconciles {to_reconcile:?}").into());
        }
    }
    Ok(spent)
}
