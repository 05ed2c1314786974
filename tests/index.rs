//! Checks the index with watch events, late answers and writes that the watch has not shown.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::time::Instant;
use warmpool::api::claim::Phase;
use warmpool::cache::expectations::{EXPECTATION_TIMEOUT, Expectations};
use warmpool::cache::index::Index;
use warmpool::cache::reconcile_request::ReconcileRequest;
use warmpool::cache::snapshot::{PoolSnapshot, WaitReason, WarmUpFailures};
use warmpool::model::Key;
use warmpool::model::sandbox::Sandbox;
use warmpool::model::stored::{StoredClaim, StoredPod, StoredPool, StoredRevision};

fn pool(uid: &str, defaults: Value) -> StoredPool {
    let pool = json!({
        "metadata": {"namespace": "default", "name": "python", "uid": uid, "resourceVersion": "1"},
        "spec": {"replicas": 1, "template": {"spec": {"containers": []}}, "claimDefaults": defaults},
    });
    serde_json::from_value(pool).unwrap()
}

fn index() -> Index {
    let mut index = Index::default();
    index.apply_pool(&pool("pool", json!({})));
    index.apply_claim(&claim(10, ""), true, Timestamp::UNIX_EPOCH);
    index
}

fn claim(version: u32, phase: &str) -> StoredClaim {
    let mut claim = json!({
        "metadata": {"namespace": "default", "name": "run", "uid": "claim", "resourceVersion": version.to_string()},
        "spec": {"poolRef": {"name": "python"}},
    });
    if !phase.is_empty() {
        claim["status"] = json!({"phase": phase});
    }
    serde_json::from_value(claim).unwrap()
}

fn snapshot(index: &Index) -> PoolSnapshot {
    index
        .pool_snapshot(&Key::new("default", "python"), Timestamp::UNIX_EPOCH, 0)
        .unwrap()
}

#[test]
fn a_claim_whose_pending_status_was_just_written_is_still_served() {
    let mut index = index();
    let claim = snapshot(&index).claims[0].claim.clone();
    index.published_claim(&claim, Some(Phase::Pending), Some("11"));
    assert!(snapshot(&index).claims[0].needs() == 1);
    assert_eq!(
        index.as_written(&claim).resource_version,
        "11",
        "the binding has to name the version of this write"
    );
}

#[test]
fn a_claim_that_was_just_bound_is_not_served_again_while_the_watch_lags() {
    let mut index = index();
    let bound = snapshot(&index).claims[0].claim.clone();
    index.published_claim(&bound, Some(Phase::Bound), Some("12"));
    assert!(snapshot(&index).claims[0].needs() == 0);
    index.apply_claim(&claim(11, "Pending"), true, Timestamp::UNIX_EPOCH);
    assert!(
        snapshot(&index).claims[0].needs() == 0,
        "the event is older than the write"
    );
    index.apply_claim(&claim(12, "Bound"), true, Timestamp::UNIX_EPOCH);
    assert!(snapshot(&index).claims.is_empty());
    assert!(!index.awaits("claim"));
}

#[test]
fn a_write_that_the_watch_has_shown_before_the_answer_is_not_expected() {
    let mut index = index();
    let waiting = snapshot(&index).claims[0].claim.clone();
    index.apply_claim(&claim(11, "Pending"), true, Timestamp::UNIX_EPOCH);
    index.published_claim(&waiting, Some(Phase::Pending), Some("11"));
    assert!(!index.awaits("claim"));
}

fn revision(number: u32, version: u32) -> StoredRevision {
    serde_json::from_value(json!({
        "metadata": {
            "namespace": "default", "name": "python-abc", "uid": "revision", "resourceVersion": version.to_string(),
            "labels": {"warmpool.dev/pool": "python", "warmpool.dev/revision": "abc"},
            "ownerReferences": [{
                "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool", "name": "python", "uid": "pool",
                "controller": true,
            }],
        },
        "revision": number,
        "data": {"spec": {"template": {"spec": {"containers": []}}}},
    }))
    .unwrap()
}

fn pod(version: u32) -> StoredPod {
    serde_json::from_value(json!({
        "metadata": {
            "namespace": "default", "name": "python-1", "uid": "pod-1", "resourceVersion": version.to_string(),
            "labels": {"warmpool.dev/pool": "python"},
        },
    }))
    .unwrap()
}

#[test]
fn a_late_event_does_not_restore_an_older_revision() {
    let mut index = index();
    assert!(!index.apply_revision(&revision(3, 30)).is_empty());
    assert!(index.apply_revision(&revision(1, 20)).is_empty());
    assert_eq!(snapshot(&index).revisions[0].number, 3);
    assert!(!index.apply_revision(&revision(4, 40)).is_empty());
    assert_eq!(snapshot(&index).revisions[0].number, 4);
}

