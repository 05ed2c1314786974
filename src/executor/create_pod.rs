//! Creating pods, under names chosen beforehand, so that a repeated POST cannot create two.

use crate::api::{API_VERSION, labels};
use crate::cache::index::ReconcileRequest;
use crate::client::call::{CallError, Class, call};
use crate::client::object_requests;
use crate::executor::handle::Executor;
use crate::executor::request_limit::RequestSlot;
use crate::executor::retry::{Tries, confirm};
use crate::executor::task::{CreateOrder, Task};
use crate::model::pool::Pool;
use crate::model::sandbox::{Owner, Sandbox};
use crate::model::stored::StoredPod;
use kube::Api;
use serde_json::{Map, Value, json};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long the decision to create a pod stands while its outcome is unknown. What is needed may have changed since.
const STANDS: Duration = Duration::from_secs(2);

/// Creates the pods: the first alone, and the others only when the API server took it, so that a template it
/// refuses costs one request and not hundreds.
pub(crate) async fn run(executor: Executor, pool: Arc<Pool>, orders: Vec<CreateOrder>) {
    let Some((first, rest)) = orders.split_first() else {
        return;
    };
    match create(&executor, &pool, first).await {
        Ok(true) => executor.backoff().succeeded(&pool),
        Ok(false) => {}
        Err(NotCreated::For(error)) => return refuse(&executor, &pool, &orders, &error),
        // The pod of `first` may come.
        Err(NotCreated::Unknown(error)) => return refuse(&executor, &pool, rest, &error),
    }
    for order in rest {
        let (pool, orders) = (Arc::clone(&pool), vec![order.clone()]);
        executor.start(Task::Create { pool, orders });
    }
}

/// Why a pod is not known to have been created.
enum NotCreated {
    /// The API server's last word.
    For(CallError),
    /// It may have been: its answer is lost, and the API server cannot be asked. A later live read is to tell.
    Unknown(CallError),
}

/// Answers whether the pod was created. It is not when the pool was changed while the order waited for its turn: then the
/// next plan says what is needed.
async fn create(executor: &Executor, pool: &Pool, order: &CreateOrder) -> Result<bool, NotCreated> {
    let mut slot = executor.changes.slot();
    slot.take().await;
    let now = executor.shared.lock().pool(&pool.key);
    if now.is_none_or(|now| (&now.uid, now.generation) != (&pool.uid, pool.generation)) {
        forget(executor, pool, order);
        return Ok(false);
    }
    let pods: Api<StoredPod> = Api::namespaced(executor.client.clone(), &order.pod.namespace);
    let body = pod(pool, order);
    let post = || object_requests::create(&executor.client, &pods, &body);
    let is_seen = || !executor.shared.lock().expectations.is_creating(&order.pod);
    let answer = while_it_stands(&mut slot, &pods, pool, &order.pod.name, post, is_seen).await;
    let unseen = executor.shared.lock().expectations.create_answered(&order.pod);
    match answer {
        Ok(_) => {
            let (pod, reason) = (&order.pod, order.reason);
            tracing::info!(pool = %pool.key, %pod, revision = order.revision, reason, "sandbox created");
            executor.metrics.created(&pool.key, reason);
            Ok(true)
        }
        // Its answer is lost, and the watch has shown it. It may have served a claim and be gone by now.
        Err(_) if !unseen => Ok(true),
        Err(error) => Err(error),
    }
}

/// The pod of `order` does not come.
fn forget(executor: &Executor, pool: &Pool, order: &CreateOrder) {
    executor.shared.lock().expectations.created(&order.pod);
    executor
        .to_reconcile
        .send([ReconcileRequest::Pool(pool.key.clone())]);
}

