//! Reads the fields of a stored object that the verbs need.
//!
//! A pool stays JSON here, so that the plugin works with an API server whose pools have fields that this version does
//! not know.

use kube::core::DynamicObject;
use serde_json::Value;

/// Name of an object.
pub(super) fn name(object: &DynamicObject) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

/// UID of an object.
pub(super) fn uid(object: &DynamicObject) -> &str {
    object.metadata.uid.as_deref().unwrap_or_default()
}

/// The value at a JSON pointer such as `/spec/replicas`; `None` when it is absent or null.
pub(super) fn at<'a>(object: &'a DynamicObject, pointer: &str) -> Option<&'a Value> {
    object.data.pointer(pointer).filter(|v| !v.is_null())
}

/// Whether the rollout of a pool is paused.
pub(super) fn is_paused(pool: &DynamicObject) -> bool {
    at(pool, "/spec/updateStrategy/paused") == Some(&Value::Bool(true))
}

/// Name of the PodTemplate that a pool refers to; `None` when the pool has an inline template.
pub(super) fn template_ref(pool: &DynamicObject) -> Option<&str> {
    at(pool, "/spec/templateRef/name")?.as_str()
}

/// The `kubectl warmpool rollout` command to type for a pool.
pub(super) fn rollout_command(verb: &str, pool: &DynamicObject) -> String {
    let namespace = pool.metadata.namespace.as_deref().unwrap_or_default();
    format!("kubectl warmpool rollout {verb} {} -n {namespace}", name(pool))
}
