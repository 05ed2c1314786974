//! Checks which of several pools serves a claim with a selector.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod leaving;
mod shard_syntax;
mod shards;
mod supply;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::sync::Arc;
use warmpool::cache::index::Index;
use warmpool::cache::reconcile_request::ReconcileRequest;
use warmpool::cache::snapshot::{PoolPresence, PoolSnapshot};
use warmpool::controllers::claim::decide;
use warmpool::model::Key;
use warmpool::model::claim::Claim;
use warmpool::model::request::{PodChange, PodWrite};
use warmpool::model::stored::{StoredClaim, StoredPod, StoredPool};
use warmpool::planner::claim::plan;
use warmpool::planner::pool_snapshot;
use warmpool::planner::select_pool::select_all_pools;
use warmpool::telemetry::metrics::Metrics;

fn now() -> Timestamp {
    "2026-01-31T12:00:00Z".parse().unwrap()
}

fn pool(index: &mut Index, name: &str, more: Value) -> Vec<ReconcileRequest> {
    let mut object = json!({
        "metadata": {"namespace": "default", "name": name, "uid": name, "labels": {"lang": "python"}},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "main", "image": "image"}]}}},
        "status": {"updateRevision": "new"},
    });
    json_patch::merge(&mut object, &more);
    index.apply_pool(&serde_json::from_value::<StoredPool>(object).unwrap())
}

fn pod(index: &mut Index, pool: &str, name: &str, revision: &str, claim: Option<&str>) {
    let object = stored_pod(pool, name, revision, claim);
    index.apply_pod(&serde_json::from_value::<StoredPod>(object).unwrap());
}

fn stored_pod(pool: &str, name: &str, revision: &str, claim: Option<&str>) -> Value {
    let (kind, owner) = claim.map_or(("Pool", pool), |claim| ("SandboxClaim", claim));
    json!({
        "metadata": {
            "namespace": "default", "name": name, "uid": name, "resourceVersion": "1",
            "creationTimestamp": "2026-01-31T11:59:00Z",
            "labels": {
                "warmpool.dev/pool": pool, "warmpool.dev/revision": revision,
                "warmpool.dev/state": if claim.is_some() { "claimed" } else { "warm" },
            },
            "ownerReferences": [{
                "apiVersion": "warmpool.dev/v1alpha1", "kind": kind, "name": owner, "uid": owner, "controller": true,
            }],
        },
        "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-31T11:59:30Z"},
        ]},
    })
}

fn claim(index: &mut Index, more: Value) -> Vec<ReconcileRequest> {
    let mut object = json!({
        "metadata": {
            "namespace": "default", "name": "run", "uid": "run", "resourceVersion": "1",
            "creationTimestamp": "2026-01-31T12:00:00Z",
        },
        "spec": {"poolSelector": {"matchLabels": {"lang": "python"}}},
    });
    json_patch::merge(&mut object, &more);
    index.apply_claim(
        &serde_json::from_value::<StoredClaim>(object).unwrap(),
        true,
        now(),
    )
}

/// Notes a write on the pod `name` and returns it.
fn expect_write(index: &mut Index, name: &str, change: PodChange) -> Arc<PodWrite> {
    let write = Arc::new(PodWrite {
        sandbox: index.pod(&Key::new("default", name)).unwrap(),
        change,
        reason: "",
    });
    index.expectations.write(Arc::clone(&write));
    write
}

/// The binding of a pod of `pool` to the claim `run`, or to a claim with another UID.
fn binding(index: &Index, pool: &str, uid: &str) -> PodChange {
    let claim = index.claim(&Key::new("default", "run")).unwrap();
    let uid = uid.into();
    PodChange::Bind {
        claim: Arc::new(Claim {
            uid,
            ..(*claim).clone()
        }),
        pool: index.pool(&Key::new("default", pool)).unwrap(),
    }
}

