//! Checks that every schema rule has a case and rejects it.

use super::{Case, claim_cases, pool_cases};
use crate::api::{ApiError, CLAIMS, PODS, POOLS, Resource};
use crate::cluster::repository;
use crate::cluster_state::wait_until_at_rest;
use crate::objects::{NEW_IMAGE, claim, pool};
use crate::scene::Scene;
use crate::stories::{bound, in_phase, sandbox};
use crate::wait;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;

/// Keywords of a schema that refuse values.
const KEYWORDS: [&str; 12] = [
    "enum",
    "required",
    "maxLength",
    "minLength",
    "maxItems",
    "minItems",
    "maxProperties",
    "minProperties",
    "minimum",
    "maximum",
    "pattern",
    "format",
];

/// A rule of a CRD: its kind, where it stands, and its message or keyword.
type Rule = (String, String, String);

/// The minor version of the API server.
fn minor_version(scene: &Scene) -> Result<u32, String> {
    let version = scene.kubectl(&["get", "--raw", "/version"], None)?;
    let version: Value = serde_json::from_str(&version).map_err(|e| e.to_string())?;
    let minor = version["minor"].as_str().and_then(|minor| minor.parse().ok());
    minor.ok_or_else(|| format!("no minor version: {version}"))
}

/// What an API server of Kubernetes 1.`minor` says. Up to 1.31 it words the limits of lengths in another way.
fn in_words_of(minor: u32, says: &str) -> String {
    if minor < 32 {
        says.replace("may not be more than", "may not be longer than")
    } else {
        says.to_string()
    }
}

fn refuse_all(scene: &Scene, cases: &[Case]) -> Result<(), String> {
    let minor = minor_version(scene)?;
    let mut faults = Vec::new();
    for case in cases {
        let rule = format!("{} ({})", case.at, case.rule);
        match scene
            .lab
            .api
            .try_create(case.resource, &scene.namespace, &case.object)
        {
            Ok(_) => faults.push(format!("{rule}: accepted: {}", case.object["spec"])),
            Err(error) => {
                let path = case
                    .at
                    .split(['[', '*'])
                    .next()
                    .unwrap_or_default()
                    .trim_end_matches('.');
                // The API server writes <nil> where a CEL rule names no field.
                let is_cel = case.rule == case.says;
                let matches = error.message.contains(&in_words_of(minor, case.says))
                    && error.message.contains(path)
                    && !(is_cel && error.message.contains("<nil>"));
                if !matches {
                    faults.push(format!(
                        "{rule}: the server should say {:?} and says {error}",
                        case.says
                    ));
                }
            }
        }
    }
    wait::ensure(faults.is_empty(), || faults.join("\n"))
}

pub fn every_bad_pool_is_refused_with_its_sentence(scene: &Scene) -> Result<(), String> {
    refuse_all(scene, &pool_cases::cases())
}

pub fn every_bad_claim_is_refused_with_its_sentence(scene: &Scene) -> Result<(), String> {
    refuse_all(scene, &claim_cases::cases())
}

pub fn every_rule_of_the_crds_has_a_case(_: &Scene) -> Result<(), String> {
    let mut rules = BTreeSet::new();
    for (kind, file) in [
        ("Pool", "warmpool.dev_pools.yaml"),
        ("SandboxClaim", "warmpool.dev_sandboxclaims.yaml"),
    ] {
        let path = repository().join("crds").join(file);
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let crd: Value = serde_yaml_ng::from_str(&text).map_err(|e| format!("{file}: {e}"))?;
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        collect(kind, schema, String::new(), &mut rules);
    }
    let known = |case: &Case| {
        let kind = if case.object["kind"] == "Pool" {
            "Pool"
        } else {
            "SandboxClaim"
        };
        (kind.to_string(), case.at.to_string(), case.rule.to_string())
    };
    let mut cases: BTreeSet<Rule> = pool_cases::cases()
        .iter()
        .chain(&claim_cases::cases())
        .map(known)
        .collect();
    for rule in [claim_cases::IMMUTABLE, claim_cases::REPLICAS_IMMUTABLE] {
        cases.insert(("SandboxClaim".into(), String::new(), rule.into()));
    }
    let without: Vec<_> = rules.difference(&cases).collect();
    wait::ensure(without.is_empty(), || {
        format!("rules without a case: {without:#?}")
    })?;
    // And no case for a rule that is no more. Types and unknown fields are no rules of their own.
    let rest = |rule: &&Rule| {
        !["type", "unknown", "required", "x-kubernetes-list-map-keys"].contains(&rule.2.as_str())
    };
    let stale: Vec<_> = cases.difference(&rules).filter(rest).collect();
    wait::ensure(stale.is_empty(), || format!("cases without a rule: {stale:#?}"))
}

/// Finds the rules of a schema and its subschemas. Of the embedded pod spec, only rules that we added count.
fn collect(kind: &str, schema: &Value, at: String, rules: &mut BTreeSet<Rule>) {
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let message = rule["message"].as_str().unwrap_or("(a rule without a message)");
        rules.insert((kind.into(), at.clone(), message.into()));
    }
    let borrowed = at.starts_with("spec.template.spec");
    for keyword in KEYWORDS
        .into_iter()
        .filter(|k| !borrowed || matches!(*k, "maxItems" | "maxLength" | "enum"))
    {
        // Not every version of Kubernetes knows the format, so `maximum` says the same.
        let is_said = keyword == "format" && schema["format"] == "int32" && !schema["maximum"].is_null();
        if !schema[keyword].is_null() && !is_said && !at.starts_with("status") {
            rules.insert((kind.into(), at.clone(), keyword.into()));
        }
    }
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        let path = if at.is_empty() {
            name.clone()
        } else {
            format!("{at}.{name}")
        };
        collect(kind, below, path, rules);
    }
    for (key, mark) in [("items", "[*]"), ("additionalProperties", ".*")] {
        if schema[key].is_object() {
            collect(kind, &schema[key], format!("{at}{mark}"), rules);
        }
    }
}

