//! The patch that writes the status of a pool.

use crate::api::PoolStatus;
use crate::model::pool::Pool;
use kube::api::Patch;
use serde_json::{Value, json};

/// The patch of a pool's status. It needs no resource version: the status is recomputed from the cache, whatever was
/// stored before.
pub(crate) fn pool_status_patch(pool: &Pool, status: &PoolStatus) -> Patch<Value> {
    Patch::Merge(json!({"metadata": {"uid": pool.uid}, "status": changed(&pool.status, status)}))
}

/// The merge patch (RFC 7386) from `before` to `after`. It sets fields that only `before` has to null.
pub fn changed(before: &PoolStatus, after: &PoolStatus) -> Value {
    let (before, mut after) = (json!(before), json!(after));
    if let (Some(before), Some(after)) = (before.as_object(), after.as_object_mut()) {
        for field in before.keys() {
            after.entry(field).or_insert(Value::Null);
        }
    }
    after
}
