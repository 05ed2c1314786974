//! Lists pools that the schema must reject, for each of its rules.

use super::{
    ABOVE_INT32, Case, autoscaling_cases, claim_default_cases, image_cases, lifecycle_cases, many,
    template_ref_cases,
};
use crate::api::POOLS;
use crate::objects::pool;
use serde_json::{Value, json};

const BUDGET: &str = "maxUnavailable must be a number of 0 or more, or a percentage from \"0%\" to \"100%\"";
const SURGE: &str = "maxSurge must be a number of 0 or more, or a percentage like \"25%\"";
const PARTITION: &str = "partition must be a number of 0 or more, or a percentage from \"0%\" to \"100%\"";
const CONTAINER_NAME: &str =
    "a container name holds lower-case letters, digits and '-', and begins and ends with a letter or digit";
const CEILING: &str = "maxUnavailable must be a number of 0 or more, or a percentage like \"100%\"";

pub fn rejected(at: &'static str, rule: &'static str, says: &'static str, object: Value) -> Case {
    Case::new(POOLS, at, rule, says, object)
}

/// A CEL rule and a spec, merged over a good one, that breaks it.
pub fn cel(at: &'static str, message: &'static str, spec: Value) -> Case {
    rejected(at, message, message, pool("python", 2, &spec))
}

/// A keyword of the schema, what the server says, and a spec that breaks it.
pub fn keyword(at: &'static str, keyword: &'static str, says: &'static str, spec: Value) -> Case {
    rejected(at, keyword, says, pool("python", 2, &spec))
}

pub fn container(image: &str) -> Value {
    json!({"name": "main", "image": image})
}

pub fn with_pod(pod: Value) -> Value {
    json!({"template": {"spec": pod}})
}

