//! Checks which requests wait while others are in flight, and in which order they go.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::panic)]

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;
use warmpool::api::claim::Phase;
use warmpool::api::{PoolStatus, SandboxClaimStatus};
use warmpool::cache::index::Index;
use warmpool::cache::reconcile_request::ReconcileRequest;
use warmpool::cache::request_limits::{IN_FLIGHT, RequestQueue, Sent};
use warmpool::cache::stale_answers::WatchProgress;
use warmpool::controllers::claim::decide;
use warmpool::model::Key;
use warmpool::model::claim::Claim;
use warmpool::model::failure::{Class, Failure};
use warmpool::model::pool::Pool;
use warmpool::model::request::{
    Answer, ClaimWrite, Outcome, PodChange, PodCreation, PodWrite, PoolWrite, Request,
};
use warmpool::model::sandbox::Sandbox;
use warmpool::model::stored::{StoredClaim, StoredPod, StoredPool};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn pool() -> Arc<Pool> {
    pool_named("default", "python")
}

fn pool_named(namespace: &str, name: &str) -> Arc<Pool> {
    let stored = json!({
        "metadata": {"namespace": namespace, "name": name, "uid": format!("{namespace}-{name}")},
        "spec": {"replicas": 1, "template": {"spec": {"containers": []}}},
    });
    Arc::new(Pool::read(&serde_json::from_value::<StoredPool>(stored).unwrap()))
}

fn stored_claim(name: &str) -> StoredClaim {
    stored_claim_in("default", name)
}

fn stored_claim_in(namespace: &str, name: &str) -> StoredClaim {
    let stored = json!({
        "metadata": {
            "namespace": namespace, "name": name, "uid": format!("{namespace}-{name}"), "resourceVersion": "1",
        },
        "spec": {"poolRef": {"name": "python"}},
    });
    serde_json::from_value(stored).unwrap()
}

fn claim(name: &str) -> Arc<Claim> {
    Arc::new(Claim::read(&stored_claim(name), 1, NOW))
}

fn write_pod(name: &str, change: PodChange) -> Request {
    write_pod_of(&Key::new("default", "python"), name, change)
}

fn write_pod_of(pool: &Key, name: &str, change: PodChange) -> Request {
    let stored = json!({"metadata": {
        "namespace": pool.namespace, "name": name, "uid": name, "labels": {"warmpool.dev/pool": pool.name},
    }});
    let stored: StoredPod = serde_json::from_value(stored).unwrap();
    Request::WritePod(Arc::new(PodWrite {
        sandbox: Arc::new(Sandbox::read(&stored).unwrap()),
        change,
        reason: "",
    }))
}

/// W1: the pod with this name becomes the claim's.
fn bind(pod: &str, claim: &str) -> Request {
    let claim = self::claim(claim);
    write_pod(pod, PodChange::Bind { claim, pool: pool() })
}

fn delete(pod: &str) -> Request {
    write_pod(pod, PodChange::Delete)
}

fn create(pod: &str) -> Request {
    let pool = pool();
    Request::CreatePod(Arc::new(PodCreation {
        template: Arc::clone(&pool.template),
        pool,
        pod: Key::new("default", pod),
        revision: "abc".into(),
        reason: "",
    }))
}

/// A write of the claim's status with this phase. W2 is the write with phase Bound.
fn status(claim: &str, phase: Phase) -> Request {
    let status = SandboxClaimStatus {
        phase: Some(phase),
        pool: "python".into(),
        ..SandboxClaimStatus::default()
    };
    Request::WriteClaim(Arc::new(ClaimWrite {
        claim: self::claim(claim),
        status: Box::new(status),
    }))
}

fn publish(claim: &str) -> Request {
    status(claim, Phase::Bound)
}

fn write_pool(pool: &Arc<Pool>) -> Request {
    Request::WritePool(Arc::new(PoolWrite {
        pool: Arc::clone(pool),
        status: PoolStatus::default(),
    }))
}

