//! Follows a claim until its sandboxes are Ready.

use crate::api::claim::Phase;
use crate::api::{SandboxClaim, SandboxClaimStatus, conditions};
use crate::claim_client::held_claim::HeldClaim;
use crate::client::request_errors::CallError;
use futures::StreamExt;
use kube::ResourceExt;
use kube::runtime::{WatchStreamExt, watcher};
use std::pin::pin;
use thiserror::Error;

/// A claim was not bound, or not released.
#[derive(Debug, Error)]
pub enum ClaimError {
    /// The API server rejects the claim, a watch of it or its deletion; or no answer came.
    #[error("claim {claim}: {}", .source.message())]
    Request {
        /// Name of the claim.
        claim: String,
        /// Cause.
        source: CallError,
    },
    /// The claim is Failed or Expired.
    #[error("claim {claim} is {phase:?}: {reason}: {message}")]
    Ended {
        /// Name of the claim.
        claim: String,
        /// Its phase.
        phase: Phase,
        /// Reason of its condition `Bound`, such as `WaitTimeout`.
        reason: String,
        /// Message of that condition.
        message: String,
    },
    /// Somebody deleted the claim.
    #[error("claim {claim} was deleted")]
    Deleted {
        /// Name of the claim.
        claim: String,
    },
}

/// Waits until the claim is Bound and Ready, and returns its status. Says in the log why the claim waits.
///
/// # Errors
/// When the claim has ended or is gone, or when it cannot be watched.
pub(super) async fn until_ready(held: &HeldClaim) -> Result<SandboxClaimStatus, ClaimError> {
    let claim = || held.name.clone();
    let mut events = pin!(watcher::watch_object(held.api.clone(), &held.name).default_backoff());
    while let Some(event) = events.next().await {
        let seen = match event {
            Ok(Some(seen)) if seen.uid() == held.uid => seen,
            Ok(_) => break,
            Err(error) => match lasting(error) {
                Some(source) => {
                    return Err(ClaimError::Request {
                        claim: claim(),
                        source,
                    });
                }
                None => continue,
            },
        };
        if let Some(status) = ready(seen)? {
            return Ok(status);
        }
    }
    Err(ClaimError::Deleted { claim: claim() })
}

/// The status of a claim that is Ready; nothing while it waits.
fn ready(claim: SandboxClaim) -> Result<Option<SandboxClaimStatus>, ClaimError> {
    let name = claim.name_any();
    let status = claim.status.unwrap_or_default();
    let condition = |wanted: &str| status.conditions.iter().find(|c| c.type_ == wanted);
    let phase = status.phase.unwrap_or_default();
    match phase {
        Phase::Failed | Phase::Expired => {
            let bound = condition(conditions::BOUND);
            Err(ClaimError::Ended {
                claim: name,
                phase,
                reason: bound.map(|c| c.reason.clone()).unwrap_or_default(),
                message: bound.map(|c| c.message.clone()).unwrap_or_default(),
            })
        }
        Phase::Bound if condition(conditions::READY).is_some_and(|c| c.status == "True") => Ok(Some(status)),
        Phase::Bound | Phase::Pending => {
            let why = condition(conditions::BOUND).map_or("no status yet", |c| c.message.as_str());
            tracing::debug!(claim = name, "waiting: {why}");
            Ok(None)
        }
    }
}

/// The error of a watch that a retry cannot fix: a missing right, or a kind that is not served.
fn lasting(error: watcher::Error) -> Option<CallError> {
    match error {
        watcher::Error::InitialListFailed(source) | watcher::Error::WatchStartFailed(source) => {
            let lasts = matches!(&source, kube::Error::Api(status) if matches!(status.code, 401 | 403 | 404));
            lasts.then_some(CallError::Kube(source))
        }
        _ => None,
    }
}
