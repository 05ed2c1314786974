//! Logs request errors: each text once a minute, each missing right once an hour.

use crate::client::error_chain::chain;
use kube::core::Status;
use kube::runtime::watcher;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the same text is not logged again.
const SILENCE: Duration = Duration::from_secs(60);
/// The same for a missing right: only a person can grant it.
const SILENCE_ON_RIGHTS: Duration = Duration::from_secs(3600);

/// Status code for a watch from a resource version that the API server no longer keeps.
const EXPIRED: u16 = 410;
/// Status code for a list of a type that does not exist.
const NOT_FOUND: u16 = 404;

/// Until when each text is not logged again. Static, because the process has one log.
static SILENT_UNTIL: Mutex<BTreeMap<String, Instant>> = Mutex::new(BTreeMap::new());

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

/// Logs that a request fails, unless the same text was logged within a minute. While the API server cannot be reached, all
/// requests fail alike and share a line.
pub fn log(error: &(dyn Error + 'static)) {
    let text = description(error);
    if let Some(right) = MissingRight::read(&text) {
        log_missing_right(&right);
        return;
    }
    log_once(&text, SILENCE, || {
        tracing::warn!(
            error = text,
            "a request fails and is tried again; the log says so once a minute"
        );
    });
}

/// Logs that the watch of a resource fails. When the type does not exist, the line says how to install it.
pub fn log_watch_error(resource: &str, error: &watcher::Error) {
    let code = status_in(error).map_or(0, |status| status.code);
    if code == EXPIRED {
        tracing::debug!(
            resource,
            "the watch lists again: its resource version has expired"
        );
        return;
    }
    if code != NOT_FOUND {
        return log(error);
    }
    log_once(resource, SILENCE, || {
        tracing::error!(
            "the API server does not serve {resource} in version v1alpha1; install it: \
             warmpool crds | kubectl apply -f -"
        );
    });
}

/// Whether a watch failed because its resource version has expired.
pub fn has_expired(error: &watcher::Error) -> bool {
    let is_answer = matches!(error, watcher::Error::WatchStartFailed(_));
    is_answer && status_in(error).is_some_and(|status| status.code == EXPIRED)
}

/// Logs a missing right, once an hour for each missing rule.
pub fn log_missing_right(right: &MissingRight) {
    let rule = format!("{} {} {}", right.verb, right.resource, right.group);
    log_once(&rule, SILENCE_ON_RIGHTS, || {
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

/// The status in the API server's answer, if there was an answer.
fn status_in<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Status> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(watcher::Error::WatchError(status)) = error.downcast_ref() {
            return Some(status);
        }
        if let Some(kube::Error::Api(status)) = error.downcast_ref() {
            return Some(status);
        }
        cause = error.source();
    }
    None
}

/// The API server's message, or why there was no answer.
fn description(error: &(dyn Error + 'static)) -> String {
    status_in(error).map_or_else(
        || chain(error),
        |status| format!("{} {}", status.code, status.message),
    )
}

fn log_once(key: &str, silence: Duration, write: impl FnOnce()) {
    let now = Instant::now();
    let mut silent_until = SILENT_UNTIL.lock().unwrap_or_else(PoisonError::into_inner);
    silent_until.retain(|_, end| *end > now);
    if silent_until.contains_key(key) {
        return;
    }
    silent_until.insert(key.to_string(), now + silence);
    drop(silent_until);
    write();
}
