//! What an answer of the API server means. The one place where errors are sorted into classes.

use crate::client::request_errors;
use crate::client::request_errors::MissingRight;
use crate::executor::request_limit::RequestSlot;
use crate::executor::shutdown::Sent;
use kube::api::PostParams;
use kube::core::Request;
use kube::core::response::StatusCause;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::future::Future;
use std::time::Duration;
use thiserror::Error;
use tokio::time::Instant;

/// Longest wait for the answer to one request. kube-rs has no such limit of its own, and a request without
/// one can hang for as long as a half-open connection lives.
pub const DEADLINE: Duration = Duration::from_secs(15);

/// Longest pause before a write is made again, in seconds, however long the API server asks for. What stood in the way (a
/// quota, a webhook) is often taken away by a person who then waits.
pub(crate) const LONGEST: u64 = 60;

/// Why a request failed.
#[derive(Debug, Error)]
pub enum CallError {
    /// No answer within [`DEADLINE`]. The write may have happened.
    #[error("no answer within {} s", DEADLINE.as_secs())]
    NoAnswer,
    /// The request was answered with an error, or broke.
    #[error(transparent)]
    Kube(#[from] kube::Error),
}

/// What to do about a failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// 409, 412, 422 of a failed `test`: the object is not what it was taken for. Look again.
    Stale,
    /// 422 that names labels or annotations: no object can have such; the API server's words. Another write is needed.
    Invalid(String),
    /// 404: the object is gone.
    Gone,
    /// The API server will not have it; its words. Trying again helps only when something else changes.
    Rejected(String),
    /// The operator's role does not allow it. [`call`] has told the log.
    Denied,
    /// The API server asks to wait, for this long at most. The write did not happen.
    Throttled(Duration),
    /// No answer, a broken connection or an error of the server: the write may have happened or not.
    Ambiguous,
}

/// Sends a request with the deadline.
///
/// # Errors
/// As [`CallError`] says.
pub async fn call<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, CallError> {
    let _sent = Sent::now();
    let answer = match tokio::time::timeout(DEADLINE, request).await {
        Ok(answer) => answer.map_err(CallError::Kube),
        Err(_) => Err(CallError::NoAnswer),
    };
    if let Some(right) = answer.as_ref().err().and_then(CallError::missing_right) {
        request_errors::log_missing_right(&right);
    }
    answer
}

/// Creates an object out of all its fields; the answer is read as far as `K` knows them.
pub(crate) async fn post<K: Resource + DeserializeOwned>(
    client: &Client,
    api: &Api<K>,
    object: &Value,
) -> Result<K, CallError> {
    let body = object.to_string().into_bytes();
    let request = Request::new(api.resource_url()).create(&PostParams::default(), body);
    call(async {
        let request = request.map_err(kube::Error::BuildRequest)?;
        client.request(request).await
    })
    .await
}

impl CallError {
    /// Sorts the error into its class.
    pub fn class(&self) -> Class {
        let Self::Kube(kube::Error::Api(status)) = self else {
            return Class::Ambiguous;
        };
        let retry_after = status.details.as_ref().map_or(0, |d| d.retry_after_seconds);
        let causes = status.details.as_ref().map_or(&[][..], |d| &d.causes);
        match status.code {
            404 => Class::Gone,
            // A JSON Patch whose test fails is answered with 422, too, and without causes.
            409 | 412 => Class::Stale,
            422 if causes.is_empty() => Class::Stale,
            422 if causes.iter().any(names_metadata) => Class::Invalid(status.message.clone()),
            429 => Class::Throttled(Duration::from_secs(u64::from(retry_after).clamp(1, LONGEST))),
            403 if self.missing_right().is_some() => Class::Denied,
            400..=499 => Class::Rejected(status.message.clone()),
            _ if status.message.contains(TOO_LARGE) => Class::Rejected(status.message.clone()),
            _ => Class::Ambiguous,
        }
    }

