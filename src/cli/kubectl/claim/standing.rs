//! How a claim stands, told by the object as stored: a pure function. It stays JSON, so that the plugin also works
//! with a server whose claims have fields that it does not know.

use crate::api::conditions;
use crate::cli::kubectl::pool;
use kube::core::DynamicObject;
use serde_json::Value;

/// How a claim stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It waits; the operator's words on why, once it has said any.
    Waiting(Option<String>),
    /// It has its sandbox, and the sandbox is Ready.
    Ready(Sandbox),
    /// It has ended; reason and message.
    Ended(String),
}

/// The sandbox of a claim, and what it took to get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// Name of the pod.
    pub name: String,
    /// IP of the pod; empty while unknown.
    pub ip: String,
    /// How long the claim waited, for people; empty when nobody said.
    pub wait: String,
}

impl Sandbox {
    /// As in `bound to sandbox python-7c9f-x2k4 (10.1.0.17) in 12ms`.
    pub fn line(&self) -> String {
        let Self { name, ip, wait } = self;
        let ip = if ip.is_empty() {
            ip.clone()
        } else {
            format!(" ({ip})")
        };
        let wait = if wait.is_empty() {
            wait.clone()
        } else {
            format!(" in {wait}")
        };
        format!("bound to sandbox {name}{ip}{wait}")
    }
}

/// A claim as kubectl names it in its answers.
pub(super) fn title(claim: &DynamicObject) -> String {
    format!("sandboxclaim.warmpool.dev/{}", pool::name(claim))
}

/// How `claim` stands.
pub fn standing(claim: &DynamicObject) -> Standing {
    let (bound, ready) = (
        condition(claim, conditions::BOUND),
        condition(claim, conditions::READY),
    );
    match text(claim, "/status/phase") {
        "Bound" if says(ready, "status") == "True" => Standing::Ready(sandbox(claim)),
        "" | "Pending" => Standing::Waiting(message(bound)),
        "Bound" => Standing::Waiting(message(ready)),
        phase => Standing::Ended(ending(phase, bound)),
    }
}

fn ending(phase: &str, bound: Option<&Value>) -> String {
    let said = match (says(bound, "reason"), says(bound, "message")) {
        ("", message) => message.to_string(),
        (reason, "") => reason.to_string(),
        (reason, message) => format!("{reason}: {message}"),
    };
    format!("is {phase} ({said})")
}

fn sandbox(claim: &DynamicObject) -> Sandbox {
    let of = |pointer: &str| text(claim, pointer).to_string();
    Sandbox {
        name: of("/status/sandboxes/0/name"),
        ip: of("/status/sandboxes/0/ip"),
        wait: of("/status/wait"),
    }
}

fn condition<'a>(claim: &'a DynamicObject, type_: &str) -> Option<&'a Value> {
    let all = claim.data.pointer("/status/conditions")?.as_array()?;
    all.iter().find(|c| says(Some(c), "type") == type_)
}

fn message(condition: Option<&Value>) -> Option<String> {
    let said = says(condition, "message");
    (!said.is_empty()).then(|| said.to_string())
}

fn says<'a>(condition: Option<&'a Value>, field: &str) -> &'a str {
    condition.and_then(|c| c.get(field)?.as_str()).unwrap_or_default()
}

fn text<'a>(claim: &'a DynamicObject, pointer: &str) -> &'a str {
    claim
        .data
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