#[test]
fn a_late_answer_does_not_bring_back_a_revision_that_is_gone() {
    let mut index = index();
    let before = index.watch_progress();
    index.learn_revision(&revision(1, 20), before);
    assert_eq!(
        snapshot(&index).revisions.len(),
        1,
        "the answer came before the watch event"
    );
    index.apply_revision(&revision(1, 20));
    index.delete_revision(&revision(1, 21));
    index.learn_revision(&revision(1, 20), before);
    assert!(snapshot(&index).revisions.is_empty());
}

#[test]
fn a_late_read_does_not_bring_back_a_pod_that_is_gone() {
    let (mut index, key) = (index(), Key::new("default", "python-1"));
    let before = index.watch_progress();
    index.apply_pod(&pod(20));
    index.delete_pod(&pod(21));
    index.learn_pod(&pod(20), before);
    index.confirm(&key, Some(&pod(20)), before);
    assert!(index.pod(&key).is_none());
    index.learn_pod(&pod(22), before);
    assert!(index.pod(&key).is_some(), "the watch has not shown this version");
    index.retain_pods(&HashSet::new());
    index.learn_pod(&pod(23), before);
    assert!(
        index.pod(&key).is_none(),
        "the pod may have been deleted before the list"
    );
}

#[test]
fn a_late_read_does_not_remove_a_pod_that_the_watch_added_after_it() {
    let (mut index, key) = (index(), Key::new("default", "python-1"));
    let before = index.watch_progress();
    index.apply_pod(&pod(20));
    index.confirm(&key, None, before);
    assert!(index.pod(&key).is_some());
    let after = index.watch_progress();
    index.confirm(&key, None, after);
    assert!(index.pod(&key).is_none());
}

#[test]
fn an_object_that_a_list_no_longer_has_leaves_nothing_behind() {
    let mut index = index();
    let claim = snapshot(&index).claims[0].claim.clone();
    let failures = WarmUpFailures {
        count: 1,
        last: Timestamp::UNIX_EPOCH,
        not_running_reason: None,
    };
    let failed = BTreeMap::from([("abc".to_string(), failures)]);
    let pool = snapshot(&index).pool;
    let memory = index.pool_memory_mut(&pool).unwrap();
    memory.warm_up_failures = failed;
    memory.recent_claims.note(Timestamp::UNIX_EPOCH);
    index.published_claim(&claim, Some(Phase::Pending), Some("11"));
    index.retain_claims(&HashSet::new());
    index.retain_pools(&HashSet::new());
    assert!(index.pool_memory(&pool).is_none());
    assert!(
        index.pool_memory_mut(&pool).is_none(),
        "nothing is remembered for a deleted pool"
    );
    assert!(!index.awaits("claim"));
}

#[test]
fn a_pool_is_reconciled_on_any_change_of_a_sandbox_with_a_version_conflict() {
    let mut index = index();
    index.apply_pod(&pod(1));
    assert_eq!(index.apply_pod(&pod(2)), [], "the planner ignores this change");
    index.expectations.conflicted(&Sandbox::read(&pod(2)).unwrap());
    let pool = ReconcileRequest::Pool(Key::new("default", "python"));
    assert_eq!(index.apply_pod(&pod(3)), [pool]);
}

#[test]
fn a_claim_is_reconciled_on_any_change_of_its_sandbox_with_a_version_conflict() {
    let owned = |version| {
        let mut stored = pod(version);
        stored.metadata.owner_references = serde_json::from_value(json!([{
            "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaim", "name": "run", "uid": "claim",
            "controller": true,
        }]))
        .unwrap();
        stored
    };
    let mut index = index();
    index.apply_pod(&owned(1));
    index.expectations.conflicted(&Sandbox::read(&owned(1)).unwrap());
    let (pool, claim) = (Key::new("default", "python"), Key::new("default", "run"));
    assert_eq!(
        index.apply_pod(&owned(2)),
        [ReconcileRequest::Pool(pool), ReconcileRequest::Claim(claim)]
    );
}

#[test]
fn an_object_recreated_under_its_name_leaves_nothing_behind() {
    let mut index = index();
    let claim = snapshot(&index).claims[0].claim.clone();
    let before = snapshot(&index).pool;
    let memory = index.pool_memory_mut(&before).unwrap();
    memory.recent_claims.note(Timestamp::UNIX_EPOCH);
    index.published_claim(&claim, Some(Phase::Pending), Some("11"));
    let wait_reason = WaitReason {
        uid: claim.uid.clone(),
        reason: "NoneAvailable",
        message: String::new(),
    };
    index.record_wait_reasons(&snapshot(&index), vec![wait_reason]);
    assert!(index.has_waited(&claim) && index.awaits("claim"));
    let mut another: StoredClaim = self::claim(12, "");
    another.metadata.uid = Some("another".into());
    index.apply_claim(&another, false, Timestamp::UNIX_EPOCH);
    index.retain_claims(&HashSet::from([claim.key.clone()]));
    assert!(!index.has_waited(&claim) && !index.awaits("claim"));
    assert_eq!(snapshot(&index).claims[0].claim.uid, "another");

    index.apply_pool(&pool("another", json!({})));
    index.retain_pools(&HashSet::from([Key::new("default", "python")]));
    assert!(index.pool_memory(&before).is_none());
    assert_eq!(snapshot(&index).pool.uid, "another");
}

