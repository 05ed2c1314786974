//! Creating pods, under names chosen beforehand, so that a repeated POST cannot create two.

use super::Writer;
use super::outcome::{CallError, Class, call, pauses, settle};
use super::task::Task;
use crate::api::{API_VERSION, labels};
use crate::observe::Key;
use crate::observe::index::Trigger;
use crate::observe::pool::Pool;
use crate::observe::revision::Template;
use crate::observe::sandbox::{Owner, Sandbox};
use crate::observe::stored::StoredPod;
use crate::observe::view::PoolView;
use crate::plan::Plan;
use kube::Api;
use kube::api::PostParams;
use kube::core::Request;
use serde_json::{Map, Value, json};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long the decision to create a pod stands while its outcome is unknown. What is needed may have changed since.
const STANDS: Duration = Duration::from_secs(2);

/// One pod to be created.
#[derive(Clone, Debug)]
pub struct Order {
    /// Namespace and name of the pod.
    pub pod: Key,
    revision: String,
    template: Arc<Template>,
    reason: &'static str,
}

impl Order {
    /// The order for one planned creation.
    pub(super) fn new(
        view: &PoolView,
        plan: &Plan,
        name: &str,
        revision: &str,
        reason: &'static str,
    ) -> Self {
        let previous = plan.revisions.previous.as_ref().filter(|p| p.hash == revision);
        Self {
            pod: Key::new(view.key().namespace.clone(), name),
            revision: revision.to_string(),
            template: Arc::clone(&previous.unwrap_or(&plan.revisions.update).template),
            reason,
        }
    }
}

/// Creates the pods: the first alone, and the others only when the API server took it, so that a template it
/// refuses costs one request and not hundreds.
pub(super) async fn run(writer: Writer, pool: Arc<Pool>, orders: Vec<Order>) {
    let Some((first, rest)) = orders.split_first() else {
        return;
    };
    match create(&writer, &pool, first).await {
        Ok(true) => writer.backoff().succeeded(&pool),
        Ok(false) => {}
        Err(error) => return refuse(&writer, &pool, &orders, &error),
    }
    for order in rest {
        let (pool, orders) = (Arc::clone(&pool), vec![order.clone()]);
        writer.start(Task::Create { pool, orders });
    }
}

/// Answers whether the pod was created. It is not when the pool was changed while the order waited for its turn: then the
/// next plan says what is needed.
async fn create(writer: &Writer, pool: &Pool, order: &Order) -> Result<bool, CallError> {
    let _permit = writer.changes.acquire().await;
    let now = writer.shared.lock().pool(&pool.key);
    if now.is_none_or(|now| (&now.uid, now.generation) != (&pool.uid, pool.generation)) {
        forget(writer, pool, order);
        return Ok(false);
    }
    let pods: Api<StoredPod> = Api::namespaced(writer.client.clone(), &order.pod.namespace);
    let body =
        serde_json::to_vec(&pod(pool, order)).map_err(|e| CallError::Kube(kube::Error::SerdeError(e)))?;
    let post = || {
        let request = Request::new(pods.resource_url()).create(&PostParams::default(), body.clone());
        call(async {
            let request = request.map_err(kube::Error::BuildRequest)?;
            writer.client.request::<StoredPod>(request).await
        })
    };
    let answer = while_it_stands(&pods, &order.pod.name, post).await;
    let unseen = writer.shared.lock().pending.create_answered(&order.pod);
    match answer {
        Ok(_) => {
            let (pod, reason) = (&order.pod, order.reason);
            tracing::info!(pool = %pool.key, %pod, revision = order.revision, reason, "sandbox created");
            writer.metrics.created(&pool.key, reason);
            Ok(true)
        }
        // The name is taken: by an earlier try of this very request, or by a stranger.
        Err(error) if is_conflict(&error) => {
            let existing = settle(|| call(pods.get(&order.pod.name))).await?;
            let ours = |s: Sandbox| matches!(s.owner, Owner::Pool { uid } if uid == pool.uid);
            if !Sandbox::read(&existing).is_some_and(ours) {
                forget(writer, pool, order);
            }
            Ok(true)
        }
        // Its answer is lost, and the watch has shown it. It may have served a claim and be gone by now.
        Err(error) if error.class() == Class::Ambiguous && !unseen => Ok(true),
        Err(error) => Err(error),
    }
}

/// The pod of `order` does not come.
fn forget(writer: &Writer, pool: &Pool, order: &Order) {
    writer.shared.lock().pending.created(&order.pod);
    writer.triggers.send([Trigger::Pool(pool.key.clone())]);
}

/// Sends a creation until its outcome is known, but not for longer than the decision to create stands: then a live read
/// tells whether the pod is there, and when it is not, what is needed by now is decided anew.
async fn while_it_stands<F: Future<Output = Result<StoredPod, CallError>>>(
    pods: &Api<StoredPod>,
    name: &str,
    mut post: impl FnMut() -> F,
) -> Result<StoredPod, CallError> {
    let decided = Instant::now();
    for pause in pauses() {
        let error = match post().await {
            Err(error) if error.class() == Class::Ambiguous => error,
            answer => return answer,
        };
        if decided.elapsed() >= STANDS {
            return match settle(|| call(pods.get(name))).await {
                Err(missing) if missing.class() == Class::Gone => Err(error),
                answer => answer,
            };
        }
        tokio::time::sleep(pause).await;
    }
    Err(CallError::NoAnswer)
}

fn is_conflict(error: &CallError) -> bool {
    matches!(error, CallError::Kube(kube::Error::Api(status)) if status.code == 409)
}

/// Nothing of `orders` will come: no more pods are created for a while, and the pool says why.
fn refuse(writer: &Writer, pool: &Pool, orders: &[Order], error: &CallError) {
    let message = error.message();
    let mut index = writer.shared.lock();
    for order in orders {
        index.pending.created(&order.pod);
    }
    drop(index);
    let pause = writer.backoff().failed(pool, error, writer.shared.now());
    if !error.is_told() {
        tracing::warn!(pool = %pool.key, message, retry_in = ?pause, "a pod could not be created");
    }
    writer.triggers.send([Trigger::Pool(pool.key.clone())]);
}

/// The pod: the template as written, with our labels, and owned by the pool.
fn pod(pool: &Pool, order: &Order) -> Value {
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