/// Sends a creation until its outcome is known, but not for longer than the decision to create stands. Once an answer is
/// lost, a live read tells whether the pod is there, whatever is said of a later try: a quota refuses it before its name is
/// looked at. When it is not there, what is needed by now is decided anew. One that the watch has shown is not sent again:
/// it may be gone by now, and would be made twice.
async fn while_it_stands<F: Future<Output = Result<StoredPod, CallError>>>(
    slot: &mut RequestSlot<'_>,
    pods: &Api<StoredPod>,
    pool: &Pool,
    name: &str,
    mut post: impl FnMut() -> F,
    is_seen: impl Fn() -> bool,
) -> Result<StoredPod, NotCreated> {
    let (decided, mut tries) = (Instant::now(), Tries::new());
    let stands = || decided.elapsed() < STANDS;
    let mut error = CallError::NoAnswer;
    loop {
        slot.take().await;
        if tries.lost && is_seen() {
            return Err(NotCreated::Unknown(error));
        }
        if tries.lost && !stands() {
            break;
        }
        error = match post().await {
            Ok(pod) => return Ok(pod),
            Err(error) => error,
        };
        if error.class() != Class::Ambiguous {
            break;
        }
        tries.lost = true;
        if !stands() {
            break;
        }
        slot.pause(tries.next_pause()).await;
    }
    if !tries.lost && !is_name_taken(&error) {
        return Err(NotCreated::For(error));
    }
    match confirm(slot, || call(pods.get(name))).await {
        Ok(existing) if is_of(pool, &existing) => Ok(existing),
        Err(unreadable) if unreadable.class() != Class::Gone => Err(NotCreated::Unknown(unreadable)),
        // A stranger's, or none.
        Ok(_) | Err(_) => Err(NotCreated::For(error)),
    }
}

/// The name is a stranger's, or that of an earlier try.
fn is_name_taken(error: &CallError) -> bool {
    matches!(error, CallError::Kube(kube::Error::Api(status)) if status.is_already_exists())
}

/// The pod was made for `pool`; a claim may have it by now.
fn is_of(pool: &Pool, pod: &StoredPod) -> bool {
    Sandbox::read(pod).is_some_and(|sandbox| match &sandbox.owner {
        Owner::Pool { uid } => *uid == pool.uid,
        Owner::Claim { .. } => sandbox.pool == pool.key.name,
        Owner::Other => false,
    })
}

/// Nothing of `orders` will come: no more pods are created for a while, and the pool says why.
fn refuse(executor: &Executor, pool: &Pool, orders: &[CreateOrder], error: &CallError) {
    let message = error.message();
    let mut index = executor.shared.lock();
    for order in orders {
        index.expectations.created(&order.pod);
    }
    drop(index);
    let pause = executor.backoff().failed(pool, error, executor.shared.now());
    if !error.is_logged() {
        tracing::warn!(pool = %pool.key, error = message, retry_in = ?pause, "a pod could not be created");
    }
    executor
        .to_reconcile
        .send([ReconcileRequest::Pool(pool.key.clone())]);
}

/// The pod: the template as written, with our labels, and owned by the pool.
fn pod(pool: &Pool, order: &CreateOrder) -> Value {
    let template = &order.template.value;
    let mut metadata = Map::new();
    for field in ["labels", "annotations"] {
        if let Some(map) = template
            .pointer(&format!("/metadata/{field}"))
            .and_then(Value::as_object)
        {
            metadata.insert(field.into(), Value::Object(map.clone()));
        }
    }
    let pod_labels = metadata.entry("labels").or_insert_with(|| json!({}));
    if let Some(pod_labels) = pod_labels.as_object_mut() {
        pod_labels.insert(labels::POOL.into(), json!(pool.key.name));
        pod_labels.insert(labels::REVISION.into(), json!(order.revision));
        pod_labels.insert(labels::STATE.into(), json!(labels::WARM));
    }
    metadata.insert("name".into(), json!(order.pod.name));
    metadata.insert("namespace".into(), json!(order.pod.namespace));
    metadata.insert(
        "ownerReferences".into(),
        json!([{
            "apiVersion": API_VERSION, "kind": "Pool", "name": pool.key.name, "uid": pool.uid,
            "controller": true, "blockOwnerDeletion": false,
        }]),
    );
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec")})
}
