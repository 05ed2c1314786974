//! Stores template revisions as ControllerRevision objects.

use crate::api::{API_VERSION, labels};
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::snapshot::{Creation, PoolSnapshot};
use crate::client::call::{CallError, Class, call};
use crate::client::object_requests::{self, only};
use crate::executor::handle::Executor;
use crate::executor::request_limit::RequestSlot;
use crate::executor::retry::{confirm, retry_delay};
use crate::model::pool::Pool;
use crate::model::revision::{HASH_VERSION, Revision};
use crate::model::stored::{self, StoredRevision};
use crate::planner::Plan;
use crate::planner::revise::{Revisions, Store};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Whether stored revisions must be written now. Deletions alone wait when the pool `is_requeued`, as after a failed
/// deletion.
pub(crate) fn due(snapshot: &PoolSnapshot, plan: &Plan, is_requeued: bool) -> bool {
    let waits = matches!(&snapshot.creation, Creation::BackOff { until, .. } if *until > snapshot.now);
    let trims = !plan.revisions.trim.is_empty() && !is_requeued;
    !waits && (plan.revisions.store.is_some() || trims)
}

/// Stores the update revision as the newest and deletes revisions over the history limit.
pub(crate) async fn run(executor: Executor, pool: Arc<Pool>, revisions: Revisions) {
    let api: Api<StoredRevision> = Api::namespaced(executor.client.clone(), &pool.key.namespace);
    let before = executor.shared.lock().watch_progress();
    let stored = match &revisions.store {
        None => Ok(None),
        Some(Store::Create(number)) => create(&executor.client, &api, &pool, &revisions, *number)
            .await
            .map(Some),
        Some(Store::Renumber(revision, number)) => renumber(&api, &pool, revision, *number).await.map(Some),
    };
    let (mut gone, mut failed) = (Vec::new(), None);
    for revision in &revisions.trim {
        match trim(&api, revision).await {
            Ok(()) => gone.push(revision),
            Err(error) => failed = Some(error),
        }
    }
    let again = vec![ReconcileRequest::Pool(pool.key.clone())];
    if let Some(error) = failed {
        executor.requeue_after(again.clone(), retry_delay(Some(&error)));
    }
    let stored = stored.map_err(|error| {
        let pause = executor.creation_failed(&pool, &error);
        if !error.is_logged() {
            let error = error.message();
            tracing::warn!(pool = %pool.key, error, retry_in = ?pause, "the revision could not be stored");
        }
    });
    let mut index = executor.shared.lock();
    index.expectations.end_revising(&pool.uid);
    gone.into_iter()
        .for_each(|revision| index.forget_revision(revision));
    if let Ok(Some(revision)) = stored {
        index.learn_revision(&revision, before);
    }
    drop(index);
    // Handle changes of the meantime.
    executor.trigger(again);
}

async fn create(
    client: &Client,
    api: &Api<StoredRevision>,
    pool: &Pool,
    revisions: &Revisions,
    number: i64,
) -> Result<StoredRevision, CallError> {
    let hash = &revisions.update.hash;
    let name = format!("{}-{hash}", pool.key.name);
    let cause = pool.change_cause.as_deref();
    let annotations = [
        (labels::HASH_VERSION, Some(HASH_VERSION)),
        (labels::CHANGE_CAUSE, cause),
    ];
    let annotations: BTreeMap<_, _> = annotations
        .into_iter()
        .filter(|(_, value)| value.is_some())
        .collect();
    let labels_of_revision = json!({(labels::POOL): pool.key.name, (labels::REVISION): hash});
    let revision = json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "labels": labels_of_revision,
            "annotations": annotations,
            "ownerReferences": [{
                "apiVersion": API_VERSION, "kind": "Pool", "name": pool.key.name, "uid": pool.uid,
                "controller": true, "blockOwnerDeletion": false,
            }],
        },
        "revision": number,
        "data": {"spec": {"template": revisions.update.template.value}},
    });
    match confirm(&mut RequestSlot::unlimited(), || {
        object_requests::create(client, api, &revision)
    })
    .await
    {
        Ok(stored) => {
            tracing::debug!(pool = %pool.key, revision = hash, number, "revision stored");
            Ok(stored)
        }
        // The name exists: from an earlier try, another operator, or an earlier pool of this name that is not garbage
        // collected yet.
        Err(error) if error.class() == Class::Conflict => {
            existing(api, pool, hash, &name, labels_of_revision)
                .await?
                .ok_or(error)
        }
        Err(error) => Err(error),
    }
}

/// The revision stored under this name, if this pool owns it. If a user removed its labels, they are restored: without them
/// no list of the pool's revisions contains it.
async fn existing(
    api: &Api<StoredRevision>,
    pool: &Pool,
    hash: &str,
    name: &str,
    labels_of_revision: Value,
) -> Result<Option<StoredRevision>, CallError> {
    let found = confirm(&mut RequestSlot::unlimited(), || call(api.get(name))).await?;
    if !stored::is_owned_by(&found.metadata, &pool.uid) {
        return Ok(None);
    }
    if is_of(&found, pool, hash) {
        return Ok(Some(found));
    }
    let metadata = json!({"uid": found.metadata.uid, "labels": labels_of_revision});
    let patch = Patch::Merge(json!({"metadata": metadata}));
    let labeled = patched(api, name, &patch).await?;
    Ok(Some(labeled).filter(|labeled| is_of(labeled, pool, hash)))
}

/// Whether `stored` reads as the pool's revision with this hash.
fn is_of(stored: &StoredRevision, pool: &Pool, hash: &str) -> bool {
    Revision::read(stored).is_some_and(|revision| {
        revision.owner == pool.uid && revision.pool == pool.key.name && revision.hash == hash
    })
}

async fn renumber(
    api: &Api<StoredRevision>,
    pool: &Pool,
    revision: &Revision,
    number: i64,
) -> Result<StoredRevision, CallError> {
    let annotations = json!({(labels::CHANGE_CAUSE): pool.change_cause});
    let metadata = json!({"uid": revision.uid, "annotations": annotations});
    let patch = Patch::Merge(json!({"metadata": metadata, "revision": number}));
    patched(api, &revision.key.name, &patch).await
}

async fn patched(
    api: &Api<StoredRevision>,
    name: &str,
    patch: &Patch<Value>,
) -> Result<StoredRevision, CallError> {
    let parameters = PatchParams::default();
    confirm(&mut RequestSlot::unlimited(), || {
        call(api.patch(name, &parameters, patch))
    })
    .await
}

/// Deletes an old revision. A deletion that fails is planned again.
async fn trim(api: &Api<StoredRevision>, revision: &Revision) -> Result<(), CallError> {
    match call(api.delete(&revision.key.name, &only(&revision.uid, None))).await {
        Err(error) if error.class() != Class::Gone => {
            tracing::debug!(revision = %revision.key, error = error.message(), "an old revision could not be deleted");
            Err(error)
        }
        _ => Ok(()),
    }
}
