//! Checks which available and future sandboxes of a pool count for a selector claim.

use super::{binding, claim, expect_write, now, pod, pool, pools_with, serving_pools, stored_pod};
use serde_json::json;
use warmpool::cache::index::Index;
use warmpool::cache::reconcile_request::ReconcileRequest;
use warmpool::model::Key;
use warmpool::model::request::PodChange;

#[test]
fn a_pool_that_keeps_none_and_creates_none_for_the_claim_is_selected_last() {
    let creates_none = json!({"spec": {"replicas": 0, "claimDefaults": {"onEmpty": "Wait"}}});
    let creates_one = json!({"spec": {"replicas": 0}});
    let mut index = Index::default();
    pool(&mut index, "a", creates_none);
    pool(&mut index, "b", creates_one);
    claim(&mut index, json!({}));
    assert_eq!(serving_pools(&index), ["b"]);
    let mut draining = stored_pod("a", "a-1", "new", None);
    draining["metadata"]["labels"]["warmpool.dev/state"] = json!("draining");
    index.apply_pod(&serde_json::from_value(draining).unwrap());
    assert_eq!(serving_pools(&index), ["b"], "no claim gets a draining sandbox");
    pod(&mut index, "a", "a-0", "new", None);
    assert_eq!(serving_pools(&index), ["a"], "an available sandbox counts");
}

#[test]
fn a_claim_goes_to_another_pool_when_the_sandboxes_of_its_pool_were_rejected() {
    let mut index = pools_with([2, 1, 0]);
    let run = index.claim(&Key::new("default", "run")).unwrap();
    for (name, serving_pool) in [("a-0", "a"), ("a-1", "b"), ("b-0", "a")] {
        let rejected_sandbox = index.pod(&Key::new("default", name)).unwrap();
        index.note_rejected_sandbox(&run, &rejected_sandbox);
        assert_eq!(serving_pools(&index), [serving_pool], "after {name}");
    }
}

#[test]
fn a_sandbox_that_is_being_bound_to_another_claim_or_deleted_does_not_count() {
    let full = || {
        let mut index = pools_with([3, 0, 0]);
        pool(&mut index, "a", json!({"spec": {"capacity": {"maxTotal": 3}}}));
        claim(&mut index, json!({"spec": {"replicas": 3}}));
        index
    };
    assert_eq!(serving_pools(&full()), ["a"]);
    let mut index = full();
    let bind = binding(&index, "a", "another");
    expect_write(&mut index, "a-0", bind);
    assert_eq!(serving_pools(&index), ["b"], "while one is being bound");
    let mut index = full();
    let deletion = expect_write(&mut index, "a-0", PodChange::Delete);
    assert_eq!(serving_pools(&index), ["b"], "while one is being deleted");
    index.expectations.deleted(&deletion);
    assert_eq!(serving_pools(&index), ["b"], "once the deletion is answered");
}

#[test]
fn the_pool_whose_sandboxes_a_claim_holds_is_reconciled_for_the_claim_whatever_its_labels() {
    let mut index = pools_with([1, 0, 0]);
    pod(&mut index, "a", "a-1", "new", Some("run"));
    pool(&mut index, "a", json!({"metadata": {"labels": {"lang": "ruby"}}}));
    let run = index.claim(&Key::new("default", "run")).unwrap();
    let requests = index.pools_for(&run);
    assert!(
        requests.contains(&ReconcileRequest::Pool(Key::new("default", "a"))),
        "{requests:?}"
    );
}

#[test]
fn a_pod_of_another_namespace_is_no_sandbox_of_the_claim_whatever_owner_it_names() {
    let mut index = pools_with([0, 0, 0]);
    let mut stranger = stored_pod("a", "stranger", "new", Some("run"));
    stranger["metadata"]["namespace"] = json!("elsewhere");
    index.apply_pod(&serde_json::from_value(stranger).unwrap());
    let run = Key::new("default", "run");
    let claim = index.claim(&run).unwrap();
    assert_eq!(index.held_by(&claim).count(), 0);
    assert!(index.claim_snapshot(&run, now()).unwrap().sandboxes.is_empty());
}
