//! Checks the index with watch events, late answers and writes that the watch has not shown.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod claim_writes;
mod many_pools;
mod new_claims;

use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Instant;
use warmpool::api::SandboxClaimStatus;
use warmpool::cache::expectations::EXPECTATION_TIMEOUT;
use warmpool::cache::expectations::Expectations;
use warmpool::cache::index::Index;
use warmpool::cache::reconcile_request::ReconcileRequest;
use warmpool::cache::snapshot::{PoolSnapshot, WaitReason, WarmUpFailures};
use warmpool::cache::stale_answers::WatchProgress;
use warmpool::cache::watch::Indexed;
use warmpool::cache::write_stage::Stage;
use warmpool::controllers::claim::decide;
use warmpool::controllers::pool;
use warmpool::controllers::retry_loop;
use warmpool::model::Key;
use warmpool::model::claim::Claim;
use warmpool::model::failure::{Class, Failure};
use warmpool::model::lifecycle_hook::Hook;
use warmpool::model::pool::Pool;
use warmpool::model::queue_position::QueuePosition;
use warmpool::model::request::{Answer, ClaimWrite, Outcome, PodChange, PodCreation, PodWrite, Request};
use warmpool::model::retry::{ObjectWrite, Purpose};
use warmpool::model::sandbox::Sandbox;
use warmpool::model::stored::{StoredClaim, StoredPod, StoredPool, StoredRevision};
use warmpool::planner::pool_snapshot;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

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
    index.apply_claim(&claim(10, ""), true, NOW);
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
    pool_snapshot(index, &Key::new("default", "python"), NOW, 0).unwrap()
}

/// Notes a write of the claim's status and returns its request.
fn write_status(index: &mut Index, claim: &Arc<Claim>) -> Request {
    let write = ObjectWrite::sent(None, &claim.resource_version, Purpose::Publish);
    index.claim_memory_mut(claim).unwrap().write = Some(Box::new(write));
    Request::WriteClaim(Arc::new(ClaimWrite {
        claim: Arc::clone(claim),
        status: Box::new(SandboxClaimStatus::default()),
    }))
}

/// The answer to `request`, which was sent before any watch event, shows the claim like this.
fn answer(index: &mut Index, request: &Request, claim: StoredClaim) {
    let answer = Answer::Claim(Box::new(claim));
    index.take_over(request, Ok(answer), WatchProgress::default(), NOW);
}

/// Whether a write on the claim is not known to be done.
fn awaits(index: &Index, claim: &Claim) -> bool {
    index
        .claim_memory(claim)
        .is_some_and(|memory| memory.write.is_some())
}

#[test]
fn a_claim_whose_pending_status_was_just_written_is_still_served() {
    let mut index = index();
    let waiting = snapshot(&index).claims[0].claim.clone();
    let request = write_status(&mut index, &waiting);
    assert_eq!(
        snapshot(&index).claims[0].needs(),
        0,
        "the write moves the version that a binding names"
    );
    answer(&mut index, &request, claim(11, "Pending"));
    let claims = snapshot(&index).claims;
    assert_eq!(claims[0].needs(), 1);
    assert_eq!(
        claims[0].claim.resource_version, "11",
        "the publication has to name the version of this write"
    );
}

#[test]
fn a_claim_that_was_just_bound_is_not_served_again_while_the_watch_lags() {
    let mut index = index();
    let bound = snapshot(&index).claims[0].claim.clone();
    let request = write_status(&mut index, &bound);
    answer(&mut index, &request, claim(12, "Bound"));
    assert!(snapshot(&index).claims.is_empty());
    assert_eq!(claim(11, "Pending").apply(&mut index, true), []);
    assert!(
        snapshot(&index).claims.is_empty(),
        "the event is older than the write"
    );
    assert_eq!(claim(12, "Bound").apply(&mut index, true), []);
    assert!(snapshot(&index).claims.is_empty());
    assert!(!awaits(&index, &bound));
}

#[test]
fn a_write_that_the_watch_has_shown_before_the_answer_is_not_expected() {
    let mut index = index();
    let waiting = snapshot(&index).claims[0].claim.clone();
    let request = write_status(&mut index, &waiting);
    claim(11, "Pending").apply(&mut index, true);
    claim(12, "Bound").apply(&mut index, true);
    answer(&mut index, &request, claim(11, "Pending"));
    assert!(!awaits(&index, &waiting));
    assert_eq!(
        index.claim(&waiting.key).unwrap().resource_version,
        "12",
        "the answer is older than the event"
    );
}