/// The pools to reconcile because the claim's reconcile selects another pool.
fn reassign_pool(index: &mut Index, claim: &Claim) -> Vec<ReconcileRequest> {
    decide(index, &claim.key, now()).to_reconcile
}

fn snapshot(index: &Index, pool: &str) -> PoolSnapshot {
    pool_snapshot(index, &Key::new("default", pool), now(), 1).unwrap()
}

/// The pools whose snapshot holds the claim.
fn serving_pools(index: &Index) -> Vec<String> {
    let keys = index.pool_keys();
    let serves = |key: &&Key| !snapshot(index, &key.name).claims.is_empty();
    keys.iter()
        .filter(serves)
        .map(|key| key.name.to_string())
        .collect()
}

/// Pools `a`, `b` and `c` with these numbers of available sandboxes, and the waiting claim `run`.
fn pools_with(stock: [usize; 3]) -> Index {
    let mut index = Index::default();
    for (name, count) in ["a", "b", "c"].iter().zip(stock) {
        pool(&mut index, name, json!({}));
        for number in 0..count {
            pod(&mut index, name, &format!("{name}-{number}"), "new", None);
        }
    }
    claim(&mut index, json!({}));
    index
}

#[test]
fn the_pool_with_the_most_available_serves_the_claim_and_ties_go_by_name() {
    assert_eq!(serving_pools(&pools_with([1, 3, 2])), ["b"]);
    assert_eq!(serving_pools(&pools_with([2, 0, 2])), ["a"]);
    assert_eq!(serving_pools(&pools_with([0, 0, 0])), ["a"]);
}

#[test]
fn a_claim_moves_to_the_pool_that_can_serve_it_first() {
    let mut index = pools_with([0, 0, 0]);
    pod(&mut index, "c", "c-0", "new", None);
    assert_eq!(serving_pools(&index), ["c"]);
}

#[test]
fn a_pool_that_may_create_goes_before_a_pool_that_may_not() {
    let mut index = pools_with([0, 0, 0]);
    pool(&mut index, "a", json!({"spec": {"capacity": {"maxTotal": 0}}}));
    assert_eq!(serving_pools(&index), ["b"]);
    pool(&mut index, "b", json!({"spec": {"replicas": "many"}}));
    assert_eq!(serving_pools(&index), ["c"]);
}

#[test]
fn only_sandboxes_that_the_claim_accepts_count() {
    let mut index = pools_with([0, 0, 1]);
    for number in 0..3 {
        pod(&mut index, "a", &format!("a-{number}"), "old", None);
    }
    assert_eq!(serving_pools(&index), ["a"]);
    claim(&mut index, json!({"spec": {"revisionPolicy": "Latest"}}));
    assert_eq!(serving_pools(&index), ["c"]);
}

#[test]
fn a_claim_stays_with_the_pool_whose_sandbox_it_holds() {
    let mut index = pools_with([0, 0, 5]);
    claim(&mut index, json!({"spec": {"replicas": 2}}));
    pod(&mut index, "b", "b-0", "new", Some("run"));
    assert_eq!(serving_pools(&index), ["b"]);
}

#[test]
fn a_claim_stays_with_the_pool_of_a_sandbox_whose_binding_the_watch_has_not_shown() {
    let mut index = pools_with([1, 3, 0]);
    claim(
        &mut index,
        json!({"metadata": {"resourceVersion": "2"}, "spec": {"replicas": 2}}),
    );
    let bind = binding(&index, "a", "run");
    expect_write(&mut index, "a-0", bind);
    assert_eq!(serving_pools(&index), ["a"]);
}