    /// The API server will not have it, or cannot ask the webhook that is to admit it. The write did not happen, and another,
    /// to which that does not apply, may fare better.
    pub(crate) fn is_rejection(&self) -> bool {
        matches!(self.class(), Class::Rejected(_) | Class::Denied) || self.is_not_admitted()
    }

    /// A webhook that is to admit the write could not be asked.
    fn is_not_admitted(&self) -> bool {
        matches!(self, Self::Kube(kube::Error::Api(status)) if status.message.contains(NOT_ADMITTED))
    }

    /// The log knows of it already: a missing right is told of once, not at each try.
    pub fn is_logged(&self) -> bool {
        self.class() == Class::Denied
    }

    fn missing_right(&self) -> Option<MissingRight> {
        match self {
            Self::Kube(kube::Error::Api(status)) if status.code == 403 => MissingRight::read(&status.message),
            _ => None,
        }
    }

    /// The API server's words, or what went wrong instead of an answer.
    pub fn message(&self) -> String {
        match self {
            Self::Kube(kube::Error::Api(status)) => status.message.clone(),
            other => crate::cache::watch::chain(other),
        }
    }
}

/// What the API server says of a webhook that it could not ask (`ErrCallingWebhook` of its library). Nothing is stored before
/// every webhook has been asked, so this is known not to have happened.
const NOT_ADMITTED: &str = "failed calling webhook";

/// In the answer, a 500, to what etcd does not take.
const TOO_LARGE: &str = "request is too large";

/// Whether labels or annotations are at fault. A policy that denies names no field, and a webhook may have changed others.
fn names_metadata(cause: &StatusCause) -> bool {
    ["metadata.labels", "metadata.annotations"]
        .iter()
        .any(|field| cause.field.starts_with(field))
}

/// The tries of one write whose outcome is not known.
pub(crate) struct Tries {
    pause: Duration,
    /// When the first of them failed.
    failing_since: Option<Instant>,
    /// The answer of one of them was lost: it may have been carried out.
    pub(crate) lost: bool,
}

impl Tries {
    pub(crate) fn new() -> Self {
        Self {
            pause: Duration::from_millis(100),
            failing_since: None,
            lost: false,
        }
    }

    /// After a further `pause` they will have failed for so long that it is no matter of a moment.
    pub(crate) fn go_on_failing(&self, pause: Duration) -> bool {
        self.failing_since
            .is_some_and(|since| since.elapsed() + pause > Duration::from_secs(3))
    }

    /// How long to wait before the next one: 0.1 s, doubling up to 5 s.
    pub(crate) fn next_pause(&mut self) -> Duration {
        let longer = (self.pause * 2).min(Duration::from_secs(5));
        std::mem::replace(&mut self.pause, longer)
    }

    /// How long to wait before the next one; `None` when the API server has answered that there is no use in it.
    pub(crate) fn pause_after(&mut self, error: &CallError) -> Option<Duration> {
        self.failing_since.get_or_insert_with(Instant::now);
        let pause = match error.class() {
            Class::Ambiguous => {
                self.lost |= !error.is_not_admitted();
                self.next_pause()
            }
            Class::Throttled(pause) => pause,
            Class::Stale | Class::Gone | Class::Invalid(_) | Class::Rejected(_) | Class::Denied => {
                return None;
            }
        };
        tracing::debug!(error = error.message(), "the write is tried again");
        Some(pause)
    }
}

/// Repeats a write from `place` until its outcome is known. `ask` must be a write that can be repeated safely.
///
/// # Errors
/// The first error that says the write did not happen.
pub(crate) async fn confirm<T, F: Future<Output = Result<T, CallError>>>(
    slot: &mut RequestSlot<'_>,
    mut ask: impl FnMut() -> F,
) -> Result<T, CallError> {
    let mut tries = Tries::new();
    loop {
        slot.take().await;
        let error = match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        match tries.pause_after(&error) {
            Some(pause) => slot.pause(pause).await,
            None => return Err(error),
        }
    }
}