#[test]
fn a_claim_whose_deletion_was_answered_is_not_deleted_again_while_the_watch_lags() {
    let finished = json!({
        "metadata": {"namespace": "default", "name": "run", "uid": "claim", "resourceVersion": "10"},
        "spec": {"poolRef": {"name": "python"}, "ttlSecondsAfterFinished": 0},
        "status": {"phase": "Failed", "finishTime": NOW.to_string()},
    });
    for outcome in [Ok(Answer::Deleted), Err(failure(Class::Gone))] {
        let mut index = index();
        let finished: StoredClaim = serde_json::from_value(finished.clone()).unwrap();
        let key = Key::new("default", "run");
        index.apply_claim(&finished, true, NOW);
        decide(&mut index, &key, NOW);
        let deletion = index.requests.take_next().unwrap().request;
        assert!(matches!(deletion, Request::DeleteClaim(_)), "{deletion:?}");
        index.take_over(&deletion, outcome, WatchProgress::default(), NOW);
        assert_eq!(decide(&mut index, &key, NOW).next, None);
        assert!(index.requests.take_next().is_none());
    }
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

/// A live read of the pod `python-1`, sent at `before`, found this.
fn read_pod(index: &mut Index, outcome: Outcome, before: WatchProgress) {
    let request = Request::ReadPod(Key::new("default", "python-1"));
    index.take_over(&request, outcome, before, NOW);
}

fn found(pod: StoredPod) -> Outcome {
    Ok(Answer::Pod(Box::new(pod)))
}

fn failure(class: Class) -> Failure {
    let message = String::new();
    Failure { class, message }
}

/// A write on this state of the pod `python-1`.
fn pod_write(pod: &StoredPod, change: PodChange) -> Arc<PodWrite> {
    let sandbox = Arc::new(Sandbox::read(pod).unwrap());
    Arc::new(PodWrite {
        sandbox,
        change,
        reason: "",
    })
}

/// The binding of a pod to the claim `run`.
fn binding() -> PodChange {
    let claim = Arc::new(Claim::read(&claim(10, ""), 1, NOW));
    let pool = Arc::new(Pool::read(&pool("pool", json!({}))));
    PodChange::Bind { claim, pool }
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
    read_pod(&mut index, found(pod(20)), before);
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
    read_pod(&mut index, Err(failure(Class::Gone)), before);
    assert!(index.pod(&key).is_some());
    let after = index.watch_progress();
    read_pod(&mut index, Err(failure(Class::Gone)), after);
    assert!(index.pod(&key).is_none());
}

#[test]
fn an_object_that_a_list_no_longer_has_leaves_nothing_behind() {
    let mut index = index();
    let claim = snapshot(&index).claims[0].claim.clone();
    let failures = WarmUpFailures {
        count: 1,
        last: NOW,
        not_running_reason: None,
    };
    let failed = BTreeMap::from([("abc".to_string(), failures)]);
    let pool = snapshot(&index).pool;
    let memory = index.pool_memory_mut(&pool).unwrap();
    memory.warm_up_failures = failed;
    memory.recent_claims.note(NOW);
    write_status(&mut index, &claim);
    index.retain_claims(&HashSet::new());
    index.retain_pools(&HashSet::new());
    assert!(index.pool_memory(&pool).is_none());
    assert!(
        index.pool_memory_mut(&pool).is_none(),
        "nothing is remembered for a deleted pool"
    );
    assert!(!awaits(&index, &claim));
    assert!(
        index.claim_memory_mut(&claim).is_none(),
        "nothing is remembered for a deleted claim"
    );
}

#[test]
fn a_pool_is_reconciled_on_any_change_of_a_sandbox_with_a_version_conflict() {
    let mut index = index();
    index.apply_pod(&pod(1));
    assert_eq!(index.apply_pod(&pod(2)), [], "the planner ignores this change");
    let write = pod_write(&pod(2), PodChange::Delete);
    index.expectations.write(Arc::clone(&write));
    index.expectations.conflicted(&write);
    let pool = ReconcileRequest::Pool(Key::new("default", "python"));
    assert_eq!(index.apply_pod(&pod(3)), [pool]);
}

#[test]
fn a_claim_is_reconciled_when_a_binding_of_it_is_over_however_that_shows() {
    let run = ReconcileRequest::Claim(Key::new("default", "run"));
    let key = Key::new("default", "python-1");
    let fails = |class| Failure {
        class,
        message: "".into(),
    };
    type Ends<'a> = &'a dyn Fn(&mut Index) -> Vec<ReconcileRequest>;
    let rows: [(&str, Ends); 4] = [
        ("the watch shows the pod gone", &|index| index.delete_pod(&pod(2))),
        ("a live read finds no pod", &|index| {
            let gone = Err(fails(Class::Gone));
            index.take_over(
                &Request::ReadPod(key.clone()),
                gone,
                WatchProgress::default(),
                NOW,
            )
        }),
        ("the API server says that it is gone", &|index| {
            let write = Request::WritePod(pod_write(&pod(1), binding()));
            index.take_over(&write, Err(fails(Class::Gone)), WatchProgress::default(), NOW)
        }),
        ("a live read after a conflict shows no binding", &|index| {
            let write = pod_write(&pod(1), binding());
            index.expectations.failed(&write, fails(Class::Conflict), NOW);
            index
                .expectations
                .of(&write)
                .unwrap()
                .progress
                .enter(Stage::Missed);
            retry_loop::decide(index, NOW).to_reconcile
        }),
    ];
    for (how, ends) in rows {
        let mut index = index();
        index.apply_pod(&pod(1));
        index.expectations.write(pod_write(&pod(1), binding()));
        assert!(ends(&mut index).contains(&run), "{how}");
    }
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
    let write = pod_write(&owned(1), PodChange::Delete);
    index.expectations.write(Arc::clone(&write));
    index.expectations.conflicted(&write);
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
    memory.recent_claims.note(NOW);
    write_status(&mut index, &claim);
    let wait_reason = WaitReason {
        reason: "NoneAvailable",
        message: "".into(),
        position: None,
    };
    index.record_wait_reasons(vec![(Arc::clone(&claim), wait_reason)]);
    assert!(index.has_waited(&claim) && awaits(&index, &claim));
    let mut another: StoredClaim = self::claim(12, "");
    another.metadata.uid = Some("another".into());
    index.apply_claim(&another, false, NOW);
    index.retain_claims(&HashSet::from([claim.key.clone()]));
    assert!(!index.has_waited(&claim) && !awaits(&index, &claim));
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
            reason,
            message: "".into(),
            position: None,
        };
        let waiting = vec![(Arc::clone(&claim), wait_reason)];
        !index.record_wait_reasons(waiting).is_empty()
    };
    _ = index.note_rejection(&claim, "not so", NOW);
    assert!(
        !records(&mut index, "NoneAvailable"),
        "the rejection is still the reason"
    );
    assert!(records(&mut index, "PoolPaused"));
    assert!(records(&mut index, "NoneAvailable"));
    _ = index.note_rejection(&claim, "not so", NOW);
    index.end_rejection(&claim);
    assert!(records(&mut index, "NoneAvailable"));
}

