//! The body and the patches of the ControllerRevision that stores a template.

use crate::api::{API_VERSION, labels};
use crate::model::pool::Pool;
use crate::model::revision::{HASH_VERSION, Revision, Template};
use kube::api::Patch;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The ControllerRevision with this name that stores `template`, whose hash is `hash`, as number `number` of `pool`.
pub(crate) fn revision_body(pool: &Pool, name: &str, hash: &str, template: &Template, number: i64) -> Value {
    let annotations = [
        (labels::HASH_VERSION, Some(HASH_VERSION)),
        (labels::CHANGE_CAUSE, pool.change_cause.as_deref()),
    ];
    let annotations: BTreeMap<_, _> = annotations
        .into_iter()
        .filter(|(_, value)| value.is_some())
        .collect();
    json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "labels": labels_of(pool, hash),
            "annotations": annotations,
            "ownerReferences": [{
                "apiVersion": API_VERSION, "kind": "Pool", "name": pool.key.name, "uid": pool.uid,
                "controller": true, "blockOwnerDeletion": false,
            }],
        },
        "revision": number,
        "data": {"spec": {"template": template.value}},
    })
}

/// The patch that restores the labels of the stored revision with this hash and UID.
pub(crate) fn labels_patch(pool: &Pool, hash: &str, uid: &str) -> Patch<Value> {
    Patch::Merge(json!({"metadata": {"uid": uid, "labels": labels_of(pool, hash)}}))
}

/// The patch that gives a stored revision this number, and the pool's change-cause.
pub(crate) fn number_patch(pool: &Pool, revision: &Revision, number: i64) -> Patch<Value> {
    let annotations = json!({(labels::CHANGE_CAUSE): pool.change_cause});
    let metadata = json!({"uid": revision.uid, "annotations": annotations});
    Patch::Merge(json!({"metadata": metadata, "revision": number}))
}

fn labels_of(pool: &Pool, hash: &str) -> Value {
    json!({(labels::POOL): pool.key.name, (labels::REVISION): hash})
}
