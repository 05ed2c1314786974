//! Checks what an event of a node or an EvictionRequest has reconciled, and what is known of nodes and requests.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use warmpool::cache::index::Index;
use warmpool::cache::reconcile_request::ReconcileRequest;
use warmpool::cache::snapshot::PoolSnapshot;
use warmpool::cache::watch::Indexed;
use warmpool::model::Key;
use warmpool::model::known_nodes::NodeAccess;
use warmpool::model::leaving_reason::LeavingReason;
use warmpool::model::stored::eviction_request::StoredEvictionRequest;
use warmpool::model::stored::{StoredNode, StoredPod, StoredPool};
use warmpool::planner::{self, pool_snapshot};

const NOW: Timestamp = Timestamp::constant(1_767_225_600, 0);

fn node(name: &str, spec: Value, heartbeat: &str) -> StoredNode {
    let ready = json!({
        "type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat, "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let node = json!({
        "metadata": {"name": name, "resourceVersion": heartbeat.len().to_string(), "annotations": {"beat": heartbeat}},
        "spec": spec,
        "status": {"conditions": [ready], "images": [{"names": ["image:1"]}], "nodeInfo": {"kubeletVersion": heartbeat}},
    });
    serde_json::from_value(node).unwrap()
}

fn open(name: &str) -> StoredNode {
    node(name, json!({}), "one")
}

fn cordoned(name: &str) -> StoredNode {
    node(name, json!({"unschedulable": true}), "one")
}

fn pod(name: &str, pool: &str, node: &str, owner: Value) -> StoredPod {
    let labels = json!({"warmpool.dev/pool": pool, "warmpool.dev/state": "warm"});
    let pod = json!({
        "metadata": {
            "namespace": "default", "name": name, "uid": name, "resourceVersion": "1", "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": node},
        "status": {"phase": "Running"},
    });
    serde_json::from_value(pod).unwrap()
}

fn of(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "warmpool.dev/v1alpha1", "kind": kind, "name": name, "uid": name, "controller": true})
}

fn unclaimed(name: &str, pool: &str, node: &str) -> StoredPod {
    pod(name, pool, node, of("Pool", pool))
}

fn request(pool: &str) -> ReconcileRequest {
    ReconcileRequest::Pool(Key::new("default", pool))
}

/// Two nodes with a pod of a pool each, and a claimed pod of the first pool on the first node.
fn cluster() -> Index {
    let mut index = Index::default();
    StoredNode::retain(&mut index, &HashSet::new());
    for name in ["one", "two"] {
        index.apply_node(&open(name), NOW);
        let spec =
            json!({"replicas": 1, "template": {"spec": {"containers": [{"name": "main", "image": "i"}]}}});
        let metadata = json!({"namespace": "default", "name": name, "uid": name});
        let pool: StoredPool = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
        index.apply_pool(&pool);
        index.apply_pod(&unclaimed(&format!("{name}-pod"), name, name));
    }
    index.apply_pod(&pod("claimed", "one", "one", of("SandboxClaim", "run")));
    index
}

fn snapshot(index: &Index, pool: &str) -> PoolSnapshot {
    pool_snapshot(index, &Key::new("default", pool), NOW, 0).unwrap()
}

fn reason(index: &Index, pod: &str, pool: &str) -> Option<LeavingReason> {
    let snapshot = snapshot(index, pool);
    let entry = snapshot
        .sandboxes
        .iter()
        .find(|entry| entry.sandbox.key.name == pod)
        .unwrap();
    let leaving = snapshot.nodes.leaving(&entry.sandbox, NOW);
    leaving.map(|leaving| leaving.reason)
}

#[test]
fn a_heartbeat_reconciles_nothing() {
    let mut index = cluster();
    for beat in 0..100 {
        let heartbeat = node("one", json!({}), &format!("beat {beat}"));
        assert_eq!(heartbeat.apply(&mut index, true), []);
    }
}

#[test]
fn a_change_of_a_node_reconciles_the_pools_and_claims_with_pods_there_and_no_others() {
    let mut index = cluster();
    let claim = ReconcileRequest::Claim(Key::new("default", "run"));
    assert_eq!(
        index.apply_node(&cordoned("one"), NOW),
        [request("one"), claim.clone()]
    );
    assert_eq!(index.apply_node(&cordoned("one"), NOW), []);
    assert_eq!(index.apply_node(&cordoned("three"), NOW), []);
    assert_eq!(index.delete_node(&open("two")), [request("two")]);
    assert_eq!(
        reason(&index, "one-pod", "one"),
        Some(LeavingReason::NodeCordoned)
    );
    assert_eq!(index.apply_node(&open("one"), NOW), [request("one"), claim]);
    assert_eq!(reason(&index, "one-pod", "one"), None);
}

