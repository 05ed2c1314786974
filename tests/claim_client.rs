//! Claims of Rust programs, against a stand-in for the API server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, Notify, OwnedMutexGuard};
use warmpool::api::claim::Phase;
use warmpool::claim_client::{Claim, ClaimError, wait_for_releases};

/// `wait_for_releases` waits for the whole process, so one test runs at a time.
static ALONE: LazyLock<Arc<AsyncMutex<()>>> = LazyLock::new(Arc::default);

/// What the stand-in does with the one claim that is created.
#[derive(Clone)]
struct Server {
    _alone: Arc<OwnedMutexGuard<()>>,
    status: Value,
    /// Answers to deletions, from the last on; then each succeeds.
    refuse: Arc<Mutex<Vec<u16>>>,
    hold_creation: Option<Arc<Notify>>,
    created: Arc<Mutex<Option<Value>>>,
    deleted: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    async fn with_status(status: Value) -> Self {
        Self {
            _alone: Arc::new(ALONE.clone().lock_owned().await),
            status,
            refuse: Arc::default(),
            hold_creation: None,
            created: Arc::default(),
            deleted: Arc::default(),
        }
    }

    /// It answers a creation once it is notified.
    async fn with_held_creation() -> (Self, Arc<Notify>) {
        let hold = Arc::new(Notify::new());
        let server = Self {
            hold_creation: Some(hold.clone()),
            ..Self::with_status(bound(&["a"])).await
        };
        (server, hold)
    }

    /// Claims, and gives up before the claim is bound.
    async fn give_up(&self) {
        let bind = Claim::from_pool("python").bind(self.client());
        let outcome = tokio::time::timeout(Duration::from_millis(50), bind).await;
        assert!(outcome.is_err());
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        Client::new(service, "team")
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let sent: Value = serde_json::from_slice(&body).unwrap_or_default();
        let (code, answer) = match head.method {
            Method::POST => {
                let mut claim = sent;
                claim["metadata"]["uid"] = json!("uid-1");
                *self.created.lock().unwrap() = Some(claim.clone());
                if let Some(hold) = &self.hold_creation {
                    hold.notified().await;
                }
                (201, claim)
            }
            Method::DELETE => match self.refuse.lock().unwrap().pop() {
                Some(code) => (code, failure(code)),
                None => {
                    self.deleted.lock().unwrap().push(sent);
                    (200, json!({"kind": "Status", "status": "Success"}))
                }
            },
            Method::GET if head.uri.query().is_some_and(|q| q.contains("watch=")) => {
                std::future::pending().await
            }
            Method::GET => {
                let mut claim = self.created.lock().unwrap().clone().unwrap();
                claim["status"] = self.status.clone();
                claim["metadata"]["resourceVersion"] = json!("2");
                let list = json!({
                    "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaimList",
                    "metadata": {"resourceVersion": "2"}, "items": [claim],
                });
                (200, list)
            }
            method => panic!("{method} {}", head.uri),
        };
        let body = Body::from(answer.to_string().into_bytes());
        Response::builder().status(code).body(body).unwrap()
    }

    fn spec(&self) -> Value {
        self.created.lock().unwrap().clone().unwrap()["spec"].clone()
    }

