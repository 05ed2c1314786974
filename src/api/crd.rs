//! Builds the CustomResourceDefinitions from the types.
//!
//! The derives produce the schemas. This module adds what they cannot express, mostly about the embedded pod template.

use crate::api::crd_descriptions::describe;
use crate::api::{Pool, PoolSpec, PoolStatus, SandboxClaim, SandboxClaimSpec, SandboxClaimStatus};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schemars::{Schema, schema_for};
use serde_json::{Map, Value, json};

/// Size limit in bytes of an object that client-side `kubectl apply` can store: the object becomes an annotation, and
/// all annotations together are limited to 256 KiB (`TotalAnnotationSizeLimitB` in apimachinery).
pub const KUBECTL_APPLY_LIMIT: usize = 262_144;

/// RE2 pattern of a container image reference; source: the grammar of github.com/distribution/reference.
const IMAGE: &str = r"^(([a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?|\\[[a-fA-F0-9:]+\\])(:[0-9]+)?/)?[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{32,})?$";

/// Lists in a pod template and their map keys, as in the schema of Kubernetes, so that server-side apply can own single
/// entries. `ports` stays atomic: its key contains `protocol`, which would need a default inside the template, and a
/// default changes the revision hash.
const LIST_MAP_KEYS: &[(&str, &[&str])] = &[
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("ephemeralContainers", &["name"]),
    ("volumes", &["name"]),
    ("env", &["name"]),
    ("volumeMounts", &["mountPath"]),
    ("volumeDevices", &["devicePath"]),
    ("imagePullSecrets", &["name"]),
    ("hostAliases", &["ip"]),
    ("topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
    ("resourceClaims", &["name"]),
    ("schedulingGates", &["name"]),
];

/// All CustomResourceDefinitions with the names of their files, sorted by file name.
///
/// # Errors
/// A generated schema is not a valid CRD. The tests rule this out for a released binary.
pub fn all() -> Result<Vec<(&'static str, CustomResourceDefinition)>, serde_json::Error> {
    Ok(vec![
        (
            "warmpool.dev_pools.yaml",
            finish(Pool::crd(), &schema_for!(PoolSpec), &schema_for!(PoolStatus))?,
        ),
        (
            "warmpool.dev_sandboxclaims.yaml",
            finish(
                SandboxClaim::crd(),
                &schema_for!(SandboxClaimSpec),
                &schema_for!(SandboxClaimStatus),
            )?,
        ),
    ])
}

fn finish(
    crd: CustomResourceDefinition,
    spec: &Schema,
    status: &Schema,
) -> Result<CustomResourceDefinition, serde_json::Error> {
    let mut crd = serde_json::to_value(crd)?;
    if let Some(versions) = crd.pointer_mut("/spec/versions").and_then(Value::as_array_mut) {
        for version in versions {
            if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
                finish_schema(schema);
                for (part, types) in [("spec", spec), ("status", status)] {
                    if let Some(schema) = schema.pointer_mut(&format!("/properties/{part}")) {
                        describe(schema, types);
                    }
                }
            }
        }
    }
    serde_json::from_value(crd)
}

fn finish_schema(schema: &mut Value) {
    visit(schema, &mut drop_nullable);
    // A rule can name only a field that the schema has.
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let metadata = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        properties.insert("metadata".into(), metadata);
    }
    if let Some(status) = schema.pointer_mut("/properties/status") {
        visit(status, &mut |schema| drop(schema.remove("default")));
    }
    if let Some(conditions) = schema.pointer_mut("/properties/status/properties/conditions") {
        list_map(conditions, &["type"]);
    }
    if let Some(schedules) =
        schema.pointer_mut("/properties/spec/properties/autoscaling/properties/schedules")
    {
        list_map(schedules, &["name"]);
    }
    if let Some(sandboxes) = schema.pointer_mut("/properties/status/properties/sandboxes") {
        list_map(sandboxes, &["uid"]);
    }
    if let Some(Value::Object(fields)) = schema.pointer_mut("/properties/spec/properties") {
        for (field, schema) in fields {
            if field == "template" {
                finish_template(schema);
            } else {
                visit(schema, &mut limit_int32);
            }
        }
    }
}