fn read(pod: &str) -> Request {
    Request::ReadPod(Key::new("default", pod))
}

/// The request as a short line, such as `bind pod-1`.
fn line(request: &Request) -> String {
    match request {
        Request::WritePod(write) => {
            let pod = &write.sandbox.key.name;
            match write.change {
                PodChange::Bind { .. } => format!("bind {pod}"),
                _ => format!("delete {pod}"),
            }
        }
        Request::CreatePod(creation) => format!("create {}", creation.pod.name),
        Request::WriteClaim(write) => format!("publish {}", write.claim.key.name),
        Request::DeleteClaim(claim) => format!("delete claim {}", claim.key.name),
        Request::ReadPod(pod) => format!("read {}", pod.name),
        _ => "another".into(),
    }
}

/// A first try, or the retry of a request that failed.
const FIRST: bool = false;
const RETRY: bool = true;

/// Adds `count` requests, each made from its number.
fn push(queue: &mut RequestQueue, is_retry: bool, count: usize, request: impl Fn(usize) -> Request) {
    (0..count).for_each(|number| queue.push(request(number), is_retry));
}

/// Adds `count` bindings, each of a claim of its own.
fn push_bindings(queue: &mut RequestQueue, is_retry: bool, count: usize) {
    push(queue, is_retry, count, |n| {
        bind(&format!("pod-{n}"), &format!("run-{n}"))
    });
}

/// Everything that may be sent now.
fn send(queue: &mut RequestQueue) -> Vec<Sent> {
    std::iter::from_fn(|| queue.take_next()).collect()
}

fn lines(sent: &[Sent]) -> Vec<String> {
    sent.iter().map(|sent| line(&sent.request)).collect()
}

#[test]
fn each_kind_of_request_has_a_limit_of_its_own() {
    let named = |n: usize| format!("{n}");
    type Make<'a> = &'a dyn Fn(usize) -> Request;
    let rows: [(&str, bool, Make, usize); 14] = [
        (
            "statuses of claims again",
            RETRY,
            &|n| status(&named(n), Phase::Pending),
            32,
        ),
        ("W1", FIRST, &|n| bind(&named(n), &named(n)), 32),
        ("W2", FIRST, &|n| publish(&named(n)), 32),
        ("W1 again", RETRY, &|n| bind(&named(n), &named(n)), 32),
        ("W2 again", RETRY, &|n| publish(&named(n)), 32),
        ("creations", FIRST, &|n| create(&named(n)), 32),
        ("deletions", FIRST, &|n| delete(&named(n)), 32),
        ("creations again", RETRY, &|n| create(&named(n)), 32),
        ("deletions again", RETRY, &|n| delete(&named(n)), 32),
        (
            "statuses of waiting claims",
            FIRST,
            &|n| status(&named(n), Phase::Pending),
            32,
        ),
        (
            "statuses of failed claims",
            FIRST,
            &|n| status(&named(n), Phase::Failed),
            32,
        ),
        (
            "deletions of claims",
            FIRST,
            &|n| Request::DeleteClaim(claim(&named(n))),
            32,
        ),
        ("reads", FIRST, &|n| read(&named(n)), 32),
        ("statuses of pools", FIRST, &|_| write_pool(&pool()), 32),
    ];
    for (kind, is_retry, request, limit) in rows {
        let mut queue = RequestQueue::default();
        push(&mut queue, is_retry, 100, request);
        assert_eq!(send(&mut queue).len(), limit, "{kind}");
    }
}