#[test]
fn every_matching_pool_is_reconciled_when_a_claim_comes_and_no_other() {
    let mut index = Index::default();
    for name in ["a", "b"] {
        pool(&mut index, name, json!({}));
    }
    pool(
        &mut index,
        "other",
        json!({"metadata": {"labels": {"lang": "ruby"}}}),
    );
    let to_reconcile = claim(&mut index, json!({}));
    let is_requested = |name: &str| to_reconcile.contains(&ReconcileRequest::Pool(Key::new("default", name)));
    assert!(is_requested("a") && is_requested("b") && !is_requested("other"));
    let to_reconcile = pool(&mut index, "other", json!({}));
    assert!(to_reconcile.contains(&ReconcileRequest::Claim(Key::new("default", "run"))));
    assert_eq!(serving_pools(&index), ["a"]);
}

#[test]
fn a_pool_that_leaves_a_claim_to_another_has_that_pool_reconciled_once() {
    let mut index = pools_with([0, 2, 0]);
    let b = [ReconcileRequest::Pool(Key::new("default", "b"))];
    let selected_pools = snapshot(&index, "a").selected_pools;
    assert_eq!(index.assign_pools(&selected_pools), b);
    assert_eq!(index.assign_pools(&selected_pools), []);
    let selected_pools = snapshot(&index, "b").selected_pools;
    assert_eq!(index.assign_pools(&selected_pools), []);
}

#[test]
fn another_pool_is_selected_when_the_assigned_pool_is_being_deleted_or_gone() {
    let mut index = pools_with([1, 0, 0]);
    let waiting = index.claim(&Key::new("default", "run")).unwrap();
    let a = [ReconcileRequest::Pool(Key::new("default", "a"))];
    let selected_pools = snapshot(&index, "a").selected_pools;
    assert_eq!(index.assign_pools(&selected_pools), a);
    assert_eq!(reassign_pool(&mut index, &waiting), []);
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let to_reconcile = pool(&mut index, "a", deleted);
    assert!(to_reconcile.contains(&ReconcileRequest::Claim(waiting.key.clone())));
    let both = ["a", "b"].map(|pool| ReconcileRequest::Pool(Key::new("default", pool)));
    assert_eq!(reassign_pool(&mut index, &waiting), both);
}

#[test]
fn the_pool_that_a_claim_leaves_is_reconciled_too() {
    let mut index = pools_with([0, 1, 0]);
    let selected_pools = snapshot(&index, "b").selected_pools;
    index.assign_pools(&selected_pools);
    for number in 0..2 {
        pod(&mut index, "c", &format!("c-{number}"), "new", None);
    }
    let selected_pools = snapshot(&index, "c").selected_pools;
    let both = ["b", "c"].map(|pool| ReconcileRequest::Pool(Key::new("default", pool)));
    assert_eq!(index.assign_pools(&selected_pools), both);
}

#[test]
fn a_claim_keeps_its_pool_until_another_is_better() {
    let rejected = json!({"status": {"conditions": [{
        "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no",
        "lastTransitionTime": "2026-01-31T12:00:00Z",
    }]}});
    let mut index = pools_with([0, 0, 0]);
    pool(&mut index, "a", rejected);
    assert_eq!(serving_pools(&index), ["b"]);
    let selected_pools = snapshot(&index, "b").selected_pools;
    index.assign_pools(&selected_pools);
    pool(&mut index, "a", json!({}));
    assert_eq!(
        serving_pools(&index),
        ["b"],
        "pool b creates a sandbox for the claim"
    );
    pod(&mut index, "a", "a-0", "new", None);
    assert_eq!(serving_pools(&index), ["a"]);
}