#[test]
fn a_pod_that_is_gone_or_elsewhere_is_no_concern_of_a_node() {
    let mut index = cluster();
    index.delete_pod(&unclaimed("two-pod", "two", "two"));
    assert_eq!(index.apply_node(&cordoned("two"), NOW), []);
    let mut claimed = pod("claimed", "one", "one", of("SandboxClaim", "run"));
    index.delete_pod(&claimed);
    claimed.metadata.uid = Some("anew".into());
    claimed.spec.node_name = Some("two".into());
    index.apply_pod(&claimed);
    assert_eq!(index.apply_node(&cordoned("one"), NOW), [request("one")]);
    assert_eq!(index.apply_node(&open("two"), NOW).len(), 2);
}

#[test]
fn without_the_right_to_read_them_nothing_is_known_of_nodes_until_they_are_listed_again() {
    let mut index = cluster();
    index.apply_node(&cordoned("one"), NOW);
    assert_eq!(StoredNode::deny(&mut index), Some(true));
    assert_eq!(StoredNode::deny(&mut index), Some(false));
    assert_eq!(snapshot(&index, "one").nodes.access, NodeAccess::Denied);
    assert_eq!(reason(&index, "one-pod", "one"), None);
    assert_eq!(StoredPod::deny(&mut index), None);
    StoredNode::retain(&mut index, &HashSet::from([Key::new("", "one")]));
    index.apply_node(&cordoned("one"), NOW);
    assert_eq!(
        reason(&index, "one-pod", "one"),
        Some(LeavingReason::NodeCordoned)
    );
}

#[test]
fn a_list_forgets_the_nodes_that_it_lacks() {
    let mut index = cluster();
    StoredNode::retain(&mut index, &HashSet::from([Key::new("", "two")]));
    assert_eq!(reason(&index, "one-pod", "one"), Some(LeavingReason::NodeGone));
    assert_eq!(reason(&index, "two-pod", "two"), None);
}

#[test]
fn a_node_that_a_failing_watch_has_not_shown_may_exist() {
    let mut index = cluster();
    index.apply_pod(&unclaimed("new-pod", "one", "new"));
    let gone_at = |index: &Index| {
        let nodes = snapshot(index, "one").nodes;
        nodes.gone_at(&index.pod(&Key::new("default", "new-pod")).unwrap())
    };
    let scheduled = gone_at(&index).unwrap();
    StoredNode::interrupted(&mut index);
    assert_eq!(
        gone_at(&index),
        Some(Timestamp::MAX),
        "I4: a sandbox goes at once whose node nobody has seen go"
    );
    let shown = scheduled + SignedDuration::from_secs(60);
    let affected = index.apply_node(&open("two"), shown);
    assert_eq!(
        affected,
        [request("one")],
        "it has a pod on a node that nobody has shown"
    );
    index.apply_node(&open("two"), shown + SignedDuration::from_secs(60));
    assert_eq!(gone_at(&index), Some(shown + SignedDuration::from_secs(30)));
    StoredNode::retain(
        &mut index,
        &HashSet::from(["one", "two"].map(|name| Key::new("", name))),
    );
    assert_eq!(gone_at(&index), Some(scheduled), "a list shows every node");
}

#[test]
fn a_cordon_without_a_time_began_when_it_was_seen_first() {
    let mut index = cluster();
    index.apply_node(&cordoned("one"), NOW);
    let later = NOW + SignedDuration::from_secs(60);
    assert_eq!(index.apply_node(&cordoned("one"), later), []);
    let snapshot = snapshot(&index, "one");
    let entry = snapshot
        .sandboxes
        .iter()
        .find(|entry| entry.sandbox.key.name == "one-pod")
        .unwrap();
    assert_eq!(snapshot.nodes.leaving(&entry.sandbox, later).unwrap().since, NOW);
}

/// What a cluster of 5,000 nodes says every ten seconds.
#[test]
fn the_heartbeats_of_5000_nodes_reconcile_nothing_and_change_no_snapshot() {
    let mut index = cluster();
    let names: Vec<_> = (0..5_000).map(|n| format!("node-{n}")).collect();
    for name in &names {
        open(name).apply(&mut index, true);
        index.apply_pod(&unclaimed(&format!("on-{name}"), "one", name));
    }
    let decided_on = |index: &Index| {
        let snapshot = snapshot(index, "one");
        let nodes: Vec<_> = snapshot.nodes.nodes.into_values().collect();
        assert_eq!(nodes.len(), names.len() + 1);
        (nodes, planner::plan(&self::snapshot(index, "one")))
    };
    let (before, plan) = decided_on(&index);
    for beat in ["second", "third"] {
        for name in &names {
            // The kubelet moves a timestamp, an image is pulled, a controller annotates: the node is another version.
            let requests = node(name, json!({}), beat).apply(&mut index, true);
            assert_eq!(requests, [], "I9: a heartbeat of {name} reconciles something");
        }
    }
    let (after, plan_after) = decided_on(&index);
    let same = before
        .iter()
        .zip(&after)
        .all(|(before, after)| Arc::ptr_eq(before, after));
    assert!(same, "no heartbeat replaces what is known of a node");
    assert_eq!(
        (plan.actions.len(), plan.next),
        (plan_after.actions.len(), plan_after.next)
    );
    let cordon = node(&names[0], json!({"unschedulable": true}), "fourth");
    assert_eq!(cordon.apply(&mut index, true), [request("one")]);
}