#[test]
fn requests_of_these_kinds_share_a_limit() {
    let rows = [
        ("W1 and W2", FIRST, [bind("pod", "run"), publish("run")], 32),
        (
            "creations and deletions",
            FIRST,
            [create("pod"), delete("pod")],
            32,
        ),
        ("the same again", RETRY, [create("pod"), delete("pod")], 32),
        (
            "statuses and deletions of claims",
            FIRST,
            [status("run", Phase::Expired), Request::DeleteClaim(claim("run"))],
            32,
        ),
    ];
    for (kinds, is_retry, [one, other], limit) in rows {
        let mut queue = RequestQueue::default();
        // The limit of W1 per claim is not what is checked.
        push(&mut queue, is_retry, limit - 1, |n| match &one {
            Request::WritePod(_) => bind(&format!("{n}"), &format!("{n}")),
            one => one.clone(),
        });
        queue.push(other.clone(), is_retry);
        assert_eq!(send(&mut queue).len(), limit, "{kinds}");
        queue.push(other, is_retry);
        assert!(queue.take_next().is_none(), "{kinds}");
    }
}

#[test]
fn these_requests_do_not_wait_for_those() {
    let named = |n: usize| format!("{n}");
    type Make<'a> = &'a dyn Fn(usize) -> Request;
    let rows: [(&str, bool, Make, bool, Request); 12] = [
        (
            "a status for retries",
            RETRY,
            &|n| status(&named(n), Phase::Pending),
            FIRST,
            status("run", Phase::Pending),
        ),
        (
            "a binding for reads",
            FIRST,
            &|n| read(&named(n)),
            FIRST,
            bind("pod", "run"),
        ),
        (
            "a read for statuses of pools",
            FIRST,
            &|_| write_pool(&pool()),
            FIRST,
            read("pod"),
        ),
        (
            "a binding for deletions",
            FIRST,
            &|n| delete(&named(n)),
            FIRST,
            bind("pod", "run"),
        ),
        (
            "a binding for creations",
            FIRST,
            &|n| create(&named(n)),
            FIRST,
            bind("pod", "run"),
        ),
        (
            "a binding for retries",
            RETRY,
            &|n| bind(&named(n), &named(n)),
            FIRST,
            bind("pod", "run"),
        ),
        (
            "a binding for retries of W2",
            RETRY,
            &|n| publish(&named(n)),
            FIRST,
            bind("pod", "run"),
        ),
        (
            "W2 for creations",
            FIRST,
            &|n| create(&named(n)),
            FIRST,
            publish("run"),
        ),
        (
            "W2 for statuses",
            FIRST,
            &|n| status(&named(n), Phase::Pending),
            FIRST,
            publish("run"),
        ),
        (
            "a creation for retries",
            RETRY,
            &|n| create(&named(n)),
            FIRST,
            create("pod"),
        ),
        (
            "a retry for bindings",
            FIRST,
            &|n| bind(&named(n), &named(n)),
            RETRY,
            bind("pod", "run"),
        ),
        (
            "a creation for bindings",
            FIRST,
            &|n| bind(&named(n), &named(n)),
            FIRST,
            create("pod"),
        ),
    ];
    for (row, are_retries, those, is_retry, this) in rows {
        let mut queue = RequestQueue::default();
        push(&mut queue, are_retries, 100, those);
        assert_eq!(send(&mut queue).len(), 32, "{row}");
        queue.push(this.clone(), is_retry);
        assert_eq!(lines(&send(&mut queue)), [line(&this)], "{row}");
    }
}

/// A request about this pool, or about a claim or pod of its namespace, made from its number.
type OfPool<'a> = &'a dyn Fn(&Key, usize) -> Request;