#[test]
fn a_claim_is_reconciled_when_its_message_changes_and_not_when_the_queue_moves() {
    let mut index = index();
    let claim = snapshot(&index).claims[0].claim.clone();
    for (message, ahead, is_news) in [("a", 2, true), ("a", 1, false), ("b", 1, true), ("b", 0, false)] {
        let wait_reason = WaitReason {
            reason: "NoneAvailable",
            message: message.into(),
            position: Some(QueuePosition { ahead, at: NOW }),
        };
        let to_reconcile = index.record_wait_reasons(vec![(Arc::clone(&claim), wait_reason)]);
        assert_eq!(!to_reconcile.is_empty(), is_news, "{message} {ahead}");
    }
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
    let mut warm = pod(2);
    let labels = warm.metadata.labels.as_mut().unwrap();
    labels.insert("warmpool.dev/state".into(), "warm".into());
    let earlier = pod_write(&pod(1), PodChange::Restore(Hook::default()));
    let later = pod_write(&warm, binding());
    let outcomes: [fn(&mut Expectations, &PodWrite); 5] = [
        Expectations::forget,
        Expectations::conflicted,
        Expectations::answered,
        Expectations::deleted,
        |expectations, write| expectations.failed(write, failure(Class::Unknown), NOW),
    ];
    for report in outcomes {
        let mut expectations = Expectations::default();
        expectations.write(Arc::clone(&earlier));
        assert!(expectations.seen(&later.sandbox));
        expectations.write(Arc::clone(&later));
        let expected = expectations.describe();
        report(&mut expectations, &earlier);
        assert_eq!(expectations.describe(), expected);
        assert_eq!(expectations.bound_to("claim"), 1);
    }
}

#[test]
fn a_live_read_does_not_confirm_a_write_in_flight() {
    let mut expectations = Expectations::default();
    let late = Instant::now() + 2 * EXPECTATION_TIMEOUT;
    let [bound, created] = ["python-1", "python-2"].map(|name| Key::new("default", name));
    let write = pod_write(&pod(1), binding());
    expectations.write(Arc::clone(&write));
    let pool = Arc::new(Pool::read(&pool("pool", json!({}))));
    let creation = PodCreation {
        template: Arc::clone(&pool.template),
        pool,
        pod: created.clone(),
        revision: "abc".into(),
        reason: "",
    };
    expectations.create(Arc::new(creation), NOW);
    let read_both = |expectations: &mut Expectations| {
        for pod in [&bound, &created] {
            assert!(expectations.read(pod, None).is_none(), "no pod is found");
        }
    };
    assert_eq!(expectations.overdue(late), []);
    read_both(&mut expectations);
    assert_eq!(expectations.len(), 2);

    expectations.answered(&write);
    let known = expectations.creation(&created).unwrap();
    known.progress.enter(Stage::Answered);
    read_both(&mut expectations);
    assert_eq!(
        expectations.len(),
        2,
        "a read that started before the answer confirms nothing"
    );
    assert_eq!(expectations.overdue(late), [bound.clone(), created.clone()]);
    read_both(&mut expectations);
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
            let change = PodChange::Delete;
            let sandbox = Arc::clone(&pod);
            let write = PodWrite {
                sandbox,
                change,
                reason: "",
            };
            index.expectations.write(Arc::new(write));
        }
        let claim = index.claim(&run).unwrap();
        assert_eq!(index.held_by(&claim).count(), 1);
        let snapshot = index.claim_snapshot(&run, NOW).unwrap();
        assert_eq!(snapshot.sandboxes.len(), published);
    }
}
