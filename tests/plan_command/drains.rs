//! Checks `warmpool plan` on nodes that have to go.

use super::{POOL, actions, plan, stream, warm};

/// A node with these fields of its spec.
fn node(name: &str, spec: &str) -> String {
    format!("apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n")
}

/// A sandbox on this node.
fn on(node: &str, name: &str) -> String {
    warm(name).replace("nodeName: node-1", &format!("nodeName: {node}"))
}

/// Phase, action, pod and reason of each action of the phase *evict*.
fn evictions(documents: &[&str]) -> Vec<String> {
    let plan = plan(&stream(documents));
    let of = |action: &serde_json::Value, key: &str| action[key].as_str().unwrap_or("-").to_string();
    let all = actions(&plan).iter().map(|action| {
        let keys = ["phase", "action", "pod", "reason"];
        keys.map(|key| of(action, key)).join(" ")
    });
    all.filter(|line| line.starts_with("eviction")).collect()
}

#[test]
fn a_sandbox_on_a_cordoned_node_goes_once_another_is_available_in_its_place() {
    let (a, b, c, d) = (warm("a"), on("two", "b"), on("two", "c"), on("two", "d"));
    let cordoned = node("node-1", "unschedulable: true");
    let replaced = evictions(&[POOL, &a, &b, &c, &d, &cordoned]);
    assert_eq!(replaced, ["eviction DeletePod a NodeCordoned"]);
    assert_eq!(evictions(&[POOL, &a, &b, &c, &cordoned]), [""; 0]);
    assert_eq!(evictions(&[POOL, &a, &b, &c, &d]), [""; 0]);
}

#[test]
fn a_taint_leaves_alone_who_tolerates_it() {
    let (b, c, d) = (on("two", "b"), on("two", "c"), on("two", "d"));
    let tainted = node("node-1", "taints: [{key: team, value: a, effect: NoSchedule}]");
    let tolerating = warm("a").replace(
        "containers: []",
        "containers: [], tolerations: [{key: team, operator: Exists}]",
    );
    assert_eq!(evictions(&[POOL, &tolerating, &b, &c, &d, &tainted]), [""; 0]);
    let replaced = evictions(&[POOL, &warm("a"), &b, &c, &d, &tainted]);
    assert_eq!(replaced, ["eviction DeletePod a NodeTainted"]);
}

#[test]
fn a_node_that_the_file_lacks_may_exist() {
    let (a, b) = (warm("a"), on("two", "b"));
    assert_eq!(evictions(&[POOL, &a, &b, &node("two", "")]), [""; 0]);
}

#[test]
fn a_drain_whose_time_is_over_waits_for_no_replacement() {
    let added = |at: &str| {
        let taint = format!("taints: [{{key: team, effect: NoSchedule, timeAdded: '{at}'}}]");
        node("node-1", &taint)
    };
    let (a, b, c) = (warm("a"), on("two", "b"), on("two", "c"));
    assert_eq!(
        evictions(&[POOL, &a, &b, &c, &added("2026-01-31T11:50:01Z")]),
        [""; 0]
    );
    let broken = evictions(&[POOL, &a, &b, &c, &added("2026-01-31T11:50:00Z")]);
    assert_eq!(broken, ["eviction DeletePod a DrainDeadlineExceeded"]);
    let at_once = POOL.replace("replicas: 3", "replicas: 3\n  disruption: {drainPolicy: Break}");
    let broken = evictions(&[&at_once, &a, &b, &c, &node("node-1", "unschedulable: true")]);
    assert_eq!(broken, ["eviction DeletePod a DrainPolicyBreak"]);
}
