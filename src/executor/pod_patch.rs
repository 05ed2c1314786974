//! Pieces of the JSON Patches (RFC 6902) on pods. A patch whose test fails answers 422 and changes nothing.

use crate::model::lifecycle_hook::Hook;
use crate::model::sandbox::Sandbox;
use serde_json::{Value, json};

/// The test that `path` holds `value`; null holds where there is nothing.
pub(crate) fn test(path: String, value: Value) -> Value {
    json!({"op": "test", "path": path, "value": value})
}

/// The operation that puts `value` at `path`.
pub(crate) fn add(path: String, value: Value) -> Value {
    json!({"op": "add", "path": path, "value": value})
}

/// Tests that every handler of `hook` is still on the pod, where it was seen on `sandbox`.
pub(crate) fn handlers_are_on(hook: &Hook, sandbox: &Sandbox) -> Vec<Value> {
    let labels = hook
        .labels
        .iter()
        .map(|(key, value)| test(label(key), json!(value)));
    let finalizers = hook.finalizers.iter().map(|name| {
        let seen_at = sandbox.finalizers.iter().position(|f| f == name);
        let index = seen_at.unwrap_or(usize::MAX);
        test(format!("/metadata/finalizers/{index}"), json!(name))
    });
    labels.chain(finalizers).collect()
}

/// The path of a label.
pub(crate) fn label(key: &str) -> String {
    format!("/metadata/labels/{}", escaped(key))
}

/// The path of an annotation.
pub(crate) fn annotation(key: &str) -> String {
    format!("/metadata/annotations/{}", escaped(key))
}

/// A key as a JSON Pointer writes it (RFC 6901).
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
