//! Creates pods under names chosen beforehand: a repeated POST cannot create two.

use crate::api::{API_VERSION, labels};
use crate::cache::reconcile_request::ReconcileRequest;
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

/// How long a POST is repeated while its outcome is unknown. Afterwards demand may have changed, and a new plan decides.
const DECISION_LIFETIME: Duration = Duration::from_secs(2);

/// Creates the pods: the first alone, the rest only after the API server accepted it. A template that the API server rejects
/// then costs one request, not hundreds.
pub(crate) async fn run(executor: Executor, pool: Arc<Pool>, orders: Vec<CreateOrder>) {
    let Some((first, rest)) = orders.split_first() else {
        return;
    };
    match create(&executor, &pool, first).await {
        Ok(true) => executor.creation_succeeded(&pool),
        Ok(false) => {}
        Err(NotCreated::For(error)) => return start_backoff(&executor, &pool, &orders, &error),
        // The first pod may still appear.
        Err(NotCreated::Unknown(error)) => return start_backoff(&executor, &pool, rest, &error),
    }
    for order in rest {
        let (pool, orders) = (Arc::clone(&pool), vec![order.clone()]);
        executor.start(Task::Create { pool, orders });
    }
}

/// Why a pod is not known to have been created.
enum NotCreated {
    /// The API server's last answer.
    For(CallError),
    /// The pod may exist: the answer was lost and a live read failed. A later live read finds out.
    Unknown(CallError),
}

/// Returns whether the pod was created. It is not when the pool changed while the order waited for a slot: then the next plan
/// decides.
async fn create(executor: &Executor, pool: &Pool, order: &CreateOrder) -> Result<bool, NotCreated> {
    let mut slot = executor.changes.slot();
    slot.acquire().await;
    let now = executor.shared.lock().pool(&pool.key);
    if now.is_none_or(|now| (&now.uid, now.generation) != (&pool.uid, pool.generation)) {
        forget(executor, pool, order);
        return Ok(false);
    }
    let pods: Api<StoredPod> = Api::namespaced(executor.client.clone(), &order.pod.namespace);
    let body = pod(pool, order);
    let post = || object_requests::create(&executor.client, &pods, &body);
    let is_visible = || !executor.shared.lock().expectations.is_creating(&order.pod);
    let answer = post_until_known(&mut slot, &pods, pool, &order.pod.name, post, is_visible).await;
    let unseen = executor.shared.lock().expectations.create_answered(&order.pod);
    match answer {
        Ok(_) => {
            let (pod, reason) = (&order.pod, order.reason);
            tracing::info!(pool = %pool.key, %pod, revision = order.revision, reason, "sandbox created");
            executor.metrics.created(&pool.key, reason);
            Ok(true)
        }
        // The answer was lost, but the watch has shown the pod. It may have been bound and deleted since.
        Err(_) if !unseen => Ok(true),
        Err(error) => Err(error),
    }
}

/// Forgets the expected creation of `order`.
fn forget(executor: &Executor, pool: &Pool, order: &CreateOrder) {
    executor.shared.lock().expectations.created(&order.pod);
    executor
        .to_reconcile
        .send([ReconcileRequest::Pool(pool.key.clone())]);
}

/// Repeats a POST until its outcome is known, at most for [`DECISION_LIFETIME`]. After a lost answer a live read decides
/// whether the pod exists, whatever a later try is answered: a quota rejects a POST before its name is checked. If the pod does
/// not exist, the next plan decides again. A pod that the watch has shown is not posted again: it may be gone by now, and the
/// POST would create a second one.
async fn post_until_known<F: Future<Output = Result<StoredPod, CallError>>>(
    slot: &mut RequestSlot<'_>,
    pods: &Api<StoredPod>,
    pool: &Pool,
    name: &str,
    mut post: impl FnMut() -> F,
    is_visible: impl Fn() -> bool,
) -> Result<StoredPod, NotCreated> {
    let (decided, mut tries) = (Instant::now(), Tries::new());
    let is_valid = || decided.elapsed() < DECISION_LIFETIME;
    let mut error = CallError::NoAnswer;
    loop {
        slot.acquire().await;
        if tries.lost && is_visible() {
            return Err(NotCreated::Unknown(error));
        }
        if tries.lost && !is_valid() {
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
        if !is_valid() {
            break;
        }
        slot.back_off(tries.next_pause()).await;
    }
    if !tries.lost && !is_name_taken(&error) {
        return Err(NotCreated::For(error));
    }
    match confirm(slot, || call(pods.get(name))).await {
        Ok(existing) if is_of(pool, &existing) => Ok(existing),
        Err(unreadable) if unreadable.class() != Class::Gone => Err(NotCreated::Unknown(unreadable)),
        // Not a pod of this pool, or no pod.
        Ok(_) | Err(_) => Err(NotCreated::For(error)),
    }
}

/// Another pod has the name: a pod of a user or of an earlier try.
fn is_name_taken(error: &CallError) -> bool {
    matches!(error, CallError::Kube(kube::Error::Api(status)) if status.is_already_exists())
}

/// Whether the pod was created for `pool`; a claim may own it by now.
fn is_of(pool: &Pool, pod: &StoredPod) -> bool {
    Sandbox::read(pod).is_some_and(|sandbox| match &sandbox.owner {
        Owner::Pool { uid } => *uid == pool.uid,
        Owner::Claim { .. } => sandbox.pool == pool.key.name,
        Owner::Other => false,
    })
}

/// Forgets `orders` and stops creations of the pool for a while. The pool's status says why.
fn start_backoff(executor: &Executor, pool: &Pool, orders: &[CreateOrder], error: &CallError) {
    let message = error.message();
    let mut index = executor.shared.lock();
    for order in orders {
        index.expectations.created(&order.pod);
    }
    drop(index);
    let pause = executor.creation_failed(pool, error);
    if !error.is_logged() {
        tracing::warn!(pool = %pool.key, error = message, retry_in = ?pause, "a pod could not be created");
    }
    executor
        .to_reconcile
        .send([ReconcileRequest::Pool(pool.key.clone())]);
}

/// The pod: the template as written, with the operator's labels, owned by the pool.
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
