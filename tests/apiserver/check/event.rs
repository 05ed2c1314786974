//! Describes one observed change of one object.

use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// The kinds that the history speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Pool,
    Claim,
    Pod,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Pool, Self::Claim, Self::Pod];

    pub fn name(self) -> &'static str {
        match self {
            Self::Pool => "Pool",
            Self::Claim => "SandboxClaim",
            Self::Pod => "Pod",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Added,
    Modified,
    Deleted,
}

impl Change {
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One observed change. `object` is the object as the API server sent it, without `managedFields`.
#[derive(Clone, Debug)]
pub struct Event {
    /// When the watcher got it.
    pub at: Timestamp,
    pub kind: Kind,
    pub change: Change,
    /// One etcd stands behind every kind, so these order the events of all of them.
    pub rv: u64,
    /// The watcher had to list anew: what happened just before this event was not seen.
    pub gap: bool,
    pub object: Value,
}

impl Event {
    pub fn new(at: Timestamp, kind: Kind, change: Change, object: Value) -> Self {
        let rv = text(&object, "/metadata/resourceVersion").parse().unwrap_or(0);
        Self {
            at,
            kind,
            change,
            rv,
            gap: false,
            object,
        }
    }

    pub fn uid(&self) -> &str {
        text(&self.object, "/metadata/uid")
    }

    pub fn name(&self) -> &str {
        text(&self.object, "/metadata/name")
    }

    /// The line of the history file.
    pub fn to_line(&self) -> String {
        json!({
            "at": self.at.to_string(),
            "kind": self.kind.name(),
            "change": self.change.name(),
            "rv": self.rv,
            "gap": self.gap,
            "object": self.object,
        })
        .to_string()
    }
}

/// What matters for a judgement, on one line.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let o = &self.object;
        write!(
            f,
            "rv {:<6} {} {:<12} {:<8} {} ({})",
            self.rv,
            self.at.strftime("%H:%M:%S.%6f"),
            self.kind.name(),
            self.change.name(),
            self.name(),
            self.uid().get(..8).unwrap_or_default()
        )?;
        if !text(o, "/metadata/deletionTimestamp").is_empty() {
            write!(f, " terminating")?;
        }
        match self.kind {
            Kind::Pool => write!(
                f,
                " replicas={} available={} capacity={} maxUnavailable={}",
                o["spec"]["replicas"],
                o["status"]["available"],
                o["spec"]["capacity"],
                o["spec"]["updateStrategy"]["maxUnavailable"]
            ),
            Kind::Claim => {
                write!(
                    f,
                    " pool={} phase={}",
                    text(o, "/spec/poolRef/name"),
                    text(o, "/status/phase")
                )?;
                for sandbox in items(o, "/status/sandboxes") {
                    write!(
                        f,
                        " sandbox={}({})",
                        text(sandbox, "/name"),
                        text(sandbox, "/uid")
                    )?;
                }
                Ok(())
            }
            Kind::Pod => {
                for owner in items(o, "/metadata/ownerReferences") {
                    write!(f, " owner={}/{}", text(owner, "/kind"), text(owner, "/name"))?;
                    write!(f, "({})", text(owner, "/uid").get(..8).unwrap_or_default())?;
                }
                for (key, value) in o["metadata"]["labels"].as_object().into_iter().flatten() {
                    if let Some(key) = key.strip_prefix("warmpool.dev/") {
                        write!(f, " {key}={}", value.as_str().unwrap_or_default())?;
                    }
                }
                write!(f, " {}", text(o, "/status/phase"))?;
                write!(f, " {}", if is_ready(o) { "Ready" } else { "unready" })
            }
        }
    }
}

/// The text at a JSON pointer, or nothing.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The array at a JSON pointer, or nothing.
pub fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// An object of texts, as labels are.
pub fn strings(map: &Value) -> BTreeMap<String, String> {
    let entries = map.as_object().into_iter().flatten();
    entries
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_string()))
        .collect()
}

/// The condition of that type.
pub fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    items(object, "/status/conditions")
        .iter()
        .find(|c| c["type"] == type_)
}

pub fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some_and(|c| c["status"] == "True")
}
