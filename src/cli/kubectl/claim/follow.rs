//! Waits with a watch until a claim has its sandbox, and says what it waits for.

use crate::cli::kubectl::claim::standing::{Sandbox, Standing, standing, title};
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

/// Why a claim has no sandbox that could be used. The sentences go on after the name of the claim.
#[derive(Debug, Error)]
pub enum FollowError {
    /// It came to its end before.
    #[error("{0}")]
    Ended(String),
    /// The claim is gone, or another has its name.
    #[error("has been deleted")]
    Deleted,
    /// The time of `--timeout` is up.
    #[error("still waits after {}{}", for_people(.after), last_words(.said.as_deref()))]
    Timeout {
        /// The time.
        after: Duration,
        /// Why it waits, in the operator's words.
        said: Option<String>,
    },
    /// A request failed.
    #[error("could not be watched: {0}")]
    Cluster(#[from] ClusterError),
}

fn for_people(time: &Duration) -> String {
    jiff::SignedDuration::try_from(*time).map_or_else(|_| format!("{time:?}"), |time| format!("{time:#}"))
}

fn last_words(said: Option<&str>) -> String {
    said.map_or_else(
        || ", and no operator has said why; does one run?".into(),
        |said| format!(": {said}"),
    )
}

/// Waits until the sandbox of `claim` is Ready, and gives the claim as it is then. A `timeout` of zero is none.
pub(super) async fn until_ready(
    cluster: &Cluster,
    claims: &Api<DynamicObject>,
    claim: &DynamicObject,
    timeout: Duration,
) -> Result<(DynamicObject, Sandbox), FollowError> {
    let mut said = None;
    if timeout.is_zero() {
        return follow(cluster, claims, claim, &mut said).await;
    }
    let followed = tokio::time::timeout(timeout, follow(cluster, claims, claim, &mut said)).await;
    followed.unwrap_or(Err(FollowError::Timeout { after: timeout, said }))
}

async fn follow(
    cluster: &Cluster,
    claims: &Api<DynamicObject>,
    claim: &DynamicObject,
    said: &mut Option<String>,
) -> Result<(DynamicObject, Sandbox), FollowError> {
    let mut events = pin!(watcher::watch_object(claims.clone(), name(claim)).default_backoff());
    loop {
        let now = match events.next().await {
            Some(Ok(Some(now))) if uid(&now) == uid(claim) => now,
            Some(Ok(_)) | None => return Err(FollowError::Deleted),
            Some(Err(error)) => {
                cluster.survive(error)?;
                continue;
            }
        };
        match standing(&now) {
            Standing::Ready(sandbox) => return Ok((now, sandbox)),
            Standing::Ended(why) => return Err(FollowError::Ended(why)),
            Standing::Waiting(Some(why)) if said.as_ref() != Some(&why) => {
                print::note(&format!("{}: {why}", title(&now)));
                *said = Some(why);
            }
            Standing::Waiting(_) => {}
        }
    }
}
