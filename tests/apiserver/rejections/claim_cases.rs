//! Lists claims that the schema must reject, for each of its rules.

use super::{ABOVE_INT32, Case, claim_default_cases, many};
use crate::api::CLAIMS;
use crate::objects::claim;
use serde_json::{Value, json};

fn rejected(at: &'static str, rule: &'static str, says: &'static str, object: Value) -> Case {
    Case::new(CLAIMS, at, rule, says, object)
}

pub fn cel(at: &'static str, message: &'static str, spec: Value) -> Case {
    rejected(at, message, message, claim("run", "python", &spec))
}

pub fn keyword(at: &'static str, keyword: &'static str, says: &'static str, spec: Value) -> Case {
    rejected(at, keyword, says, claim("run", "python", &spec))
}

fn labels(labels: Value) -> Value {
    json!({"podMetadata": {"labels": labels}})
}

fn annotations(annotations: Value) -> Value {
    json!({"podMetadata": {"annotations": annotations}})
}

/// The rule that only an update can break has a test of its own.
pub const IMMUTABLE: &str = "spec is immutable once the claim is bound, except for lifetimeSeconds, shutdownTime and ttlSecondsAfterFinished; delete the claim and create a new one";
/// And so has this one.
pub const REPLICAS_IMMUTABLE: &str = "spec.replicas is immutable; delete the claim and create a new one";
const EXACTLY_ONE: &str = "spec must hold exactly one of poolRef and poolSelector";

pub fn cases() -> Vec<Case> {
    let mut all = vec![
        cel(
            "spec.poolRef.name",
            "poolRef.name must name a pool",
            json!({"poolRef": {"name": ""}}),
        ),
        keyword(
            "spec.poolRef.name",
            "maxLength",
            "may not be more than 253",
            json!({"poolRef": {"name": "p".repeat(254)}}),
        ),
        keyword(
            "spec.priority",
            "type",
            "must be of type integer",
            json!({"priority": "high"}),
        ),
        keyword(
            "spec",
            "unknown",
            "unknown field \"spec.pool\"",
            json!({"pool": "python"}),
        ),
        rejected(
            "",
            "metadata.name must be at most 63 characters, because it becomes the value of a pod label",
            "metadata.name must be at most 63 characters, because it becomes the value of a pod label",
            claim(&"r".repeat(64), "python", &json!({})),
        ),
        rejected("", "required", "spec: Required value", bare(None)),
        rejected("", EXACTLY_ONE, EXACTLY_ONE, bare(Some(json!({})))),
        cel(
            "",
            EXACTLY_ONE,
            json!({"poolSelector": {"matchLabels": {"lang": "python"}}}),
        ),
        cel(
            "",
            "spec must hold at most one of lifetimeSeconds and shutdownTime",
            json!({"lifetimeSeconds": 5, "shutdownTime": "2100-01-01T00:00:00Z"}),
        ),
        keyword(
            "spec.shutdownTime",
            "format",
            "must be of type date-time",
            json!({"shutdownTime": "tomorrow"}),
        ),
        cel(
            "spec.shutdownTime",
            "shutdownTime must be before 9999-12-30T00:00:00Z; leave it out for a claim that never expires",
            json!({"shutdownTime": "9999-12-31T23:59:59Z"}),
        ),
        cel(
            "spec.replicas",
            "replicas must be from 1 to 1000",
            json!({"replicas": 0}),
        ),
        cel(
            "spec.replicas",
            "replicas must be from 1 to 1000",
            json!({"replicas": 1001}),
        ),
        cel(
            "spec.replicas",
            "replicas must be from 1 to 1000",
            json!({"replicas": 100_000}),
        ),
        keyword(
            "spec.replicas",
            "maximum",
            ABOVE_INT32,
            json!({"replicas": 3_000_000_000_i64}),
        ),
        rejected(
            "spec.poolSelector",
            "required",
            "spec.poolSelector.matchLabels: Required value",
            bare(Some(json!({"poolSelector": {}}))),
        ),
        rejected(
            "spec.poolSelector",
            "type",
            "must be of type object",
            bare(Some(json!({"poolSelector": "lang=python"}))),
        ),
        rejected(
            "spec.poolSelector.matchLabels",
            "type",
            "must be of type string",
            bare(Some(json!({"poolSelector": {"matchLabels": {"lang": 3}}}))),
        ),
        rejected(
            "spec.poolSelector",
            "unknown",
            "unknown field \"spec.poolSelector.matchExpressions\"",
            bare(Some(json!({"poolSelector": {
                "matchLabels": {"lang": "python"},
                "matchExpressions": [{"key": "lang", "operator": "Exists"}],
            }}))),
        ),
        rejected(
            "spec.poolSelector.matchLabels",
            "poolSelector.matchLabels must hold at least one label",
            "poolSelector.matchLabels must hold at least one label",
            bare(Some(json!({"poolSelector": {"matchLabels": {}}}))),
        ),
        rejected(
            "spec.poolSelector.matchLabels",
            "maxProperties",
            "must have at most 16 items",
            bare(Some(json!({"poolSelector": {"matchLabels": many(17)}}))),
        ),
        rejected(
            "spec.poolRef",
            "required",
            "spec.poolRef.name: Required value",
            bare(Some(json!({"poolRef": {}}))),
        ),
    ];
    all.extend(claim_default_cases::of_claims());
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

pub fn pod_metadata() -> Vec<Case> {
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
    let long = format!("{}/team", "p.".repeat(158) + "p");
    for key in [
        "",
        "a b",
        "-team",
        "/team",
        "UPPER.example/team",
        "a..b/team",
        &"k".repeat(64),
        &long,
    ] {
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
