//! What an error answer of the API server means.

use crate::client::error_chain::chain;
use crate::client::missing_rights::MissingRight;
use crate::model::failure::{Class, Failure};
use kube::core::response::StatusCause;
use std::time::Duration;
use thiserror::Error;

/// Longest delay before a retry, in seconds, whatever the API server asks for. A person often removes the cause (a
/// quota, a webhook) and then waits.
pub(crate) const MAX_RETRY_DELAY: u64 = 60;

/// In the answer when a webhook could not be called (`ErrCallingWebhook` of k8s.io/apiserver). Nothing is stored before
/// every webhook has been called, so the write did not happen.
const WEBHOOK_NOT_CALLED: &str = "failed calling webhook";

/// In the answer, a 500, when etcd does not accept the size of the object.
const TOO_LARGE: &str = "request is too large";

/// Why a request failed.
#[derive(Debug, Error)]
pub enum CallError {
    /// No answer within this time. The write may have happened.
    #[error("no answer within {} s", .0.as_secs_f64())]
    NoAnswer(Duration),
    /// The request was answered with an error, or the connection broke.
    #[error(transparent)]
    Kube(#[from] kube::Error),
}

impl CallError {
    /// What the error means for a decision.
    pub fn failure(&self) -> Failure {
        Failure {
            class: self.class(),
            message: self.message(),
        }
    }

    /// Classifies the error by its status code.
    fn class(&self) -> Class {
        let Self::Kube(kube::Error::Api(status)) = self else {
            return Class::Unknown;
        };
        let retry_after = status.details.as_ref().map_or(0, |d| d.retry_after_seconds);
        let causes = status.details.as_ref().map_or(&[][..], |d| &d.causes);
        match status.code {
            404 => Class::Gone,
            // A JSON Patch whose test fails is answered with 422, too, and without causes.
            409 | 412 => Class::Conflict,
            422 if causes.is_empty() => Class::Conflict,
            422 if causes.iter().any(names_metadata) => Class::Invalid,
            429 => Class::Throttled(Duration::from_secs(
                u64::from(retry_after).clamp(1, MAX_RETRY_DELAY),
            )),
            403 if self.missing_right().is_some() => Class::Denied,
            400..=499 => Class::Rejected,
            _ if status.message.contains(TOO_LARGE) => Class::Rejected,
            _ if status.message.contains(WEBHOOK_NOT_CALLED) => Class::NotAdmitted,
            _ => Class::Unknown,
        }
    }

    /// The right that the operator's role lacks, if that is the error.
    pub(crate) fn missing_right(&self) -> Option<MissingRight> {
        match self {
            Self::Kube(kube::Error::Api(status)) if status.code == 403 => MissingRight::read(&status.message),
            _ => None,
        }
    }

    /// The API server's message, or why there was no answer.
    pub fn message(&self) -> String {
        match self {
            Self::Kube(kube::Error::Api(status)) => status.message.clone(),
            other => chain(other),
        }
    }
}

/// Whether labels or annotations are at fault. A policy that denies names no field, and a webhook may have changed
/// others.
fn names_metadata(cause: &StatusCause) -> bool {
    ["metadata.labels", "metadata.annotations"]
        .iter()
        .any(|field| cause.field.starts_with(field))
}
