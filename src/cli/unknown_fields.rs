//! Finds fields that a Pool or SandboxClaim does not have, as strict field validation of the API server does.

use crate::api::crd;
use serde_json::Value;

/// Fields of every object.
const OF_EVERY_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The path of the first field of `object` that `kind` does not have.
pub(super) fn first_unknown(kind: &str, object: &Value) -> Option<String> {
    let crds = crd::all().ok()?;
    let (_, crd) = crds.into_iter().find(|(_, crd)| crd.spec.names.kind == kind)?;
    let schema = crd.spec.versions.into_iter().find_map(|version| version.schema)?;
    let schema = serde_json::to_value(schema.open_api_v3_schema?).ok()?;
    let mut fields = object.as_object()?.iter();
    fields.find_map(|(name, value)| {
        if OF_EVERY_OBJECT.contains(&name.as_str()) {
            return None;
        }
        match schema.get("properties")?.get(name) {
            None => Some(name.clone()),
            // The operator writes the status, perhaps a newer one.
            Some(_) if name == "status" => None,
            Some(field) => below(field, value, name),
        }
    })
}

/// The path of the first field below `path` that `schema` does not have.
fn below(schema: &Value, value: &Value, path: &str) -> Option<String> {
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            if let Some(field) = schema["properties"].get(name) {
                return below(field, value, &path);
            }
            let takes_any = schema["additionalProperties"].is_object()
                || schema["x-kubernetes-preserve-unknown-fields"] == true
                || schema["properties"].is_null();
            (!takes_any).then_some(path)
        }),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| below(schema.get("items")?, item, &format!("{path}[{index}]"))),
        _ => None,
    }
}