    /// Waits until the claim is deleted, by its UID or by its name alone.
    async fn deletes(&self, uid: &Value) {
        for _ in 0..500 {
            if let Some(deletion) = self.deleted.lock().unwrap().first() {
                assert_eq!(&deletion["preconditions"]["uid"], uid);
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the claim is still there");
    }

    fn keeps(&self) -> bool {
        self.deleted.lock().unwrap().is_empty()
    }
}

fn failure(code: u16) -> Value {
    json!({"kind": "Status", "status": "Failure", "code": code, "reason": "Whatever", "message": "refused"})
}

fn condition(type_: &str, status: &str, reason: &str) -> Value {
    let time = "2026-01-31T12:00:00Z";
    json!({"type": type_, "status": status, "reason": reason, "message": "so it is", "lastTransitionTime": time})
}

fn bound(sandboxes: &[&str]) -> Value {
    let sandboxes = sandboxes.iter().map(
        |name| json!({"name": name, "uid": name, "ip": "10.0.0.2", "boundTime": "2026-01-31T12:00:00Z"}),
    );
    json!({
        "phase": "Bound", "pool": "python", "waitSeconds": 0.25, "sandboxes": sandboxes.collect::<Vec<_>>(),
        "conditions": [condition("Bound", "True", "Bound"), condition("Ready", "True", "SandboxReady")],
    })
}

fn waiting() -> Value {
    json!({"phase": "Pending", "conditions": [condition("Bound", "False", "NoneAvailable")]})
}

#[tokio::test]
async fn a_claim_has_what_was_asked_for_and_is_released_by_its_uid() {
    let server = Server::with_status(bound(&["a", "b"])).await;
    let request = Claim::from_pool("python")
        .replicas(2)
        .lifetime(Duration::from_millis(1500))
        .wait_timeout(Duration::from_secs(5))
        .label("app", "agent")
        .annotation("example.com/run", "42")
        .with(|spec| spec.priority = Some(7));
    let claim = request.bind(server.client()).await.unwrap();
    let expected = json!({
        "poolRef": {"name": "python"}, "replicas": 2, "lifetimeSeconds": 2, "waitTimeoutSeconds": 5, "priority": 7,
        "podMetadata": {"labels": {"app": "agent"}, "annotations": {"example.com/run": "42"}},
    });
    assert_eq!(server.spec(), expected);
    assert_eq!(claim.sandbox().name, "a");
    assert_eq!(claim.sandboxes().len(), 2);
    assert_eq!(
        (claim.pool(), claim.waited()),
        ("python", Duration::from_millis(250))
    );
    assert!(claim.name().starts_with("python-") && claim.name().len() == "python-".len() + 16);
    claim.release().await.unwrap();
    server.deletes(&json!("uid-1")).await;
}

#[tokio::test]
async fn a_selector_claim_names_no_pool() {
    let server = Server::with_status(bound(&["a"])).await;
    let request = Claim::from_pools_with([("lang", "python")]).name_prefix("run.-");
    let claim = request.bind(server.client()).await.unwrap();
    assert_eq!(
        server.spec()["poolSelector"]["matchLabels"],
        json!({"lang": "python"})
    );
    assert!(claim.name().starts_with("run-"), "{}", claim.name());
    claim.release().await.unwrap();
}

#[tokio::test]
async fn a_dropped_claim_is_released_and_a_kept_one_stays() {
    let server = Server::with_status(bound(&["a"])).await;
    let kept = Claim::from_pool("python")
        .bind(server.client())
        .await
        .unwrap()
        .keep();
    assert!(kept.starts_with("python-"));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(server.keeps());
    drop(Claim::from_pool("python").bind(server.client()).await.unwrap());
    server.deletes(&json!("uid-1")).await;
}

#[tokio::test]
async fn a_wait_that_is_given_up_leaves_no_claim() {
    let server = Server::with_status(waiting()).await;
    server.give_up().await;
    server.deletes(&json!("uid-1")).await;
}

#[tokio::test]
async fn a_creation_that_is_given_up_on_its_way_leaves_no_claim() {
    let (server, hold) = Server::with_held_creation().await;
    server.give_up().await;
    assert!(server.keeps());
    hold.notify_one();
    server.deletes(&json!("uid-1")).await;
}

#[tokio::test]
async fn a_program_can_wait_for_a_creation_and_its_deletion_after_giving_up() {
    let (server, hold) = Server::with_held_creation().await;
    *server.refuse.lock().unwrap() = vec![503];
    server.give_up().await;
    let early = tokio::time::timeout(Duration::from_millis(50), wait_for_releases()).await;
    assert!(early.is_err());
    hold.notify_one();
    wait_for_releases().await;
    assert!(!server.keeps());
}

#[tokio::test]
async fn a_program_can_wait_for_the_deletion_of_a_dropped_claim() {
    let server = Server::with_status(bound(&["a"])).await;
    *server.refuse.lock().unwrap() = vec![503];
    drop(Claim::from_pool("python").bind(server.client()).await.unwrap());
    assert!(server.keeps());
    wait_for_releases().await;
    assert!(!server.keeps());
}

#[tokio::test(start_paused = true)]
async fn a_program_can_wait_for_a_release_after_giving_up() {
    let server = Server::with_status(bound(&["a"])).await;
    *server.refuse.lock().unwrap() = vec![503];
    let claim = Claim::from_pool("python").bind(server.client()).await.unwrap();
    let given_up = tokio::time::timeout(Duration::from_millis(50), claim.release()).await;
    assert!(given_up.is_err() && server.keeps());
    wait_for_releases().await;
    assert!(!server.keeps());
}

#[test]
fn a_runtime_that_has_ended_leaves_nothing_to_wait_for() {
    let first = tokio::runtime::Runtime::new().unwrap();
    first.block_on(async {
        let (server, _) = Server::with_held_creation().await;
        server.give_up().await;
    });
    drop(first);
    let second = tokio::runtime::Runtime::new().unwrap();
    let ended =
        second.block_on(async { tokio::time::timeout(Duration::from_secs(5), wait_for_releases()).await });
    assert!(ended.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_creation_without_an_answer_is_deleted_by_its_name() {
    let (server, _) = Server::with_held_creation().await;
    let outcome = Claim::from_pool("python").bind(server.client()).await;
    assert!(matches!(outcome, Err(ClaimError::Request { .. })), "{outcome:?}");
    server.deletes(&Value::Null).await;
}

#[tokio::test]
async fn a_claim_that_failed_says_why_and_is_deleted() {
    let status = json!({"phase": "Failed", "conditions": [condition("Bound", "False", "WaitTimeout")]});
    let server = Server::with_status(status).await;
    match Claim::from_pool("python").bind(server.client()).await {
        Err(ClaimError::Ended {
            phase,
            reason,
            message,
            ..
        }) => {
            assert_eq!(
                (phase, reason.as_str(), message.as_str()),
                (Phase::Failed, "WaitTimeout", "so it is")
            );
        }
        outcome => panic!("{outcome:?}"),
    }
    server.deletes(&json!("uid-1")).await;
}

#[tokio::test(start_paused = true)]
async fn a_release_is_tried_again_until_the_claim_is_gone() {
    let server = Server::with_status(bound(&["a"])).await;
    *server.refuse.lock().unwrap() = vec![500, 503, 500];
    let claim = Claim::from_pool("python").bind(server.client()).await.unwrap();
    claim.release().await.unwrap();
    server.deletes(&json!("uid-1")).await;

    *server.refuse.lock().unwrap() = vec![404];
    let claim = Claim::from_pool("python").bind(server.client()).await.unwrap();
    claim.release().await.unwrap();

    *server.refuse.lock().unwrap() = vec![500; 5];
    let claim = Claim::from_pool("python").bind(server.client()).await.unwrap();
    assert!(matches!(claim.release().await, Err(ClaimError::Request { .. })));
}
