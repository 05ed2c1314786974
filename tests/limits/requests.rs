//! Builds the requests that the tests queue, and reads what is sent.

use jiff::Timestamp;
use serde_json::json;
use std::sync::Arc;
use warmpool::api::claim::Phase;
use warmpool::api::{PoolStatus, SandboxClaimStatus};
use warmpool::cache::request_limits::{RequestQueue, Sent};
use warmpool::model::Key;
use warmpool::model::claim::Claim;
use warmpool::model::pool::Pool;
use warmpool::model::request::{ClaimWrite, PodChange, PodCreation, PodWrite, PoolWrite, Request};
use warmpool::model::sandbox::Sandbox;
use warmpool::model::stored::{StoredClaim, StoredPod, StoredPool};

pub const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// The pool of requests that name none.
pub fn python() -> Key {
    Key::new("default", "python")
}

fn pool(key: &Key) -> Arc<Pool> {
    let stored = json!({
        "metadata": {"namespace": key.namespace, "name": key.name, "uid": key.to_string()},
        "spec": {"replicas": 1, "template": {"spec": {"containers": []}}},
    });
    Arc::new(Pool::read(&serde_json::from_value::<StoredPool>(stored).unwrap()))
}

pub fn stored_claim(name: &str) -> StoredClaim {
    stored_claim_in("default", name)
}

pub fn stored_claim_in(namespace: &str, name: &str) -> StoredClaim {
    let stored = json!({
        "metadata": {
            "namespace": namespace, "name": name, "uid": format!("{namespace}-{name}"), "resourceVersion": "1",
        },
        "spec": {"poolRef": {"name": "python"}},
    });
    serde_json::from_value(stored).unwrap()
}

fn claim_in(namespace: &str, name: &str) -> Arc<Claim> {
    Arc::new(Claim::read(&stored_claim_in(namespace, name), 1, NOW))
}

pub fn claim(name: &str) -> Arc<Claim> {
    claim_in("default", name)
}

fn write_pod(pool: &Key, name: &str, change: PodChange) -> Request {
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
pub fn bind_of(pool: &Key, pod: &str, claim: &str) -> Request {
    let change = PodChange::Bind {
        claim: claim_in(&pool.namespace, claim),
        pool: self::pool(pool),
    };
    write_pod(pool, pod, change)
}

pub fn bind(pod: &str, claim: &str) -> Request {
    bind_of(&python(), pod, claim)
}

pub fn delete_of(pool: &Key, pod: &str) -> Request {
    write_pod(pool, pod, PodChange::Delete)
}

pub fn delete(pod: &str) -> Request {
    delete_of(&python(), pod)
}

pub fn create_of(pool: &Key, pod: &str) -> Request {
    let pool = self::pool(pool);
    Request::CreatePod(Arc::new(PodCreation {
        template: Arc::clone(&pool.template),
        pod: Key::new(pool.key.namespace.clone(), pod),
        pool,
        revision: "abc".into(),
        reason: "",
    }))
}

pub fn create(pod: &str) -> Request {
    create_of(&python(), pod)
}

/// A write of the claim's status with this phase. W2 is the write with phase Bound.
pub fn status_of(pool: &Key, claim: &str, phase: Phase) -> Request {
    let status = SandboxClaimStatus {
        phase: Some(phase),
        pool: pool.name.to_string(),
        ..SandboxClaimStatus::default()
    };
    Request::WriteClaim(Arc::new(ClaimWrite {
        claim: claim_in(&pool.namespace, claim),
        status: Box::new(status),
    }))
}

pub fn status(claim: &str, phase: Phase) -> Request {
    status_of(&python(), claim, phase)
}

pub fn publish(claim: &str) -> Request {
    status(claim, Phase::Bound)
}

pub fn write_pool(pool: &Key) -> Request {
    Request::WritePool(Arc::new(PoolWrite {
        pool: self::pool(pool),
        status: PoolStatus::default(),
    }))
}

pub fn read_in(namespace: &str, pod: &str) -> Request {
    Request::ReadPod(Key::new(namespace, pod))
}

pub fn read(pod: &str) -> Request {
    read_in("default", pod)
}

/// The request as a short line, such as `bind pod-1`.
pub fn line(request: &Request) -> String {
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
pub const FIRST: bool = false;
pub const RETRY: bool = true;

/// Adds `count` requests, each made from its number.
pub fn push(queue: &mut RequestQueue, is_retry: bool, count: usize, request: impl Fn(usize) -> Request) {
    (0..count).for_each(|number| queue.push(request(number), is_retry));
}

/// Adds `count` bindings, each of a claim of its own.
pub fn push_bindings(queue: &mut RequestQueue, is_retry: bool, count: usize) {
    push(queue, is_retry, count, |n| {
        bind(&format!("pod-{n}"), &format!("run-{n}"))
    });
}

/// Everything that may be sent now.
pub fn send(queue: &mut RequestQueue) -> Vec<Sent> {
    std::iter::from_fn(|| queue.take_next()).collect()
}

pub fn lines(sent: &[Sent]) -> Vec<String> {
    sent.iter().map(|sent| line(&sent.request)).collect()
}
