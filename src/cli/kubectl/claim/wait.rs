//! Waits with a watch until a claim is ready, and prints why it waits.

use crate::cli::kubectl::claim::state::{ClaimState, ReadySandbox, claim_state, title};
use crate::cli::kubectl::cluster::{Cluster, ClusterError};
use crate::cli::kubectl::pool::{name, uid};
use crate::cli::kubectl::print;
use futures::StreamExt;
use kube::Api;
use kube::core::DynamicObject;
use kube::runtime::{WatchStreamExt, watcher};
use std::pin::pin;
use std::time::Duration;
use thiserror::Error;

/// The claim has no Ready sandbox. Each message is the rest of a sentence that begins with the claim.
#[derive(Debug, Error)]
pub enum WaitError {
    /// The claim is Failed or Expired.
    #[error("{0}")]
    Ended(String),
    /// The claim was deleted. A new claim may have its name.
    #[error("has been deleted")]
    Deleted,
    /// The claim was not ready within `--timeout`.
    #[error("still waits after {}{}", short(.after), cause(.message.as_deref()))]
    Timeout {
        /// The timeout.
        after: Duration,
        /// Why the claim waits, from its conditions.
        message: Option<String>,
    },
    /// A request failed.
    #[error("could not be watched: {0}")]
    Cluster(#[from] ClusterError),
}

fn short(time: &Duration) -> String {
    jiff::SignedDuration::try_from(*time).map_or_else(|_| format!("{time:?}"), |time| format!("{time:#}"))
}

fn cause(message: Option<&str>) -> String {
    message.map_or_else(
        || ", and its status is empty; check that the operator is running".into(),
        |message| format!(": {message}"),
    )
}

/// Waits until the sandbox of `claim` is Ready, and returns the claim and the sandbox. A `timeout` of zero sets no
/// limit.
pub(super) async fn until_ready(
    cluster: &Cluster,
    claims: &Api<DynamicObject>,
    claim: &DynamicObject,
    timeout: Duration,
) -> Result<(DynamicObject, ReadySandbox), WaitError> {
    let mut message = None;
    if timeout.is_zero() {
        return follow(cluster, claims, claim, &mut message).await;
    }
    let outcome = tokio::time::timeout(timeout, follow(cluster, claims, claim, &mut message)).await;
    outcome.unwrap_or(Err(WaitError::Timeout {
        after: timeout,
        message,
    }))
}

async fn follow(
    cluster: &Cluster,
    claims: &Api<DynamicObject>,
    claim: &DynamicObject,
    printed: &mut Option<String>,
) -> Result<(DynamicObject, ReadySandbox), WaitError> {
    let mut events = pin!(watcher::watch_object(claims.clone(), name(claim)).default_backoff());
    loop {
        let now = match events.next().await {
            Some(Ok(Some(now))) if uid(&now) == uid(claim) => now,
            Some(Ok(_)) | None => return Err(WaitError::Deleted),
            Some(Err(error)) => {
                cluster.check_watch_error(error)?;
                continue;
            }
        };
        match claim_state(&now) {
            ClaimState::Ready(sandbox) => return Ok((now, sandbox)),
            ClaimState::Ended(why) => return Err(WaitError::Ended(why)),
            ClaimState::Waiting(Some(why)) if printed.as_ref() != Some(&why) => {
                print::note(&format!("{}: {why}", title(&now)));
                *printed = Some(why);
            }
            ClaimState::Waiting(_) => {}
        }
    }
}
