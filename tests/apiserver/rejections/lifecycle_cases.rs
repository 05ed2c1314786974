//! Lists lifecycle hooks that the schema must reject.

use super::pool_cases::{cel, keyword};
use super::{Case, many};
use serde_json::{Value, json};

/// The cases of one hook, named as in the spec.
macro_rules! of {
    ($hook:literal) => {{
        let labels = |value: Value| json!({"lifecycle": {$hook: {"labelsHandler": value}}});
        let finalizers = |value: Value| json!({"lifecycle": {$hook: {"finalizersHandler": value}}});
        let long = |length| "a".repeat(length);
        vec![
            cel(
                concat!("spec.lifecycle.", $hook, ".labelsHandler"),
                "labelsHandler must not hold keys under warmpool.dev/, they belong to the operator",
                labels(json!({"warmpool.dev/state": "warm"})),
            ),
            cel(
                concat!("spec.lifecycle.", $hook, ".labelsHandler"),
                "labelsHandler must have keys like \"checked\" or \"example.com/checked\"",
                labels(json!({"example.com/": "yes"})),
            ),
            keyword(
                concat!("spec.lifecycle.", $hook, ".labelsHandler"),
                "maxProperties",
                "must have at most 16 items",
                labels(many(17)),
            ),
            keyword(
                concat!("spec.lifecycle.", $hook, ".labelsHandler.*"),
                "maxLength",
                "may not be more than 63",
                labels(json!({"example.com/checked": long(64)})),
            ),
            cel(
                concat!("spec.lifecycle.", $hook, ".finalizersHandler"),
                "finalizersHandler must hold names like \"example.com/registered\"",
                finalizers(json!(["registered"])),
            ),
            keyword(
                concat!("spec.lifecycle.", $hook, ".finalizersHandler"),
                "maxItems",
                "must have at most 16 items",
                finalizers((0..17).map(|n| json!(format!("example.com/{n}"))).collect()),
            ),
            keyword(
                concat!("spec.lifecycle.", $hook, ".finalizersHandler[*]"),
                "maxLength",
                "may not be more than 317",
                finalizers(json!([format!("example.com/{}", long(317))])),
            ),
        ]
    }};
}

pub fn cases() -> Vec<Case> {
    [of!("preNormal"), of!("preDelete")]
        .into_iter()
        .flatten()
        .collect()
}
