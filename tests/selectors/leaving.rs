//! Checks that a claim gets a sandbox of a node that has to go only where no pool has another one for it.

use super::{claim, pod, pool, pools_with, serving_pools, stored_pod};
use crate::now;
use serde_json::json;
use std::collections::HashSet;
use warmpool::cache::index::Index;
use warmpool::cache::watch::Indexed;
use warmpool::model::stored::StoredNode;

fn node(index: &mut Index, name: &str, cordoned: bool) {
    let node = json!({"metadata": {"name": name}, "spec": {"unschedulable": cordoned}});
    index.apply_node(&serde_json::from_value(node).unwrap(), now());
}

/// Adds a sandbox of `pool` that is available on `node`.
fn pod_on(index: &mut Index, pool: &str, name: &str, node: &str) {
    let mut stored = stored_pod(pool, name, "new", None);
    stored["spec"]["nodeName"] = json!(node);
    index.apply_pod(&serde_json::from_value(stored).unwrap());
}

/// Pools with so many available sandboxes on a node that stays, and on one that has to go.
fn staying_and_leaving(stock: [(usize, usize); 3]) -> Index {
    let mut index = Index::default();
    StoredNode::retain(&mut index, &HashSet::new());
    node(&mut index, "stays", false);
    node(&mut index, "goes", true);
    for (name, (staying, leaving)) in ["a", "b", "c"].iter().zip(stock) {
        pool(&mut index, name, json!({}));
        for number in 0..staying + leaving {
            let node = if number < staying { "stays" } else { "goes" };
            pod_on(&mut index, name, &format!("{name}-{number}"), node);
        }
    }
    claim(&mut index, json!({}));
    index
}

#[test]
fn a_pool_with_a_sandbox_that_stays_goes_before_one_with_many_that_leave() {
    let rows = [
        ([(0, 5), (1, 0), (0, 0)], "b"),
        ([(1, 5), (2, 0), (0, 9)], "b"),
        ([(1, 0), (1, 3), (0, 0)], "b"),
        ([(0, 1), (0, 2), (0, 0)], "b"),
        ([(0, 0), (0, 0), (0, 1)], "c"),
    ];
    for (stock, serving) in rows {
        assert_eq!(
            serving_pools(&staying_and_leaving(stock)),
            [serving],
            "I6: these stay and leave: {stock:?}"
        );
    }
}

#[test]
fn a_claim_for_several_does_not_wait_while_a_pool_has_as_many_on_whatever_node() {
    let several = json!({"spec": {"replicas": 2}});
    let mut index = staying_and_leaving([(1, 0), (0, 2), (0, 0)]);
    claim(&mut index, several.clone());
    assert_eq!(serving_pools(&index), ["b"], "I7: it may take both now");
    let mut index = staying_and_leaving([(1, 3), (2, 0), (0, 2)]);
    claim(&mut index, several);
    assert_eq!(serving_pools(&index), ["b"]);
}

#[test]
fn a_claim_moves_when_the_node_of_its_pools_sandboxes_is_cordoned_or_gone() {
    let mut index = staying_and_leaving([(2, 0), (0, 0), (0, 0)]);
    pod_on(&mut index, "b", "b-0", "elsewhere");
    node(&mut index, "elsewhere", false);
    assert_eq!(serving_pools(&index), ["a"]);
    node(&mut index, "stays", true);
    assert_eq!(serving_pools(&index), ["b"]);
    node(&mut index, "stays", false);
    assert_eq!(serving_pools(&index), ["a"]);
    let gone = json!({"metadata": {"name": "stays"}});
    index.delete_node(&serde_json::from_value(gone).unwrap());
    node(&mut index, "elsewhere", true);
    assert_eq!(
        serving_pools(&index),
        ["b"],
        "nothing runs on a node that is gone"
    );
}

#[test]
fn what_an_earlier_claim_takes_is_first_what_stays() {
    let mut index = staying_and_leaving([(1, 1), (0, 0), (0, 0)]);
    pod_on(&mut index, "b", "b-0", "goes");
    pod_on(&mut index, "b", "b-1", "goes");
    let earlier = json!({
        "metadata": {"name": "earlier", "uid": "earlier", "creationTimestamp": "2026-01-31T11:00:00Z"},
        "spec": {"poolRef": {"name": "a"}, "poolSelector": null},
    });
    claim(&mut index, earlier);
    assert_eq!(serving_pools(&index), ["a", "b"], "a has one left, and it leaves");
}

#[test]
fn without_nodes_every_available_sandbox_counts() {
    let mut index = pools_with([1, 0, 0]);
    pod(&mut index, "b", "b-0", "new", None);
    pod_on(&mut index, "b", "b-1", "unknown");
    assert_eq!(serving_pools(&index), ["b"]);
}
