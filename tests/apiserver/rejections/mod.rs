//! Checks what the API server rejects, with which message.

mod autoscaling_cases;
pub mod claim_cases;
mod claim_default_cases;
pub mod creation;
pub mod drawn;
mod image_cases;
pub mod install;
mod lifecycle_cases;
pub mod pool_cases;
pub mod rules;
pub mod stored;
pub mod template_ref_cases;

use crate::api::Resource;
use serde_json::{Map, Value, json};

/// What the API server says of a number that int32 cannot hold.
const ABOVE_INT32: &str = "should be less than or equal to 2147483647";

/// An object that one rule of a schema must refuse.
pub struct Case {
    /// Path of the rule's schema, as in `spec.template.spec.containers[*].image`.
    pub at: &'static str,
    /// The rule: the message of a CEL rule, or the keyword of the schema.
    pub rule: &'static str,
    /// What the API server has to say; for a CEL rule that is its message.
    pub says: &'static str,
    pub resource: Resource,
    pub object: Value,
}

impl Case {
    fn new(
        resource: Resource,
        at: &'static str,
        rule: &'static str,
        says: &'static str,
        object: Value,
    ) -> Self {
        Self {
            at,
            rule,
            says,
            resource,
            object,
        }
    }
}

/// An object with that many keys, for labels and annotations.
fn many(count: usize) -> Value {
    let entries = (0..count).map(|n| (format!("key-{n}"), json!("value")));
    Value::Object(entries.collect::<Map<_, _>>())
}