fn patch(scene: &Scene, name: &str, spec: Value) -> Result<Value, ApiError> {
    let api = &scene.lab.api;
    api.merge(CLAIMS, &scene.namespace, name, &json!({"spec": spec}))
}

/// A bound claim keeps the fields that its binding depended on.
fn spec_is_immutable(scene: &Scene, name: &str) -> Result<(), String> {
    for (change, sentence) in [
        (json!({"priority": 3}), claim_cases::IMMUTABLE),
        (json!({"poolRef": {"name": "other"}}), claim_cases::IMMUTABLE),
        (json!({"onEmpty": "Fail"}), claim_cases::IMMUTABLE),
        (json!({"replicas": 2}), claim_cases::REPLICAS_IMMUTABLE),
    ] {
        let error = patch(scene, name, change).map_or_else(|r| r.message, |_| "nothing".into());
        wait::ensure(error.contains(sentence), || {
            format!("of {name} the server said {error}")
        })?;
    }
    // The lifetime may still change.
    let longer = json!({"lifetimeSeconds": 3600, "ttlSecondsAfterFinished": 3600});
    patch(scene, name, longer).map_err(|r| r.to_string())?;
    Ok(())
}

pub fn a_bound_claims_spec_cannot_be_changed(scene: &Scene) -> Result<(), String> {
    scene.create_claim("run", "python", &json!({"priority": 1, "onSandboxLost": "Fail"}))?;
    // While it waits it may be changed.
    let change =
        json!({"priority": 2, "waitTimeoutSeconds": 600, "onSandboxLost": "Replace", "onEmpty": "Wait"});
    patch(scene, "run", change).map_err(|r| r.to_string())?;
    scene.create_pool(&pool("python", 1, &json!({})))?;
    let first = sandbox(&bound(scene, "run")?).0;
    spec_is_immutable(scene, "run")?;
    // The spec stays immutable while the claim waits for a replacement.
    scene.patch_pool("python", &json!({"spec": {"replicas": 0}}))?;
    wait_until_at_rest(scene, 30)?;
    scene.lab.api.delete(PODS, &scene.namespace, &first)?;
    in_phase(scene, "run", "Pending", 30)?;
    spec_is_immutable(scene, "run")?;
    scene.patch_pool("python", &json!({"spec": {"replicas": 2}}))?;
    bound(scene, "run")?;
    // Nor after its end.
    scene.create_claim("ends", "python", &json!({}))?;
    let lost = sandbox(&bound(scene, "ends")?).0;
    scene.lab.api.delete(PODS, &scene.namespace, &lost)?;
    in_phase(scene, "ends", "Failed", 30)?;
    spec_is_immutable(scene, "ends")?;
    scene.delete_claim("ends")?;
    wait_until_at_rest(scene, 30)
}

fn accepted(scene: &Scene, resource: Resource, object: &Value) -> Result<(), String> {
    let answer = scene.lab.api.try_create(resource, &scene.namespace, object);
    answer
        .map(drop)
        .map_err(|error| format!("{object} was refused: {error}"))
}

pub fn what_is_good_is_accepted(scene: &Scene) -> Result<(), String> {
    for budget in [
        json!(0),
        json!(1),
        json!(1000),
        json!("0%"),
        json!("7%"),
        json!("99%"),
        json!("100%"),
    ] {
        accepted(
            scene,
            POOLS,
            &pool(
                "python",
                2,
                &json!({"updateStrategy": {"maxUnavailable": budget}}),
            ),
        )?;
        accepted(
            scene,
            POOLS,
            &pool("python", 2, &json!({"scaleStrategy": {"maxUnavailable": budget}})),
        )?;
    }
    let digest = format!("python@sha256:{}", "0".repeat(64));
    let images = [
        "a",
        NEW_IMAGE,
        "python:3.13-slim",
        "registry.example:5000/team/sub/name:v1.2_3",
        "localhost/x",
        &digest,
        "registry.example.com/a__b/c-d.e",
        "registry.example/a:1@sha256:0123456789abcdef0123456789abcdef",
        "[2001:db8::1]:5000/team/name",
    ];
    for image in images {
        let pod = json!({"template": {"spec": {"containers": [{"name": "main", "image": image}]}}});
        accepted(scene, POOLS, &pool("python", 2, &pod))?;
    }
    for name in ["a", "python-3.13", "0", "a.b-c.9"] {
        let mut named = pool("python", 2, &json!({"templateRef": {"name": name}}));
        named["spec"].as_object_mut().map(|spec| spec.remove("template"));
        accepted(scene, POOLS, &named)?;
    }
    let capacity = json!({"capacity": {"maxWarm": 2, "minTotal": 5, "maxTotal": 5}});
    accepted(scene, POOLS, &pool(&"p".repeat(63), 2, &capacity))?;
    let metadata = json!({"podMetadata": {
        "labels": {"team": "red", "example.com/run": "", "a.b-c/D_e.F": "x_y.z"},
        "annotations": {"note": "any text: {\"at\": \"all\"}\n", "example.com/run": ""},
    }});
    accepted(scene, CLAIMS, &claim(&"r".repeat(63), "python", &metadata))
}
