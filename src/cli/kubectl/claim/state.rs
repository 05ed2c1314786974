//! Decides from a stored claim whether it waits, is ready or has ended.
//!
//! A claim stays JSON here, so that the plugin works with an API server whose claims have fields that this version does
//! not know.

use crate::api::conditions;
use crate::cli::kubectl::pool;
use crate::cli::kubectl::print;
use kube::core::DynamicObject;
use serde_json::Value;

/// The state of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimState {
    /// The claim waits for a sandbox, or for its sandbox to become Ready. Holds the message of the condition.
    Waiting(Option<String>),
    /// The claim is bound and its sandbox is Ready.
    Ready(ReadySandbox),
    /// The claim is Failed or Expired. Holds the rest of a sentence that begins with the claim.
    Ended(String),
}

/// The sandbox of a bound claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadySandbox {
    /// Name of the pod.
    pub name: String,
    /// IP of the pod; empty while it has none.
    pub ip: String,
    /// How long the claim waited, such as `12ms`; empty when the status does not say.
    pub wait: String,
}

impl ReadySandbox {
    /// The outcome, such as `bound to sandbox python-7c9f-x2k4 (10.1.0.17) in 12ms`.
    pub fn outcome(&self) -> String {
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

/// Resource and name of a claim, as kubectl prints them.
pub fn title(claim: &DynamicObject) -> String {
    print::claim_title(pool::name(claim))
}

/// The state of `claim`.
pub fn claim_state(claim: &DynamicObject) -> ClaimState {
    let (bound, ready) = (
        condition(claim, conditions::BOUND),
        condition(claim, conditions::READY),
    );
    match text(claim, "/status/phase") {
        "Bound" if field(ready, "status") == "True" => ClaimState::Ready(sandbox(claim)),
        "" | "Pending" => ClaimState::Waiting(message(bound)),
        "Bound" => ClaimState::Waiting(message(ready)),
        phase => ClaimState::Ended(ending(phase, bound)),
    }
}

fn ending(phase: &str, bound: Option<&Value>) -> String {
    let cause = match (field(bound, "reason"), field(bound, "message")) {
        ("", message) => message.to_string(),
        (reason, "") => reason.to_string(),
        (reason, message) => format!("{reason}: {message}"),
    };
    format!("is {phase} ({cause})")
}

fn sandbox(claim: &DynamicObject) -> ReadySandbox {
    let of = |pointer: &str| text(claim, pointer).to_string();
    ReadySandbox {
        name: of("/status/sandboxes/0/name"),
        ip: of("/status/sandboxes/0/ip"),
        wait: of("/status/wait"),
    }
}

fn condition<'a>(claim: &'a DynamicObject, type_: &str) -> Option<&'a Value> {
    let all = claim.data.pointer("/status/conditions")?.as_array()?;
    all.iter().find(|c| field(Some(c), "type") == type_)
}

fn message(condition: Option<&Value>) -> Option<String> {
    let message = field(condition, "message");
    (!message.is_empty()).then(|| message.to_string())
}

fn field<'a>(condition: Option<&'a Value>, name: &str) -> &'a str {
    condition.and_then(|c| c.get(name)?.as_str()).unwrap_or_default()
}

fn text<'a>(claim: &'a DynamicObject, pointer: &str) -> &'a str {
    claim
        .data
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