/// States the range of `format: int32`: Kubernetes 1.30 does not know that format, and takes any integer.
fn limit_int32(schema: &mut Map<String, Value>) {
    if schema.get("format").is_some_and(|format| format == "int32") {
        schema.entry("maximum").or_insert(json!(i32::MAX));
    }
}

/// Forbids `null`, so that the API server rejects it. A stored `null` could not be decoded.
fn drop_nullable(schema: &mut Map<String, Value>) {
    schema.remove("nullable");
    if schema.get("default") == Some(&Value::Null) {
        schema.remove("default");
    }
}

fn finish_template(template: &mut Value) {
    let description = template.get("description").cloned();
    visit(template, &mut |schema| {
        schema.remove("description");
        schema.remove("default");
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            for (name, keys) in LIST_MAP_KEYS {
                if let Some(list) = properties.get_mut(*name).filter(|p| p["type"] == "array") {
                    list_map(list, keys);
                }
            }
        }
    });
    if let (Some(description), Some(template)) = (description, template.as_object_mut()) {
        template.insert("description".into(), description);
        template.insert("required".into(), json!(["spec"]));
    }
    if let Some(metadata) = template.pointer_mut("/properties/metadata") {
        *metadata = template_metadata();
    }
    if let Some(containers) = template.pointer_mut("/properties/spec/properties/containers") {
        containers["x-kubernetes-validations"] = json!([{
            "rule": "self.size() >= 1",
            "message": "template.spec.containers must hold at least one container",
        }]);
    }
    if let Some(policy) = template.pointer_mut("/properties/spec/properties/restartPolicy") {
        policy["enum"] = json!(["Always", "OnFailure", "Never"]);
    }
    for list in ["containers", "initContainers"] {
        let path = format!("/properties/spec/properties/{list}");
        if let Some(containers) = template.pointer_mut(&path) {
            containers["maxItems"] = json!(64);
            if let Some(container) = containers.get_mut("items") {
                container["required"] = json!(["name", "image"]);
                if let Some(image) = container.pointer_mut("/properties/image") {
                    *image = image_reference();
                }
                if let Some(name) = container.pointer_mut("/properties/name") {
                    *name = container_name();
                }
            }
        }
    }
}

/// The name of a container, which the API server would reject in every single sandbox.
fn container_name() -> Value {
    json!({
        "type": "string",
        "maxLength": 63,
        "x-kubernetes-validations": [{
            "rule": "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
            "message": "a container name holds lower-case letters, digits and '-', and begins and ends with a letter or digit",
        }],
    })
}

fn image_reference() -> Value {
    json!({
        "type": "string",
        "maxLength": 512,
        "x-kubernetes-validations": [{
            "rule": format!("self.matches('{IMAGE}')"),
            "message": "image must be a container image reference like registry.example/team/name:tag (the name in lower case)",
        }],
    })
}

/// The schema of the metadata of a template: only labels and annotations, because a pod copies nothing else.
fn template_metadata() -> Value {
    let map = |field: &str| {
        json!({
            "type": "object",
            "description": format!("{field} of every sandbox made from this template."),
            "additionalProperties": {"type": "string"},
            "maxProperties": 128,
            "x-kubernetes-validations": [{
                "rule": "self.all(key, !key.startsWith('warmpool.dev/'))",
                "message": format!("template.metadata.{} must not hold keys under warmpool.dev/, they belong to the operator", field.to_lowercase()),
            }],
        })
    };
    json!({
        "type": "object",
        "description": "Labels and annotations of every sandbox made from this template.",
        "properties": {"labels": map("Labels"), "annotations": map("Annotations")},
    })
}

fn list_map(list: &mut Value, keys: &[&str]) {
    list["x-kubernetes-list-type"] = json!("map");
    list["x-kubernetes-list-map-keys"] = json!(keys);
    let Some(items) = list.get_mut("items").and_then(Value::as_object_mut) else {
        return;
    };
    let required = items.entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut() {
        required.extend(
            keys.iter()
                .filter(|k| !required.contains(&json!(k)))
                .map(|k| json!(k))
                .collect::<Vec<_>>(),
        );
    }
}

/// Calls `change` on `schema` and on every schema inside it.
fn visit(schema: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(map) = schema else { return };
    change(map);
    for (key, value) in map.iter_mut() {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(|p| visit(p, change))
            }
            ("items" | "additionalProperties", value) => visit(value, change),
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|s| visit(s, change))
            }
            _ => {}
        }
    }
}