#[test]
fn a_claim_whose_binding_is_rejected_counts_where_it_is_tried_again() {
    let mut index = pools_with([0, 1, 0]);
    let selected_pools = snapshot(&index, "b").selected_pools;
    index.assign_pools(&selected_pools);
    let waiting = index.claim(&Key::new("default", "run")).unwrap();
    let bind = binding(&index, "b", "run");
    expect_write(&mut index, "b-0", bind);
    let waiting_in = |index: &Index, pool: &str| {
        index.stats(now(), &select_all_pools(index, now()))[&Key::new("default", pool)].waiting
    };
    assert_eq!(waiting_in(&index, "b"), 0, "the first binding is in flight");
    assert!(!snapshot(&index, "b").claims[0].waits());
    let again = index.note_rejection(&waiting, "not so", now());
    assert!(again.contains(&ReconcileRequest::Pool(Key::new("default", "b"))));
    let claims = snapshot(&index, "b").claims;
    assert!(claims[0].waits() && claims[0].needs() == 0);
    assert_eq!(["a", "b", "c"].map(|pool| waiting_in(&index, pool)), [0, 1, 0]);
}

#[test]
fn a_claim_for_the_latest_keeps_no_old_sandbox_from_others() {
    let mut index = pools_with([0, 0, 0]);
    pod(&mut index, "c", "c-0", "old", None);
    let latest = json!({
        "metadata": {"name": "latest", "uid": "latest", "creationTimestamp": "2026-01-31T11:00:00Z"},
        "spec": {"poolRef": {"name": "c"}, "poolSelector": null, "revisionPolicy": "Latest"},
    });
    claim(&mut index, latest);
    let selected_pools = snapshot(&index, "c").selected_pools;
    assert_eq!(
        selected_pools.into_values().collect::<Vec<_>>(),
        [Key::new("default", "c")]
    );
}

#[test]
fn a_later_claim_does_not_count_on_sandboxes_that_an_earlier_claim_waits_for() {
    let mut index = pools_with([2, 1, 0]);
    claim(
        &mut index,
        json!({"metadata": {"creationTimestamp": "2026-01-31T12:00:01Z"}}),
    );
    assert_eq!(serving_pools(&index), ["a"]);
    let batch = json!({"metadata": {"name": "batch", "uid": "batch"},
        "spec": {"poolRef": {"name": "a"}, "poolSelector": null, "replicas": 3}});
    claim(&mut index, batch);
    let selected_pools = snapshot(&index, "b").selected_pools;
    assert_eq!(
        selected_pools.into_values().collect::<Vec<_>>(),
        [Key::new("default", "b")]
    );
}

#[test]
fn claims_that_come_together_spread_over_the_available_sandboxes() {
    let mut index = pools_with([2, 1, 0]);
    for name in ["second", "third"] {
        claim(&mut index, json!({"metadata": {"name": name, "uid": name}}));
    }
    let served = |pool: &str| snapshot(&index, pool).claims.len();
    assert_eq!((served("a"), served("b"), served("c")), (2, 1, 0));
}

#[test]
fn a_pool_that_can_never_have_enough_goes_after_a_pool_that_can() {
    let mut index = pools_with([2, 0, 0]);
    pool(&mut index, "a", json!({"spec": {"capacity": {"maxTotal": 2}}}));
    claim(&mut index, json!({"spec": {"replicas": 3}}));
    assert_eq!(serving_pools(&index), ["b"]);
}

#[test]
fn another_pool_is_selected_when_the_labels_of_the_assigned_pool_change() {
    let mut index = pools_with([1, 0, 0]);
    let waiting = index.claim(&Key::new("default", "run")).unwrap();
    let selected_pools = snapshot(&index, "a").selected_pools;
    index.assign_pools(&selected_pools);
    let to_reconcile = pool(&mut index, "a", json!({"metadata": {"labels": {"lang": "ruby"}}}));
    assert!(to_reconcile.contains(&ReconcileRequest::Claim(waiting.key.clone())));
    let both = ["a", "b"].map(|pool| ReconcileRequest::Pool(Key::new("default", pool)));
    assert_eq!(reassign_pool(&mut index, &waiting), both);
    assert_eq!(serving_pools(&index), ["b"]);
}