#[test]
fn a_rejected_claim_shows_the_rejection_until_there_is_another_reason() {
    let mut index = index();
    let claim = snapshot(&index).claims[0].claim.clone();
    let records = |index: &mut Index, reason| {
        let wait_reason = WaitReason {
            uid: claim.uid.clone(),
            reason,
            message: String::new(),
        };
        let snapshot = snapshot(index);
        !index.record_wait_reasons(&snapshot, vec![wait_reason]).is_empty()
    };
    _ = index.note_rejection(&claim, "not so");
    assert!(
        !records(&mut index, "NoneAvailable"),
        "the rejection is still the reason"
    );
    assert!(records(&mut index, "PoolPaused"));
    assert!(records(&mut index, "NoneAvailable"));
    _ = index.note_rejection(&claim, "not so");
    index.end_rejection(&claim);
    assert!(records(&mut index, "NoneAvailable"));
}

#[test]
fn waiting_claims_are_reconciled_when_their_defaults_change() {
    let mut index = index();
    let request = ReconcileRequest::Claim(Key::new("default", "run"));
    assert!(!index.apply_pool(&pool("pool", json!({}))).contains(&request));
    let defaults = json!({"waitTimeoutSeconds": 5});
    assert!(index.apply_pool(&pool("pool", defaults)).contains(&request));
}

#[test]
fn the_outcome_of_an_earlier_write_does_not_confirm_a_later_one() {
    let (before, mut now): (Sandbox, Sandbox) =
        [1, 2].map(|version| Sandbox::read(&pod(version)).unwrap()).into();
    now.state = "warm".into();
    let outcomes: [fn(&mut Expectations, &Sandbox); 4] = [
        Expectations::forget,
        Expectations::conflicted,
        Expectations::answered,
        Expectations::deleted,
    ];
    for report in outcomes {
        let mut expectations = Expectations::default();
        expectations.restoring(&before);
        assert!(expectations.seen(&now));
        expectations.binding(&now, "claim-1");
        let expected = expectations.describe();
        report(&mut expectations, &before);
        assert_eq!(expectations.describe(), expected);
    }
}

#[test]
fn a_live_read_does_not_confirm_a_write_in_flight() {
    let mut expectations = Expectations::default();
    let sandbox = Sandbox::read(&pod(1)).unwrap();
    let late = Instant::now() + 2 * EXPECTATION_TIMEOUT;
    expectations.binding(&sandbox, "claim-1");
    expectations.creating(
        Key::new("default", "python-2"),
        Key::new("default", "python"),
        "abc".into(),
    );
    assert_eq!(expectations.overdue(late), []);
    expectations.confirmed(&sandbox.key);
    assert_eq!(expectations.len(), 2);

    expectations.answered(&sandbox);
    expectations.create_answered(&Key::new("default", "python-2"));
    expectations.confirmed(&sandbox.key);
    assert_eq!(
        expectations.len(),
        2,
        "a read that started before the answer confirms nothing"
    );
    let overdue = ["python-1", "python-2"].map(|name| Key::new("default", name));
    assert_eq!(expectations.overdue(late), overdue);
    overdue.iter().for_each(|pod| expectations.confirmed(pod));
    assert!(expectations.is_empty());
}

#[test]
fn a_deleted_object_is_reconciled_once_more_so_that_no_requeue_remains() {
    let mut index = index();
    let requests = index.delete_claim(&claim(11, "Failed"));
    assert!(
        requests
            .iter()
            .any(|request| matches!(request, ReconcileRequest::Claim(key) if key.name == "run")),
        "{requests:?}"
    );
    let requests = index.delete_pool(&pool("pool", json!({})));
    assert!(
        requests
            .iter()
            .any(|request| matches!(request, ReconcileRequest::Pool(key) if key.name == "python")),
        "{requests:?}"
    );
}

#[test]
fn a_sandbox_with_an_expected_deletion_is_held_by_its_claim_and_not_published() {
    let mut index = index();
    let held = json!({
        "metadata": {
            "namespace": "default", "name": "python-1", "uid": "pod-1", "resourceVersion": "1",
            "labels": {"warmpool.dev/pool": "python", "warmpool.dev/state": "claimed"},
            "ownerReferences": [{
                "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaim", "name": "run", "uid": "claim",
                "controller": true,
            }],
        },
        "status": {"phase": "Running"},
    });
    index.apply_pod(&serde_json::from_value(held).unwrap());
    let run = Key::new("default", "run");
    let pod = index.pod(&Key::new("default", "python-1")).unwrap();
    for (deleting, published) in [(false, 1), (true, 0)] {
        if deleting {
            index.expectations.deleting(&pod);
        }
        let claim = index.claim(&run).unwrap();
        assert_eq!(index.held_by(&claim).count(), 1);
        let snapshot = index.claim_snapshot(&run, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(snapshot.sandboxes.len(), published);
    }
}