const OF_POOL: [(&str, OfPool<'static>); 7] = [
    ("W1", &|pool, n| {
        let claim = stored_claim_in(&pool.namespace, &format!("{n}"));
        let claim = Arc::new(Claim::read(&claim, 1, NOW));
        let change = PodChange::Bind {
            claim,
            pool: pool_named(&pool.namespace, &pool.name),
        };
        write_pod_of(pool, &format!("{n}"), change)
    }),
    ("W2", &|pool, n| status_of(pool, n, Phase::Bound)),
    ("creations", &|pool, n| {
        let pool = pool_named(&pool.namespace, &pool.name);
        Request::CreatePod(Arc::new(PodCreation {
            template: Arc::clone(&pool.template),
            pod: Key::new(pool.key.namespace.clone(), format!("{n}")),
            pool,
            revision: "abc".into(),
            reason: "",
        }))
    }),
    ("deletions", &|pool, n| {
        write_pod_of(pool, &format!("{n}"), PodChange::Delete)
    }),
    ("statuses of waiting claims", &|pool, n| {
        status_of(pool, n, Phase::Pending)
    }),
    ("reads", &|pool, n| {
        Request::ReadPod(Key::new(pool.namespace.clone(), format!("{n}")))
    }),
    ("statuses of pools", &|pool, _| {
        write_pool(&pool_named(&pool.namespace, &pool.name))
    }),
];

fn status_of(pool: &Key, number: usize, phase: Phase) -> Request {
    let claim = stored_claim_in(&pool.namespace, &format!("{number}"));
    let status = SandboxClaimStatus {
        phase: Some(phase),
        pool: pool.name.to_string(),
        ..SandboxClaimStatus::default()
    };
    Request::WriteClaim(Arc::new(ClaimWrite {
        claim: Arc::new(Claim::read(&claim, 1, NOW)),
        status: Box::new(status),
    }))
}

#[test]
fn requests_of_one_namespace_that_are_not_answered_hold_up_no_other_namespace() {
    let (slow, other, third) = (
        Key::new("slow", "python"),
        Key::new("other", "python"),
        Key::new("third", "python"),
    );
    for (kind, request) in OF_POOL {
        for is_retry in [FIRST, RETRY] {
            let mut queue = RequestQueue::default();
            push(&mut queue, is_retry, 1000, |n| request(&slow, n));
            assert_eq!(send(&mut queue).len(), 32, "{kind}");
            push(&mut queue, is_retry, 100, |n| request(&other, n));
            assert_eq!(send(&mut queue).len(), 7, "{kind}");
            queue.push(request(&third, 0), is_retry);
            assert_eq!(send(&mut queue).len(), 1, "{kind}: a slot is free for the next");
        }
    }
}

#[test]
fn requests_of_one_pool_that_are_not_answered_hold_up_no_other_pool() {
    let (slow, other) = (Key::new("default", "slow"), Key::new("default", "other"));
    for (kind, request) in OF_POOL.into_iter().take(4) {
        let mut queue = RequestQueue::default();
        push(&mut queue, FIRST, 1000, |n| request(&slow, n));
        assert_eq!(
            send(&mut queue).len(),
            32,
            "I7: one pool has all slots for {kind}"
        );
        for number in 0..100 {
            queue.push(request(&other, number), FIRST);
            let sent = queue.take_next();
            queue.answered(&sent.unwrap_or_else(|| {
                panic!("I7: a pool whose {kind} are not answered holds up those of another")
            }));
        }
    }
}

#[test]
fn two_pools_that_are_answered_in_turn_get_as_many_requests_each() {
    let pools = [Key::new("default", "large"), Key::new("default", "small")];
    let mut queue = RequestQueue::default();
    let (_, create) = OF_POOL[2];
    for pool in &pools {
        push(&mut queue, FIRST, 1000, |n| create(pool, n));
    }
    let mut in_flight = VecDeque::from(send(&mut queue));
    let mut sent = [0_usize, 0];
    for _ in 0..400 {
        queue.answered(&in_flight.pop_front().unwrap());
        for next in send(&mut queue) {
            let Request::CreatePod(creation) = &next.request else {
                panic!("not a creation: {next:?}");
            };
            sent[usize::from(creation.pool.key == pools[1])] += 1;
            in_flight.push_back(next);
        }
    }
    let in_flight: [usize; 2] = pools.each_ref().map(|pool| {
        let of_pool = |sent: &&Sent| matches!(&sent.request, Request::CreatePod(c) if c.pool.key == *pool);
        in_flight.iter().filter(of_pool).count()
    });
    assert!(in_flight[0].abs_diff(in_flight[1]) <= 4, "{in_flight:?}");
    assert!(sent[0].abs_diff(sent[1]) <= sent[0] / 5, "{sent:?}");
}

#[test]
fn one_claim_has_eight_w1_in_flight_and_leaves_the_others_to_other_claims() {
    let mut queue = RequestQueue::default();
    push(&mut queue, FIRST, 20, |n| bind(&format!("batch-{n}"), "batch"));
    push_bindings(&mut queue, FIRST, 2);
    let mut sent = send(&mut queue);
    let mut expected: Vec<_> = (0..8).map(|n| format!("bind batch-{n}")).collect();
    expected.extend(["bind pod-0".into(), "bind pod-1".into()]);
    assert_eq!(lines(&sent), expected);
    queue.answered(&sent.remove(9));
    assert!(
        queue.take_next().is_none(),
        "the answer of another claim frees nothing"
    );
    queue.answered(&sent.remove(0));
    assert_eq!(lines(&send(&mut queue)), ["bind batch-8"]);
}

#[test]
fn retries_count_among_the_w1_of_their_claim() {
    let mut queue = RequestQueue::default();
    push(&mut queue, FIRST, 8, |n| bind(&format!("batch-{n}"), "batch"));
    assert_eq!(send(&mut queue).len(), 8);
    queue.push(bind("again", "batch"), RETRY);
    assert!(queue.take_next().is_none());
}

#[test]
fn w2_goes_before_w1_that_wait_and_after_w2_that_wait() {
    let mut queue = RequestQueue::default();
    push_bindings(&mut queue, FIRST, IN_FLIGHT + 1);
    let sent = send(&mut queue);
    for claim in ["first", "second", "third"] {
        queue.push(publish(claim), FIRST);
    }
    sent.iter().for_each(|sent| queue.answered(sent));
    assert_eq!(
        lines(&send(&mut queue)),
        ["publish first", "publish second", "publish third", "bind pod-32"]
    );
}

#[test]
fn a_status_that_follows_a_bound_claim_delays_no_binding() {
    let mut bound = Claim::clone(&claim("bound"));
    bound.status.phase = Some(Phase::Bound);
    let follow = |_| {
        Request::WriteClaim(Arc::new(ClaimWrite {
            claim: Arc::new(bound.clone()),
            status: Box::new(bound.status.clone()),
        }))
    };
    let mut queue = RequestQueue::default();
    push(&mut queue, FIRST, 100, follow);
    send(&mut queue);
    push_bindings(&mut queue, FIRST, 100);
    assert_eq!(send(&mut queue).len(), 32);
}

#[test]
fn requests_of_one_kind_go_in_the_order_in_which_they_were_decided() {
    type Make = fn(usize) -> Request;
    let rows: [(&str, Make); 5] = [
        ("W1", |n| bind(&format!("{n}"), &format!("{n}"))),
        ("creations", |n| create(&format!("{n}"))),
        ("changes", |n| delete(&format!("{n}"))),
        ("statuses", |n| status(&format!("{n}"), Phase::Pending)),
        ("statuses and deletions of claims", |n| match n % 2 {
            0 => status(&format!("{n}"), Phase::Pending),
            _ => Request::DeleteClaim(claim(&format!("{n}"))),
        }),
    ];
    for (kind, request) in rows {
        let mut queue = RequestQueue::default();
        push(&mut queue, FIRST, 40, request);
        let mut went = Vec::new();
        while let Some(sent) = queue.take_next() {
            queue.answered(&sent);
            went.push(line(&sent.request));
        }
        let expected: Vec<_> = (0..40).map(|n| line(&request(n))).collect();
        assert_eq!(went, expected, "{kind}");
    }
}

#[test]
fn an_answered_request_lets_one_more_be_sent() {
    let mut queue = RequestQueue::default();
    push_bindings(&mut queue, FIRST, 40);
    let sent = send(&mut queue);
    assert_eq!(sent.len(), 32);
    for (answered, next) in sent.iter().zip(32..40) {
        assert!(queue.take_next().is_none());
        queue.answered(answered);
        assert_eq!(lines(&send(&mut queue)), [format!("bind pod-{next}")]);
    }
}

#[test]
fn cancelled_requests_are_returned_and_never_sent_and_the_others_keep_their_order() {
    let mut queue = RequestQueue::default();
    push_bindings(&mut queue, FIRST, 36);
    push_bindings(&mut queue, RETRY, 34);
    let sent = send(&mut queue);
    assert_eq!(sent.len(), 64);
    let is_obsolete = |request: &Request| ["bind pod-0", "bind pod-33"].contains(&line(request).as_str());
    let cancelled: Vec<_> = queue.cancel(is_obsolete).iter().map(line).collect();
    assert_eq!(
        cancelled,
        ["bind pod-33", "bind pod-33"],
        "a request that is in flight is not cancelled"
    );
    sent.iter().for_each(|sent| queue.answered(sent));
    assert_eq!(
        lines(&send(&mut queue)),
        ["bind pod-32", "bind pod-34", "bind pod-35", "bind pod-32"]
    );
}

#[test]
fn a_publication_that_failed_does_not_keep_a_binding_from_its_first_try() {
    let (mut index, run) = (Index::default(), Key::new("default", "run"));
    index.apply_claim(&stored_claim("run"), true, NOW);
    let bound = json!({
        "metadata": {
            "namespace": "default", "name": "pod", "uid": "pod", "resourceVersion": "1",
            "labels": {"warmpool.dev/pool": "python", "warmpool.dev/state": "claimed"},
            "ownerReferences": [{
                "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaim", "name": "run", "uid": "default-run",
                "controller": true,
            }],
        },
        "status": {"phase": "Running"},
    });
    index.apply_pod(&serde_json::from_value(bound).unwrap());
    decide(&mut index, &run, NOW);
    let [first] = send(&mut index.requests).try_into().unwrap();
    assert_eq!(line(&first.request), "publish run");
    let lost = Err(failure(Class::Unknown));
    index.requests.answered(&first);
    index.take_over(&first.request, lost, WatchProgress::default(), NOW);
    decide(&mut index, &run, NOW + SignedDuration::from_millis(100));
    push_bindings(&mut index.requests, FIRST, IN_FLIGHT + 1);
    let sent = lines(&send(&mut index.requests));
    assert!(sent.contains(&"publish run".into()), "{sent:?}");
    assert_eq!(sent.len(), IN_FLIGHT + 1);
}

/// A world in which so many claims name a pool that does not exist.
fn claims_without_a_pool(count: usize) -> (Index, Vec<Key>) {
    let mut index = Index::default();
    let names = (0..count).map(|n| format!("run-{n:03}"));
    let claims = names.map(|name| {
        index.apply_claim(&stored_claim(&name), true, NOW);
        Key::new("default", name)
    });
    let claims = claims.collect();
    (index, claims)
}

/// The moment at which a claim that waits says so.
const LATER: SignedDuration = SignedDuration::from_secs(1);

/// Reconciles every claim of `due`, and those that follow from it.
fn reconcile_claims(index: &mut Index, due: Vec<ReconcileRequest>) {
    let mut due = VecDeque::from(due);
    while let Some(object) = due.pop_front() {
        if let ReconcileRequest::Claim(claim) = object
            // The controller reconciles no claim that is gone.
            && index.knows_claim(&stored_claim_in(&claim.namespace, &claim.name))
        {
            due.extend(decide(index, &claim, NOW + LATER).to_reconcile);
        }
    }
}

/// Sends what may be sent, answers the first and reconciles what follows, until nothing is left. Returns what was sent.
fn send_and_answer_all(index: &mut Index) -> Vec<String> {
    let (mut in_flight, mut went) = (VecDeque::new(), Vec::new());
    loop {
        in_flight.extend(send(&mut index.requests));
        let Some(sent) = in_flight.pop_front() else {
            return went;
        };
        went.push(line(&sent.request));
        let written = Answer::Claim(Box::new(written(&sent.request)));
        answer(index, &sent, Ok(written));
    }
}

fn answer(index: &mut Index, sent: &Sent, outcome: Outcome) {
    index.requests.answered(sent);
    let due = index.take_over(&sent.request, outcome, WatchProgress::default(), NOW + LATER);
    reconcile_claims(index, due);
}

fn failure(class: Class) -> Failure {
    Failure {
        class,
        message: String::new(),
    }
}

/// The claim that a write of its status leaves behind.
fn written(request: &Request) -> StoredClaim {
    let Request::WriteClaim(write) = request else {
        panic!("not a status: {request:?}");
    };
    let mut stored = stored_claim(&write.claim.key.name);
    stored.metadata.resource_version = Some("2".into());
    stored.status = serde_json::from_value(json!(write.status)).unwrap();
    stored
}

#[test]
fn a_thousand_claims_that_begin_to_wait_have_64_statuses_in_memory_and_all_are_written_in_order() {
    let (mut index, claims) = claims_without_a_pool(1000);
    let due = claims.iter().cloned().map(ReconcileRequest::Claim);
    reconcile_claims(&mut index, due.collect());
    let mut queued = index.requests.clone();
    let mut count = 0;
    while let Some(sent) = queued.take_next() {
        queued.answered(&sent);
        count += 1;
    }
    assert_eq!(count, 64);
    let expected: Vec<_> = claims
        .iter()
        .map(|claim| format!("publish {}", claim.name))
        .collect();
    assert_eq!(send_and_answer_all(&mut index), expected);
}

#[test]
fn claims_of_a_namespace_whose_statuses_are_not_answered_hold_up_no_status_of_another() {
    let (mut index, claims) = claims_without_a_pool(1000);
    let due = claims.into_iter().map(ReconcileRequest::Claim);
    reconcile_claims(&mut index, due.collect());
    assert_eq!(send(&mut index.requests).len(), 32);
    let other = stored_claim_in("other", "run");
    index.apply_claim(&other, true, NOW);
    reconcile_claims(
        &mut index,
        vec![ReconcileRequest::Claim(Key::new("other", "run"))],
    );
    let sent = send(&mut index.requests);
    let [Request::WriteClaim(write)] = sent.iter().map(|sent| &sent.request).collect::<Vec<_>>()[..] else {
        panic!("not one status: {:?}", lines(&sent));
    };
    assert_eq!(write.claim.key, Key::new("other", "run"));
}

#[test]
fn claims_that_go_before_or_while_their_status_is_written_hold_up_no_other() {
    let (mut index, claims) = claims_without_a_pool(200);
    let due = claims.iter().cloned().map(ReconcileRequest::Claim);
    reconcile_claims(&mut index, due.collect());
    let in_flight = send(&mut index.requests);
    for claim in claims.iter().take(128) {
        let due = index.delete_claim(&stored_claim(&claim.name));
        reconcile_claims(&mut index, due);
    }
    for sent in in_flight {
        answer(&mut index, &sent, Err(failure(Class::Gone)));
    }
    let went = send_and_answer_all(&mut index);
    for claim in claims.iter().skip(128) {
        assert!(went.contains(&format!("publish {}", claim.name)), "{went:?}");
    }
}

#[test]
fn at_a_stop_only_the_publications_of_bound_claims_are_still_sent() {
    let mut queue = RequestQueue::default();
    for is_retry in [FIRST, RETRY] {
        for request in [bind("pod", "run"), publish("run"), create("pod"), delete("pod")] {
            queue.push(request, is_retry);
        }
    }
    queue.push(status("waits", Phase::Pending), FIRST);
    queue.push(read("pod"), FIRST);
    queue.keep_publications();
    assert_eq!(lines(&send(&mut queue)), ["publish run", "publish run"]);
}