#[test]
fn a_claim_that_holds_sandboxes_of_a_pool_keeps_the_pool_whatever_its_labels() {
    let mut index = pools_with([0, 5, 0]);
    claim(&mut index, json!({"spec": {"replicas": 2}}));
    pod(&mut index, "a", "a-0", "new", Some("run"));
    pool(&mut index, "a", json!({"metadata": {"labels": {"lang": "ruby"}}}));
    assert_eq!(serving_pools(&index), ["a"]);
}

fn presence(index: &Index) -> PoolPresence {
    let claim = Key::new("default", "run");
    index.claim_snapshot(&claim, now()).unwrap().pool_presence
}

#[test]
fn a_pool_that_is_being_deleted_serves_no_claim() {
    let mut index = pools_with([1, 1, 1]);
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    for name in ["a", "b"] {
        pool(&mut index, name, deleted.clone());
    }
    assert_eq!(presence(&index), PoolPresence::Present);
    pool(&mut index, "c", deleted);
    assert_eq!(presence(&index), PoolPresence::Terminating);
}

#[test]
fn a_claim_that_holds_sandboxes_of_a_pool_that_is_gone_is_served_by_no_other() {
    let mut index = pools_with([0, 1, 0]);
    claim(&mut index, json!({"spec": {"replicas": 2}}));
    pod(&mut index, "gone", "gone-0", "new", Some("run"));
    assert_eq!(presence(&index), PoolPresence::Absent);
}

#[test]
fn the_defaults_of_a_pool_decide_which_of_its_sandboxes_count() {
    let mut index = pools_with([0, 0, 1]);
    for number in 0..3 {
        pod(&mut index, "a", &format!("a-{number}"), "old", None);
    }
    pool(
        &mut index,
        "a",
        json!({"spec": {"claimDefaults": {"revisionPolicy": "Latest"}}}),
    );
    assert_eq!(serving_pools(&index), ["c"]);
}

#[test]
fn a_claim_for_more_than_a_pool_ever_keeps_warm_goes_to_another() {
    let mut index = pools_with([1, 0, 0]);
    claim(&mut index, json!({"spec": {"replicas": 2, "onEmpty": "Wait"}}));
    assert_eq!(serving_pools(&index), ["a"], "no pool keeps two warm");
    pool(&mut index, "b", json!({"spec": {"capacity": {"minTotal": 2}}}));
    assert_eq!(serving_pools(&index), ["b"]);
}

#[test]
fn a_claim_whose_rejected_binding_waits_moves_at_once_when_its_pool_is_gone() {
    for change in [
        json!({"metadata": {"labels": {"lang": "ruby"}}}),
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    ] {
        let mut index = pools_with([0, 2, 1]);
        let waiting = index.claim(&Key::new("default", "run")).unwrap();
        let selected_pools = snapshot(&index, "b").selected_pools;
        index.assign_pools(&selected_pools);
        let again = index.note_rejection(&waiting, "not so", now() + SignedDuration::from_secs(5));
        assert!(again.contains(&ReconcileRequest::Pool(Key::new("default", "b"))));
        assert_eq!(serving_pools(&index), ["b"], "it is tried again there");
        pool(&mut index, "b", change);
        let both = ["b", "c"].map(|pool| ReconcileRequest::Pool(Key::new("default", pool)));
        assert_eq!(
            reassign_pool(&mut index, &waiting),
            both,
            "I7: a claim waits for a pool that it has lost"
        );
        assert_eq!(serving_pools(&index), ["c"]);
    }
}

#[test]
fn a_pool_that_has_enough_goes_before_one_that_ever_will() {
    for on_empty in ["Fail", "Wait"] {
        let mut index = pools_with([0, 5, 0]);
        pool(&mut index, "a", json!({"spec": {"replicas": 4}}));
        pool(&mut index, "b", json!({"spec": {"replicas": 2}}));
        claim(&mut index, json!({"spec": {"replicas": 4, "onEmpty": on_empty}}));
        assert_eq!(serving_pools(&index), ["b"], "I7: five are available, {on_empty}");
        // What it takes is not available to the next.
        let second = json!({
            "metadata": {"name": "second", "uid": "second", "creationTimestamp": "2026-01-31T12:00:01Z"},
            "spec": {"replicas": 4, "onEmpty": on_empty},
        });
        claim(&mut index, second);
        assert_eq!(serving_pools(&index), ["a", "b"], "{on_empty}");
    }
}