pub fn cases() -> Vec<Case> {
    [
        numbers(),
        autoscaling_cases::cases(),
        budgets(),
        lifecycle_cases::cases(),
        template(),
        image_cases::cases(),
        shape(),
        template_ref_cases::cases(),
        claim_default_cases::of_pools(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A number that int32 cannot hold.
fn above_int32(at: &'static str, spec: Value) -> Case {
    keyword(at, "maximum", ABOVE_INT32, spec)
}

fn numbers() -> Vec<Case> {
    vec![
        cel(
            "spec.replicas",
            "replicas must be 0 or more",
            json!({"replicas": -1}),
        ),
        cel(
            "spec.minReadySeconds",
            "minReadySeconds must be 0 or more",
            json!({"minReadySeconds": -1}),
        ),
        cel(
            "spec.progressDeadlineSeconds",
            "progressDeadlineSeconds must be 1 or more",
            json!({"progressDeadlineSeconds": 0}),
        ),
        cel(
            "spec.warmUpDeadlineSeconds",
            "warmUpDeadlineSeconds must be 1 or more",
            json!({"warmUpDeadlineSeconds": 0}),
        ),
        cel(
            "spec.disruption.drainDeadlineSeconds",
            "disruption.drainDeadlineSeconds must be 1 or more",
            json!({"disruption": {"drainDeadlineSeconds": 0}}),
        ),
        keyword(
            "spec.disruption.drainPolicy",
            "enum",
            "supported values: \"Wait\", \"Break\"",
            json!({"disruption": {"drainPolicy": "Hurry"}}),
        ),
        cel(
            "",
            "spec.progressDeadlineSeconds must be greater than spec.minReadySeconds",
            json!({"minReadySeconds": 60, "progressDeadlineSeconds": 60}),
        ),
        cel(
            "",
            "spec.warmUpDeadlineSeconds must be greater than spec.minReadySeconds",
            json!({"minReadySeconds": 300}),
        ),
        cel(
            "spec.revisionHistoryLimit",
            "revisionHistoryLimit must be 0 or more",
            json!({"revisionHistoryLimit": -1}),
        ),
        cel(
            "spec.capacity.maxWarm",
            "capacity.maxWarm must be 0 or more",
            json!({"capacity": {"maxWarm": -1}}),
        ),
        cel(
            "spec.capacity.minTotal",
            "capacity.minTotal must be 0 or more",
            json!({"capacity": {"minTotal": -1}}),
        ),
        cel(
            "spec.capacity.maxTotal",
            "capacity.maxTotal must be 0 or more",
            json!({"capacity": {"maxTotal": -1}}),
        ),
        cel(
            "spec.capacity",
            "capacity.minTotal must not be above capacity.maxTotal",
            json!({"capacity": {"minTotal": 6, "maxTotal": 5}}),
        ),
        cel(
            "",
            "spec.capacity.maxWarm must not be below spec.replicas",
            json!({"replicas": 5, "capacity": {"maxWarm": 4}}),
        ),
        above_int32("spec.replicas", json!({"replicas": 3_000_000_000_i64})),
        above_int32(
            "spec.minReadySeconds",
            json!({"minReadySeconds": 3_000_000_000_i64}),
        ),
        above_int32(
            "spec.progressDeadlineSeconds",
            json!({"progressDeadlineSeconds": 3_000_000_000_i64}),
        ),
        above_int32(
            "spec.warmUpDeadlineSeconds",
            json!({"warmUpDeadlineSeconds": 3_000_000_000_i64}),
        ),
        above_int32(
            "spec.disruption.drainDeadlineSeconds",
            json!({"disruption": {"drainDeadlineSeconds": 3_000_000_000_i64}}),
        ),
        above_int32(
            "spec.revisionHistoryLimit",
            json!({"revisionHistoryLimit": 3_000_000_000_i64}),
        ),
        above_int32(
            "spec.capacity.maxWarm",
            json!({"capacity": {"maxWarm": 3_000_000_000_i64}}),
        ),
        above_int32(
            "spec.capacity.minTotal",
            json!({"capacity": {"minTotal": 3_000_000_000_i64}}),
        ),
        above_int32(
            "spec.capacity.maxTotal",
            json!({"capacity": {"maxTotal": 3_000_000_000_i64}}),
        ),
        keyword(
            "spec.replicas",
            "type",
            "must be of type integer",
            json!({"replicas": "x"}),
        ),
        keyword(
            "spec.minReadySeconds",
            "type",
            "must be of type integer",
            json!({"minReadySeconds": "1s"}),
        ),
    ]
}

fn budgets() -> Vec<Case> {
    let mut all: Vec<Case> = [
        json!("abc"),
        json!("-5%"),
        json!("150%"),
        json!(-1),
        json!(""),
        json!("5"),
        json!("5 %"),
    ]
    .into_iter()
    .map(|value| {
        let spec = json!({"updateStrategy": {"maxUnavailable": value}});
        cel("spec.updateStrategy.maxUnavailable", BUDGET, spec)
    })
    .collect();
    all.extend(
        [json!("abc"), json!("-5%"), json!(-1), json!("12345%")]
            .into_iter()
            .map(|value| {
                cel(
                    "spec.scaleStrategy.maxUnavailable",
                    CEILING,
                    json!({"scaleStrategy": {"maxUnavailable": value}}),
                )
            }),
    );
    for value in [json!("abc"), json!("-5%"), json!(-1), json!("12345%")] {
        let spec = json!({"updateStrategy": {"maxSurge": value}});
        all.push(cel("spec.updateStrategy.maxSurge", SURGE, spec));
    }
    for value in [json!("x"), json!("-5%"), json!(-1), json!("120%"), json!("")] {
        let spec = json!({"updateStrategy": {"partition": value}});
        all.push(cel("spec.updateStrategy.partition", PARTITION, spec));
    }
    const HUGE: i64 = 3_000_000_000;
    for (at, says, spec) in [
        (
            "spec.updateStrategy.maxUnavailable",
            "maxUnavailable must not be above 2147483647",
            json!({"updateStrategy": {"maxUnavailable": HUGE}}),
        ),
        (
            "spec.updateStrategy.maxSurge",
            "maxSurge must not be above 2147483647",
            json!({"updateStrategy": {"maxSurge": HUGE}}),
        ),
        (
            "spec.updateStrategy.partition",
            "partition must not be above 2147483647",
            json!({"updateStrategy": {"partition": HUGE}}),
        ),
        (
            "spec.scaleStrategy.maxUnavailable",
            "maxUnavailable must not be above 2147483647",
            json!({"scaleStrategy": {"maxUnavailable": HUGE}}),
        ),
    ] {
        all.push(cel(at, says, spec));
    }
    all.push(keyword(
        "spec.updateStrategy.maxUnavailable",
        "type",
        "must be of type integer",
        json!({"updateStrategy": {"maxUnavailable": 1.5}}),
    ));
    all.push(keyword(
        "spec.updateStrategy.type",
        "enum",
        "supported values: \"RollingUpdate\", \"Recreate\", \"OnReplenish\"",
        json!({"updateStrategy": {"type": "Recreat"}}),
    ));
    all
}

fn template() -> Vec<Case> {
    let ours = json!({"warmpool.dev/pool": "mine"});
    vec![
        cel(
            "spec.template.metadata.labels",
            "template.metadata.labels must not hold keys under warmpool.dev/, they belong to the operator",
            json!({"template": {"metadata": {"labels": ours}}}),
        ),
        cel(
            "spec.template.metadata.annotations",
            "template.metadata.annotations must not hold keys under warmpool.dev/, they belong to the operator",
            json!({"template": {"metadata": {"annotations": ours}}}),
        ),
        keyword(
            "spec.template.metadata.labels",
            "maxProperties",
            "must have at most 128 items",
            json!({"template": {"metadata": {"labels": many(129)}}}),
        ),
        keyword(
            "spec.template.metadata.annotations",
            "maxProperties",
            "must have at most 128 items",
            json!({"template": {"metadata": {"annotations": many(129)}}}),
        ),
        cel(
            "spec.template.spec.containers",
            "template.spec.containers must hold at least one container",
            with_pod(json!({"containers": []})),
        ),
        keyword(
            "spec.template.spec.containers",
            "maxItems",
            "must have at most 64 items",
            with_pod(
                json!({"containers": (0..65).map(|n| json!({"name": format!("c{n}"), "image": "a"})).collect::<Vec<_>>()}),
            ),
        ),
        keyword(
            "spec.template.spec.initContainers",
            "maxItems",
            "must have at most 64 items",
            with_pod(
                json!({"initContainers": (0..65).map(|n| json!({"name": format!("c{n}"), "image": "a"})).collect::<Vec<_>>()}),
            ),
        ),
        cel(
            "spec.template.spec.containers[*].name",
            CONTAINER_NAME,
            with_pod(json!({"containers": [{"name": "Main_1", "image": "a"}]})),
        ),
        cel(
            "spec.template.spec.initContainers[*].name",
            CONTAINER_NAME,
            with_pod(json!({"initContainers": [{"name": "-first", "image": "a"}]})),
        ),
        keyword(
            "spec.template.spec.containers[*].name",
            "maxLength",
            "may not be more than 63",
            with_pod(json!({"containers": [{"name": "c".repeat(64), "image": "a"}]})),
        ),
        keyword(
            "spec.template.spec.initContainers[*].name",
            "maxLength",
            "may not be more than 63",
            with_pod(json!({"initContainers": [{"name": "c".repeat(64), "image": "a"}]})),
        ),
        keyword(
            "spec.template.spec.restartPolicy",
            "enum",
            "supported values: \"Always\", \"OnFailure\", \"Never\"",
            with_pod(json!({"restartPolicy": "Sometimes"})),
        ),
        keyword(
            "spec.template.spec.containers",
            "x-kubernetes-list-map-keys",
            "Duplicate value",
            with_pod(json!({"containers": [container("a"), container("b")]})),
        ),
        keyword(
            "spec.template.spec.containers",
            "type",
            "must be of type array",
            with_pod(json!({"containers": "main"})),
        ),
    ]
}

/// What an object must have at all, and what it must not.
fn shape() -> Vec<Case> {
    let bare = |spec: Option<Value>| {
        let mut object = json!({
            "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool", "metadata": {"name": "python"},
        });
        if let Some(spec) = spec {
            object["spec"] = spec;
        }
        object
    };
    let name = "p".repeat(64);
    vec![
        rejected(
            "",
            "metadata.name must be at most 63 characters, because it becomes the value of a pod label",
            "metadata.name must be at most 63 characters, because it becomes the value of a pod label",
            pool(&name, 1, &json!({})),
        ),
        rejected("", "required", "spec: Required value", bare(None)),
        rejected(
            "spec.template",
            "required",
            "spec.template.spec: Required value",
            bare(Some(json!({"template": {}}))),
        ),
        rejected(
            "spec.template.spec",
            "required",
            "spec.template.spec.containers: Required value",
            bare(Some(json!({"template": {"spec": {}}}))),
        ),
        rejected(
            "spec.template.spec.containers[*]",
            "required",
            "image: Required value",
            bare(Some(
                json!({"template": {"spec": {"containers": [{"name": "main"}]}}}),
            )),
        ),
        keyword(
            "spec.template.metadata",
            "unknown",
            "unknown field \"spec.template.metadata.name\"",
            json!({"template": {"metadata": {"name": "mine"}}}),
        ),
        keyword(
            "spec",
            "unknown",
            "unknown field \"spec.replica\"",
            json!({"replica": 3}),
        ),
        keyword(
            "spec.template.spec.containers[*]",
            "unknown",
            "unknown field \"spec.template.spec.containers[0].imagePolicy\"",
            with_pod(json!({"containers": [{"name": "main", "image": "a", "imagePolicy": "Always"}]})),
        ),
    ]
}
