//! HTTP requests and answers, as far as the model of the API server decides on them.

use crate::api_server::Kind;
use crate::object::Object;
use http::Method;
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    Create,
    JsonPatch,
    MergePatch,
    ReplaceStatus,
    Delete,
}

/// A request of the operator.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRequest {
    pub verb: Verb,
    pub kind: Kind,
    pub name: String,
    /// It is about the subresource `status`.
    pub status: bool,
    pub body: Value,
}

impl HttpRequest {
    pub fn read(method: &Method, path: &str, content_type: &str, body: &[u8]) -> Self {
        let mut parts = path
            .split('/')
            .skip_while(|part| *part != "namespaces")
            .skip(2)
            .peekable();
        let kind = parts.next().and_then(Kind::of).expect("the model knows the kind");
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let name = parts.next().or_else(|| body["metadata"]["name"].as_str());
        let name = name.expect("the object has a name").to_string();
        let verb = match (method.as_str(), content_type) {
            ("GET", _) => Verb::Get,
            ("POST", _) => Verb::Create,
            ("DELETE", _) => Verb::Delete,
            ("PATCH", "application/json-patch+json") => Verb::JsonPatch,
            ("PATCH", "application/merge-patch+json") => Verb::MergePatch,
            ("PUT", "application/json") if parts.peek() == Some(&"status") => Verb::ReplaceStatus,
            _ => panic!("the model knows no {method} of {content_type}"),
        };
        Self {
            verb,
            kind,
            name,
            status: parts.next() == Some("status"),
            body,
        }
    }
}

impl fmt::Display for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match (self.verb, self.kind, self.status) {
            (Verb::Get, ..) => "read",
            (Verb::Create, ..) => "create",
            (Verb::Delete, ..) => "delete",
            (Verb::JsonPatch, ..) => "patch",
            (Verb::ReplaceStatus, ..) | (Verb::MergePatch, _, true) => "write the status of",
            (Verb::MergePatch, ..) => "change",
        };
        write!(f, "{what} {} {}", one_of(self.kind), self.name)?;
        let claim = self.body.as_array().into_iter().flatten();
        let claim = claim.filter(|o| o["value"]["kind"] == "SandboxClaim");
        for owner in claim {
            write!(
                f,
                " (bind it to {})",
                owner["value"]["name"].as_str().unwrap_or("?")
            )?;
        }
        if let Some(phase) = self.body["status"]["phase"].as_str() {
            write!(f, " ({phase})")?;
        }
        Ok(())
    }
}

pub fn one_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Pools => "pool",
        Kind::Claims => "claim",
        Kind::Pods => "pod",
        Kind::Revisions => "revision",
        Kind::Templates => "PodTemplate",
        Kind::Nodes => "node",
    }
}

/// What the API server answers.
#[derive(Clone, Debug)]
pub struct HttpAnswer {
    /// HTTP status.
    pub code: u16,
    pub body: Arc<Object>,
}

impl HttpAnswer {
    pub fn object(object: &Arc<Object>) -> Self {
        Self {
            code: 200,
            body: Arc::clone(object),
        }
    }

    pub fn refusal(code: u16, reason: &str) -> Self {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
            "reason": reason, "message": reason,
        });
        Self {
            code,
            body: Object::new(status),
        }
    }
}