fn eviction_request(name: &str, pod: &str, uid: &str, intent: &str) -> StoredEvictionRequest {
    let created = (NOW - SignedDuration::from_secs(60)).to_string();
    let request = json!({
        "metadata": {"namespace": "default", "name": name, "creationTimestamp": created},
        "spec": {"target": {"pod": {"name": pod, "uid": uid}}, "requester": "example.com/a", "intent": intent},
    });
    serde_json::from_value(request).unwrap()
}

#[test]
fn an_eviction_request_reconciles_the_pool_and_the_claim_of_its_pod_and_no_others() {
    let mut index = cluster();
    let of_pool = eviction_request("a", "one-pod", "one-pod", "Eviction");
    assert_eq!(index.apply_eviction_request(&of_pool, NOW), [request("one")]);
    assert_eq!(
        index.apply_eviction_request(&of_pool, NOW),
        [],
        "its status changed"
    );
    let of_claim = eviction_request("b", "claimed", "claimed", "Eviction");
    let claim = ReconcileRequest::Claim(Key::new("default", "run"));
    assert_eq!(
        index.apply_eviction_request(&of_claim, NOW),
        [claim, request("one")]
    );
    let of_none = eviction_request("c", "unknown", "unknown", "Eviction");
    assert_eq!(index.apply_eviction_request(&of_none, NOW), []);
}

#[test]
fn an_eviction_request_counts_for_the_pod_with_its_uid_until_the_last_one_is_withdrawn_or_gone() {
    let mut index = cluster();
    let named = Some(LeavingReason::EvictionRequest);
    index.apply_eviction_request(&eviction_request("other", "one-pod", "former", "Eviction"), NOW);
    assert_eq!(
        reason(&index, "one-pod", "one"),
        None,
        "I6: a sandbox leaves that nobody wants evicted"
    );
    for name in ["a", "b"] {
        index.apply_eviction_request(&eviction_request(name, "one-pod", "one-pod", "Eviction"), NOW);
    }
    assert_eq!(reason(&index, "one-pod", "one"), named);
    index.apply_eviction_request(&eviction_request("a", "one-pod", "one-pod", "Withdrawn"), NOW);
    assert_eq!(reason(&index, "one-pod", "one"), named);
    let key = Key::new("default", "b");
    assert_eq!(index.delete_eviction_request(&key), [request("one")]);
    assert_eq!(reason(&index, "one-pod", "one"), None);
    index.apply_eviction_request(&eviction_request("b", "one-pod", "one-pod", "Eviction"), NOW);
    StoredEvictionRequest::retain(&mut index, &HashSet::new());
    assert_eq!(reason(&index, "one-pod", "one"), None, "a list lacks it");
}

#[test]
fn an_eviction_request_counts_from_its_creation_and_from_its_return_after_it_was_withdrawn() {
    let mut index = cluster();
    let since = |index: &Index| {
        snapshot(index, "one")
            .nodes
            .eviction_requested
            .get("one-pod")
            .copied()
    };
    let with = |intent: &str| eviction_request("a", "one-pod", "one-pod", intent);
    index.apply_eviction_request(&with("Eviction"), NOW);
    assert_eq!(since(&index), Some(NOW - SignedDuration::from_secs(60)));
    index.apply_eviction_request(&with("Withdrawn"), NOW);
    assert_eq!(since(&index), None);
    index.apply_eviction_request(&with("Eviction"), NOW);
    assert_eq!(since(&index), Some(NOW));
}

#[test]
fn an_eviction_request_counts_without_the_right_to_nodes_and_one_that_may_not_be_read_does_not() {
    let mut index = cluster();
    index.deny_nodes();
    index.apply_eviction_request(&eviction_request("a", "one-pod", "one-pod", "Eviction"), NOW);
    assert_eq!(
        reason(&index, "one-pod", "one"),
        Some(LeavingReason::EvictionRequest)
    );
    assert!(index.deny_eviction_requests(), "that is new");
    assert!(!index.deny_eviction_requests(), "that is known");
    assert_eq!(reason(&index, "one-pod", "one"), None);
}

#[test]
fn an_eviction_request_with_an_intent_that_is_not_understood_evicts_nothing() {
    let mut index = cluster();
    for intent in ["", "Cancel"] {
        index.apply_eviction_request(&eviction_request("a", "one-pod", "one-pod", intent), NOW);
        assert_eq!(reason(&index, "one-pod", "one"), None, "{intent:?}");
    }
}
