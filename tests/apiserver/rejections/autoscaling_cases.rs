//! Lists values of `autoscaling` that the schema must reject.

use super::pool_cases::{cel, keyword};
use super::{ABOVE_INT32, Case};
use serde_json::{Value, json};

const TARGET: &str =
    "autoscaling.targetHitRate must be a percentage above 0% and below 100%, like \"99%\" or \"99.9%\"";
const CRON: &str = "autoscaling.schedules: schedule must have five fields: minute, hour, day of month, month, day of week, like \"0 8 * * 1-5\"";
const TOO_LARGE: i64 = 3_000_000_000;

/// A pool with `fields` in its `autoscaling`.
fn autoscaling(fields: &Value) -> Value {
    let mut autoscaling = json!({"maxReplicas": 10});
    for (field, value) in fields.as_object().into_iter().flatten() {
        autoscaling[field] = value.clone();
    }
    json!({"autoscaling": autoscaling})
}

/// A pool with `fields` in a schedule.
fn schedule(fields: &Value) -> Value {
    let mut schedule =
        json!({"name": "office", "schedule": "0 8 * * 1-5", "durationSeconds": 3600, "minReplicas": 4});
    for (field, value) in fields.as_object().into_iter().flatten() {
        schedule[field] = value.clone();
    }
    autoscaling(&json!({"schedules": [schedule]}))
}

pub fn cases() -> Vec<Case> {
    let mut cases: Vec<_> = ["0%", "0.00%", "100%", "150%", "-1%", "99", "abc", "99,9%"]
        .into_iter()
        .map(|rate| {
            let spec = autoscaling(&json!({"targetHitRate": rate}));
            cel("spec.autoscaling.targetHitRate", TARGET, spec)
        })
        .collect();
    cases.extend([
        cel(
            "",
            "spec.autoscaling.maxReplicas must not be below spec.replicas",
            json!({"replicas": 5, "autoscaling": {"maxReplicas": 4}}),
        ),
        cel(
            "spec.autoscaling.maxReplicas",
            "autoscaling.maxReplicas must be 1 or more",
            json!({"replicas": 0, "autoscaling": {"maxReplicas": 0}}),
        ),
        cel(
            "spec.autoscaling.stabilizationWindowSeconds",
            "autoscaling.stabilizationWindowSeconds must be from 0 to 3600",
            autoscaling(&json!({"stabilizationWindowSeconds": 3601})),
        ),
        cel(
            "spec.autoscaling",
            "autoscaling.schedules: minReplicas must not be above autoscaling.maxReplicas",
            schedule(&json!({"minReplicas": 11})),
        ),
        cel(
            "spec.autoscaling.schedules[*].schedule",
            CRON,
            schedule(&json!({"schedule": "0 8 * *"})),
        ),
        cel(
            "spec.autoscaling.schedules[*].durationSeconds",
            "autoscaling.schedules: durationSeconds must be from 1 to 31536000",
            schedule(&json!({"durationSeconds": 0})),
        ),
        cel(
            "spec.autoscaling.schedules[*].minReplicas",
            "autoscaling.schedules: minReplicas must be 0 or more",
            schedule(&json!({"minReplicas": -1})),
        ),
        keyword(
            "spec.autoscaling.targetHitRate",
            "maxLength",
            "may not be more than 8",
            autoscaling(&json!({"targetHitRate": "99.999999%"})),
        ),
        keyword(
            "spec.autoscaling",
            "required",
            "spec.autoscaling.maxReplicas: Required value",
            json!({"autoscaling": {}}),
        ),
        keyword(
            "spec.autoscaling.schedules",
            "maxItems",
            "must have at most 16 items",
            autoscaling(&json!({"schedules": (0..17).map(|n| json!({
                "name": format!("s{n}"), "schedule": "0 8 * * *", "durationSeconds": 60, "minReplicas": 1,
            })).collect::<Vec<_>>()})),
        ),
        keyword(
            "spec.autoscaling.schedules",
            "x-kubernetes-list-map-keys",
            "Duplicate value",
            autoscaling(&json!({"schedules": [
                {"name": "a", "schedule": "0 8 * * *", "durationSeconds": 60, "minReplicas": 1},
                {"name": "a", "schedule": "0 9 * * *", "durationSeconds": 60, "minReplicas": 2},
            ]})),
        ),
        keyword(
            "spec.autoscaling.schedules[*]",
            "required",
            "minReplicas: Required value",
            autoscaling(
                &json!({"schedules": [{"name": "a", "schedule": "0 8 * * *", "durationSeconds": 60}]}),
            ),
        ),
    ]);
    for (at, field, most) in [
        ("spec.autoscaling.schedules[*].name", "name", 63),
        ("spec.autoscaling.schedules[*].schedule", "schedule", 128),
        ("spec.autoscaling.schedules[*].timeZone", "timeZone", 64),
    ] {
        let says = match most {
            63 => "may not be more than 63",
            128 => "may not be more than 128",
            _ => "may not be more than 64",
        };
        let (long, empty) = (json!({field: "0".repeat(most + 1)}), json!({field: ""}));
        cases.push(keyword(at, "maxLength", says, schedule(&long)));
        cases.push(keyword(at, "minLength", "should be at least 1", schedule(&empty)));
    }
    for (at, spec) in [
        (
            "spec.autoscaling.maxReplicas",
            autoscaling(&json!({"maxReplicas": TOO_LARGE})),
        ),
        (
            "spec.autoscaling.stabilizationWindowSeconds",
            autoscaling(&json!({"stabilizationWindowSeconds": TOO_LARGE})),
        ),
        (
            "spec.autoscaling.schedules[*].durationSeconds",
            schedule(&json!({"durationSeconds": TOO_LARGE})),
        ),
        (
            "spec.autoscaling.schedules[*].minReplicas",
            schedule(&json!({"minReplicas": TOO_LARGE})),
        ),
    ] {
        cases.push(keyword(at, "maximum", ABOVE_INT32, spec));
    }
    cases
}
