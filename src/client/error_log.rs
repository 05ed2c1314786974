//! Logs request errors, each text once a minute.

use crate::client::error_chain::{chain, status_in};
use crate::client::missing_rights::{MissingRight, log_missing_right};
use crate::telemetry::log_once::log_once;
use kube::runtime::watcher;
use std::error::Error;
use std::time::Duration;

/// How long the same text is not logged again.
const SILENCE: Duration = Duration::from_secs(60);

/// Status code for a watch from a resource version that the API server no longer keeps.
const EXPIRED: u16 = 410;
/// Status code for a request that the role of the operator does not allow.
const FORBIDDEN: u16 = 403;
/// Status code for a list of a type that does not exist.
const NOT_FOUND: u16 = 404;

/// Logs that requests of this `verb` for a `resource` fail, unless the same text was logged within a minute. While the
/// API server cannot be reached, all requests fail alike and share a line, which names the first.
pub fn log(verb: &str, resource: &str, error: &(dyn Error + 'static)) {
    let text = chain(error);
    if let Some(right) = MissingRight::read(&text) {
        log_missing_right(&right);
        return;
    }
    log_once(&text, SILENCE, || {
        tracing::warn!(
            verb,
            resource,
            error = text,
            "a request fails and is tried again; logged at most once a minute"
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
        let verb = match error {
            watcher::Error::InitialListFailed(_) => "list",
            _ => "watch",
        };
        return log(verb, resource, error);
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

/// Whether a watch failed because the API server does not serve the kind.
pub fn is_not_found(error: &watcher::Error) -> bool {
    status_in(error).is_some_and(|status| status.code == NOT_FOUND)
}

/// Whether a watch failed because the operator has no right to it.
pub fn is_forbidden(error: &watcher::Error) -> bool {
    status_in(error).is_some_and(|status| status.code == FORBIDDEN)
}