#[test]
fn the_pool_that_a_claim_names_decides_whether_it_has_one_whatever_it_holds() {
    let mut index = pools_with([1, 1, 0]);
    pod(&mut index, "a", "a-9", "new", Some("run"));
    let named =
        |name: &str| json!({"spec": {"poolSelector": null, "poolRef": {"name": name}, "replicas": 2}});
    claim(&mut index, named("b"));
    assert_eq!(presence(&index), PoolPresence::Present);
    claim(&mut index, named("nowhere"));
    assert_eq!(
        presence(&index),
        PoolPresence::Absent,
        "I9: nobody tells the claim that its pool does not exist"
    );
    pod(&mut index, "gone", "gone-0", "new", Some("run"));
    index.delete_pod(&serde_json::from_value(stored_pod("a", "a-9", "new", Some("run"))).unwrap());
    claim(&mut index, named("b"));
    assert_eq!(presence(&index), PoolPresence::Present);
}

#[test]
fn a_half_bound_claim_is_published_with_the_defaults_of_the_pool_whose_sandboxes_it_holds() {
    let mut index = pools_with([0, 5, 0]);
    let defaults = json!({"lifetimeSeconds": 60});
    pool(&mut index, "a", json!({"spec": {"claimDefaults": defaults}}));
    pod(&mut index, "a", "a-0", "new", Some("run"));
    let snapshot = index.claim_snapshot(&Key::new("default", "run"), now()).unwrap();
    let status = plan(&snapshot).status.unwrap();
    let end = status.expiration_time.map(|time| time.0);
    assert_eq!(end, Some(now() + SignedDuration::from_secs(61)));
}

#[test]
fn a_claim_that_ends_unbound_keeps_the_defaults_of_its_assigned_pool() {
    let mut index = pools_with([0, 0, 0]);
    let defaults = json!({"ttlSecondsAfterFinished": 600});
    pool(&mut index, "a", json!({"spec": {"claimDefaults": defaults}}));
    let selected_pools = snapshot(&index, "a").selected_pools;
    index.assign_pools(&selected_pools);
    claim(&mut index, json!({"spec": {"shutdownTime": now().to_string()}}));
    let snapshot = index.claim_snapshot(&Key::new("default", "run"), now()).unwrap();
    let status = serde_json::to_value(plan(&snapshot).status.unwrap()).unwrap();
    assert_eq!(
        (&status["phase"], &status["pool"]),
        (&json!("Expired"), &json!("a"))
    );
    assert_eq!(status["defaults"], defaults);
}

#[test]
fn a_claim_with_a_selector_counts_once_and_for_the_pool_that_serves_it() {
    let mut index = Index::default();
    for name in ["a", "b"] {
        pool(
            &mut index,
            name,
            json!({"spec": {"autoscaling": {"maxReplicas": 9}}}),
        );
    }
    pod(&mut index, "b", "b-0", "new", None);
    claim(&mut index, json!({"spec": {"replicas": 1}}));
    let metrics = Metrics::default();
    for name in ["a", "b", "a", "b"] {
        warmpool::controllers::pool::decide(&mut index, &Key::new("default", name), now(), 1, &metrics);
    }
    let counted = |name: &str| {
        let pool = index.pool(&Key::new("default", name)).unwrap();
        index
            .pool_memory(&pool)
            .unwrap()
            .demand
            .as_ref()
            .unwrap()
            .arrivals
            .seen
            .total()
    };
    assert_eq!((counted("a"), counted("b")), (0.0, 1.0));
}
