//! Rights that the operator's role lacks: how they are recognised, and how often each is logged.

use crate::telemetry::log_once::log_once;
use std::fmt;
use std::time::Duration;

/// How long the same missing right is not logged again: only a person can grant it.
const SILENCE: Duration = Duration::from_secs(3600);

/// A right that the operator's role lacks, in the terms of an RBAC rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRight {
    /// Verb of the rule.
    pub verb: String,
    /// Resource, with its subresource after a slash.
    pub resource: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Namespace of the request; `None` for the whole cluster.
    pub namespace: Option<String>,
}

impl MissingRight {
    /// Reads the sentence of the API server's authorizer: `... cannot VERB resource "R" in API group "G" in the
    /// namespace "N"` or `... at the cluster scope`. Quotas and admission plugins use other sentences.
    pub fn read(message: &str) -> Option<Self> {
        let (_, message) = message.split_once(" cannot ")?;
        let (verb, message) = message.split_once(" resource \"")?;
        let (resource, message) = message.split_once("\" in API group \"")?;
        let (group, message) = message.split_once('"')?;
        let namespace = message.strip_prefix(" in the namespace \"");
        Some(Self {
            verb: verb.into(),
            resource: resource.into(),
            group: group.into(),
            namespace: namespace.and_then(|n| n.split_once('"')).map(|(n, _)| n.into()),
        })
    }
}

impl fmt::Display for MissingRight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            verb,
            resource,
            group,
            namespace,
        } = self;
        write!(f, "{verb} {resource} in API group {group:?}")?;
        match namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => write!(f, " in all namespaces"),
        }
    }
}

/// Logs a missing right, once an hour for each missing rule.
pub fn log_missing_right(right: &MissingRight) {
    let rule = format!("{} {} {}", right.verb, right.resource, right.group);
    log_once(&rule, SILENCE, || {
        let MissingRight {
            verb,
            resource,
            group,
            ..
        } = right;
        tracing::error!(
            verb,
            resource,
            api_group = group,
            "the operator may not {right}; add this rule to its role, unless the API server has only just started"
        );
    });
}
