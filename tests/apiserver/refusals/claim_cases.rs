//! Claims that must be refused, one or more for each rule of the schema.

use super::Case;
use crate::api::CLAIMS;
use crate::objects::claim;
use serde_json::{Map, Value, json};

fn refused(at: &'static str, rule: &'static str, says: &'static str, object: Value) -> Case {
    Case {
        at,
        rule,
        says,
        what: CLAIMS,
        object,
    }
}

fn cel(at: &'static str, message: &'static str, spec: Value) -> Case {
    refused(at, message, message, claim("run", "python", &spec))
}

fn keyword(at: &'static str, keyword: &'static str, says: &'static str, spec: Value) -> Case {
    refused(at, keyword, says, claim("run", "python", &spec))
}

fn labels(labels: Value) -> Value {
    json!({"podMetadata": {"labels": labels}})
}

fn annotations(annotations: Value) -> Value {
    json!({"podMetadata": {"annotations": annotations}})
}

fn many(count: usize) -> Value {
    Value::Object(
        (0..count)
            .map(|n| (format!("key-{n}"), json!("value")))
            .collect::<Map<_, _>>(),
    )
}

/// The rule that only an update can break has a test of its own.
pub const IMMUTABLE: &str =
    "spec is immutable once the claim is bound; delete the claim and create a new one";

pub fn cases() -> Vec<Case> {
    let mut all = vec![
        cel(
            "spec.poolRef.name",
            "poolRef.name must name a pool",
            json!({"poolRef": {"name": ""}}),
        ),
        cel(
            "spec.waitTimeoutSeconds",
            "waitTimeoutSeconds must be 1 or more",
            json!({"waitTimeoutSeconds": 0}),
        ),
        keyword(
            "spec.poolRef.name",
            "maxLength",
            "may not be more than 253",
            json!({"poolRef": {"name": "p".repeat(254)}}),
        ),
        keyword(
            "spec.waitTimeoutSeconds",
            "format",
            "int32",
            json!({"waitTimeoutSeconds": 3_000_000_000_i64}),
        ),
        keyword(
            "spec.priority",
            "format",
            "int32",
            json!({"priority": 3_000_000_000_i64}),
        ),
        keyword(
            "spec.priority",
            "type",
            "must be of type integer",
            json!({"priority": "high"}),
        ),
        keyword(
            "spec.onEmpty",
            "enum",
            "supported values: \"Create\", \"Wait\", \"Fail\"",
            json!({"onEmpty": "Creat"}),
        ),
        keyword(
            "spec.revisionPolicy",
            "enum",
            "supported values: \"PreferLatest\", \"Latest\", \"Any\"",
            json!({"revisionPolicy": "Newest"}),
        ),
        keyword(
            "spec",
            "unknown",
            "unknown field \"spec.pool\"",
            json!({"pool": "python"}),
        ),
        refused(
            "",
            "metadata.name must be at most 63 characters, because it becomes the value of a pod label",
            "metadata.name must be at most 63 characters, because it becomes the value of a pod label",
            claim(&"r".repeat(64), "python", &json!({})),
        ),
        refused("", "required", "spec: Required value", bare(None)),
        refused(
            "spec",
            "required",
            "spec.poolRef: Required value",
            bare(Some(json!({}))),
        ),
        refused(
            "spec.poolRef",
            "required",
            "spec.poolRef.name: Required value",
            bare(Some(json!({"poolRef": {}}))),
        ),
    ];
    all.extend(pod_metadata());
    all
}

fn bare(spec: Option<Value>) -> Value {
    let mut object = json!({
        "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaim", "metadata": {"name": "run"},
    });
    if let Some(spec) = spec {
        object["spec"] = spec;
    }
    object
}

fn pod_metadata() -> Vec<Case> {
    const LABELS: &str = "spec.podMetadata.labels";
    const VALUES: &str = "spec.podMetadata.labels.*";
    const ANNOTATIONS: &str = "spec.podMetadata.annotations";
    let mut all = vec![
        cel(
            LABELS,
            "podMetadata.labels must not hold keys under warmpool.dev/, they belong to the operator",
            labels(json!({"warmpool.dev/state": "warm"})),
        ),
        cel(
            ANNOTATIONS,
            "podMetadata.annotations must not hold keys under warmpool.dev/, they belong to the operator",
            annotations(json!({"warmpool.dev/state": "warm"})),
        ),
        keyword(
            LABELS,
            "maxProperties",
            "must have at most 32 items",
            labels(many(33)),
        ),
        keyword(
            ANNOTATIONS,
            "maxProperties",
            "must have at most 32 items",
            annotations(many(33)),
        ),
        keyword(
            VALUES,
            "maxLength",
            "may not be more than 63",
            labels(json!({"team": "v".repeat(64)})),
        ),
    ];
    for key in ["", "a b", "-team", "/team", "UPPER.example/team", &"k".repeat(64)] {
        all.push(cel(
            LABELS,
            "podMetadata.labels must have keys like \"team\" or \"example.com/team\"",
            labels(json!({key: "red"})),
        ));
        all.push(cel(
            ANNOTATIONS,
            "podMetadata.annotations must have keys like \"run-id\" or \"example.com/run-id\"",
            annotations(json!({key: "42"})),
        ));
    }
    for value in ["a b", "-red", "red-", "rød"] {
        all.push(cel(
            VALUES,
            "a label value holds letters, digits, '-', '_' and '.', and begins and ends with a letter or digit",
            labels(json!({"team": value})),
        ));
    }
    all
}
