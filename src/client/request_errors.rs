//! What the log is told of requests that fail at every try: each trouble once in a while, and each missing right once.

use crate::client::error_chain::chain;
use kube::core::Status;
use kube::runtime::watcher;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the log is not told again of what has not changed.
const SILENCE: Duration = Duration::from_secs(60);
/// The same for a missing right, which somebody has to grant and nothing else will mend.
const SILENCE_ON_RIGHTS: Duration = Duration::from_secs(3600);

/// Answer to a watch of what is not kept any more; it lists anew.
const EXPIRED: u16 = 410;
/// Answer to a list of a type that is not there.
const NOT_FOUND: u16 = 404;

/// What was told, and until when it is not told again. There is one log, so there is one of these.
static SILENT_UNTIL: Mutex<BTreeMap<String, Instant>> = Mutex::new(BTreeMap::new());

/// A right that the operator's role does not give, in the words of a rule of RBAC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRight {
    /// Verb of the rule.
    pub verb: String,
    /// Resource, with its subresource after a slash.
    pub resource: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Namespace of the request; `None` where it was for the whole cluster.
    pub namespace: Option<String>,
}

impl MissingRight {
    /// Reads the sentence of the API server's authorizer: `... cannot VERB resource "R" in API group "G" in the
    /// namespace "N"` or `... at the cluster scope`. What quotas and admission refuse reads otherwise.
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

/// Tells the log that a request fails, unless that was told a moment ago. While the API server cannot be reached all
/// requests fail alike, and are told of in one line.
pub fn log(error: &(dyn Error + 'static)) {
    let text = words(error);
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

/// Tells the log that the watch of a resource fails. A type that is not there is the one thing that a person has to mend.
pub fn log_watch_error(resource: &str, error: &watcher::Error) {
    let code = status_in(error).map_or(0, |status| status.code);
    if code == EXPIRED {
        tracing::debug!(
            resource,
            "the watch begins anew, what it has missed is no longer kept"
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

/// A watch is answered that what it asks for is no longer kept.
pub fn has_expired(error: &watcher::Error) -> bool {
    let is_answer = matches!(error, watcher::Error::WatchStartFailed(_));
    is_answer && status_in(error).is_some_and(|status| status.code == EXPIRED)
}

/// Tells the log of a missing right, once for each rule that is missing.
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

/// What the API server answered, where it is an answer that failed.
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

/// The API server's words, or what went wrong instead of an answer.
fn words(error: &(dyn Error + 'static)) -> String {
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
