//! Objects as the API server stores them.

use serde_json::Value;
use std::sync::Arc;

/// One version of an object, with what is asked of it at every step.
#[derive(Debug)]
pub struct Object {
    pub value: Value,
    pub text: String,
    name: String,
    uid: String,
    /// Kind and UID of the controller.
    owner: (String, String),
    /// The labels of the operator that say what a pod is.
    pool: String,
    state: String,
    phase: String,
    terminating: bool,
    ready: bool,
    broken: bool,
    admitted: bool,
    held_back: bool,
    cordoned: bool,
}

impl Object {
    pub fn new(value: Value) -> Arc<Self> {
        let string = |path| found(&value, path).and_then(Value::as_str).unwrap_or("");
        let owned = |path| string(path).to_string();
        Arc::new(Self {
            text: value.to_string(),
            name: owned("/metadata/name"),
            uid: owned("/metadata/uid"),
            owner: (
                owned("/metadata/ownerReferences/0/kind"),
                owned("/metadata/ownerReferences/0/uid"),
            ),
            pool: label(&value, "pool").to_string(),
            state: label(&value, "state").to_string(),
            phase: owned("/status/phase"),
            terminating: found(&value, "/metadata/deletionTimestamp").is_some(),
            ready: string("/status/conditions/0/status") == "True",
            broken: string("/spec/containers/0/image") == "broken"
                || string("/metadata/labels/hangs") == "yes",
            admitted: string("/metadata/labels/admitted") != "no",
            cordoned: found(&value, "/spec/unschedulable").is_some_and(|v| v == true),
            held_back: string("/metadata/labels/hold") == "yes",
            value,
        })
    }

    pub fn at(&self, path: &str) -> &str {
        found(&self.value, path).and_then(Value::as_str).unwrap_or("")
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn uid(&self) -> &str {
        &self.uid
    }

    pub fn terminating(&self) -> bool {
        self.terminating
    }

    /// Kind and UID of the controller.
    pub fn owner(&self) -> (&str, &str) {
        (&self.owner.0, &self.owner.1)
    }

    /// The pool that made a pod.
    pub fn pool(&self) -> &str {
        &self.pool
    }

    /// What a pod is to its pool.
    pub fn state(&self) -> &str {
        &self.state
    }

    pub fn phase(&self) -> &str {
        &self.phase
    }

    /// A user wants the pod replaced.
    pub fn is_to_be_evicted(&self) -> bool {
        !label(&self.value, "evict").is_empty()
    }

    pub fn number(&self, path: &str) -> usize {
        let number = found(&self.value, path).and_then(Value::as_u64);
        number.map_or(0, |n| usize::try_from(n).unwrap())
    }

    pub fn runs(&self) -> bool {
        self.phase == "Running"
    }

    pub fn ended(&self) -> bool {
        matches!(self.phase(), "Failed" | "Succeeded")
    }

    pub fn ready(&self) -> bool {
        self.ready
    }

    /// A pod that hangs, or is of an image that never becomes Ready.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// The handler of preNormal is on it, or there is none.
    pub fn is_admitted(&self) -> bool {
        self.admitted
    }

    /// The handler of preDelete is on it.
    pub fn is_held_back(&self) -> bool {
        self.held_back
    }

    /// The node takes no pod.
    pub fn is_cordoned(&self) -> bool {
        self.cordoned
    }

    /// UIDs of the sandboxes that a claim's status lists.
    pub fn listed(&self) -> Vec<&str> {
        let listed = found(&self.value, "/status/sandboxes").and_then(Value::as_array);
        let uids = listed.into_iter().flatten().map(|s| s["uid"].as_str().unwrap());
        uids.collect()
    }

    pub fn waits(&self) -> bool {
        !self.terminating() && matches!(self.phase(), "" | "Pending")
    }

    pub fn wanted(&self) -> usize {
        self.number("/spec/replicas").max(1)
    }
}

/// A label of the operator's own.
fn label<'a>(value: &'a Value, name: &str) -> &'a str {
    let labels = found(value, "/metadata/labels").and_then(Value::as_object);
    let ours = |label: &String| label.strip_prefix("warmpool.dev/") == Some(name);
    let value = labels.and_then(|labels| labels.iter().find(|(label, _)| ours(label)));
    value.and_then(|(_, value)| value.as_str()).unwrap_or("")
}

/// What stands at a path none of whose parts is escaped: `Value::pointer` unescapes each, and much of the search would be
/// spent on that.
fn found<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('/').skip(1);
    parts.try_fold(value, |value, part| match value {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        object => object.get(part),
    })
}
