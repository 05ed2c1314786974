//! `rollout status`: follows a rollout with a watch and prints each change.

use crate::api::conditions;
use crate::cli::kubectl::operator_lease;
use crate::cli::kubectl::pool;
use crate::cli::kubectl::pool_client::PoolClient;
use crate::cli::kubectl::pool_target::PoolTarget;
use crate::cli::kubectl::print;
use crate::cli::kubectl::rollout::history::History;
use crate::cli::kubectl::rollout::status::{self, RolloutState, StatusError};
use crate::cli::kubectl::verb_error::{VerbError, wraps_verb_error};
use futures::StreamExt;
use kube::core::DynamicObject;
use kube::runtime::{WatchStreamExt, watcher};
use std::pin::pin;
use std::time::Duration;
use thiserror::Error;

/// How often the history is read while the operator has not stored the update revision yet.
const HISTORY_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Arguments of `kubectl warmpool rollout status`.
#[derive(clap::Args)]
#[command(after_help = "\
Exit code 0: the rollout is complete, or complete up to the partition. Exit code 1: the rollout failed, the timeout \
expired, or the pool was deleted. The verb also waits for a paused rollout, and for a rollout with the strategy \
OnReplenish, which completes only when claims have taken the old sandboxes. Set --timeout to limit the wait, or print \
the state once with --watch=false.

Examples:
  kubectl warmpool rollout status python
  kubectl warmpool rollout status python --timeout=5m
  kubectl warmpool rollout status python --watch=false")]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) pools: PoolTarget,
    /// Follow the rollout until it completes; false prints the state once
    #[arg(short, long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value_t = true, default_missing_value = "true", value_name = "BOOL")]
    watch: bool,
    /// How long to follow, as in 30s, 5m or 1h30m; 0 sets no limit
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = crate::cli::duration::parse)]
    timeout: Duration,
    /// Follow only this revision and fail when the pool changes to another; 0 follows the newest
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
    revision: i64,
}

/// The rollout did not complete, or could not be followed.
#[derive(Debug, Error)]
pub enum FollowError {
    /// The rollout will not complete.
    #[error(transparent)]
    Status(#[from] StatusError),
    /// The pool was deleted. A new pool may have its name.
    #[error("object has been deleted")]
    Deleted,
    /// The rollout was not complete within `--timeout`. Holds the message of the condition Progressing.
    #[error("timed out waiting for the condition{}", pool_message(.0.as_deref()))]
    Timeout(Option<String>),
    /// As for every verb.
    #[error(transparent)]
    Verb(VerbError),
}

wraps_verb_error!(FollowError);

fn pool_message(message: Option<&str>) -> String {
    message.map_or_else(String::new, |m| format!("; the pool says: {m}"))
}

/// Follows the rollout.
pub(super) async fn run(client: &PoolClient, arguments: &Arguments) -> Result<(), FollowError> {
    let mut follower = Follower {
        client,
        pinned: Some(arguments.revision).filter(|n| *n > 0),
        confirmed: None,
        last_line: String::new(),
        pool: client.pool().await?,
    };
    // Standard output has only the lines of the rollout.
    if let Some(hint) = operator_lease::hint(&client.cluster, follower.pool.metadata.labels.as_ref()).await {
        print::note(&hint);
    }
    if !arguments.watch {
        return follower.print_state().await.map(drop);
    }
    if arguments.timeout.is_zero() {
        return follower.follow().await;
    }
    let followed = tokio::time::timeout(arguments.timeout, follower.follow()).await;
    followed.unwrap_or_else(|_| Err(FollowError::Timeout(progress_message(&follower.pool))))
}

struct Follower<'a> {
    client: &'a PoolClient,
    /// The revision that `--revision` names.
    pinned: Option<i64>,
    /// Observed generation and hash of the update revision that was found to be the pinned revision.
    confirmed: Option<(i64, String)>,
    /// The last line printed.
    last_line: String,
    /// The newest version of the pool.
    pool: DynamicObject,
}

/// What the newest version of the pool shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Observation {
    Done,
    Waiting,
    /// The update revision is not stored yet, so its number is unknown.
    Unstored,
}

impl Follower<'_> {
    async fn follow(&mut self) -> Result<(), FollowError> {
        let pools = self.client.pools.clone();
        let mut events = pin!(watcher::watch_object(pools, &self.client.name).default_backoff());
        let mut last = Observation::Waiting;
        while last != Observation::Done {
            let event = if last == Observation::Unstored {
                tokio::time::timeout(HISTORY_POLL_INTERVAL, events.next())
                    .await
                    .ok()
            } else {
                Some(events.next().await)
            };
            match event {
                None => {}
                Some(Some(Ok(Some(now)))) if pool::uid(&now) == pool::uid(&self.pool) => self.pool = now,
                Some(Some(Ok(_)) | None) => return Err(FollowError::Deleted),
                Some(Some(Err(error))) => {
                    self.client.cluster.check_watch_error(error)?;
                    continue;
                }
            }
            last = self.print_state().await?;
        }
        Ok(())
    }

    /// Prints the state of the rollout, unless it is the last line printed.
    async fn print_state(&mut self) -> Result<Observation, FollowError> {
        let (observation, line) = if self.is_pinned().await? {
            match status::rollout_state(&self.pool)? {
                RolloutState::Waiting(line) => (Observation::Waiting, line),
                RolloutState::Done(line) => (Observation::Done, line),
            }
        } else {
            (Observation::Unstored, status::UNOBSERVED.into())
        };
        if line != self.last_line {
            print::out(&format!("{line}\n"))?;
            self.last_line = line;
        }
        Ok(observation)
    }

    /// Whether the update revision is the pinned revision; false while its number is unknown.
    ///
    /// # Errors
    /// [`StatusError::OtherRevision`] when the update revision has another number.
    async fn is_pinned(&mut self) -> Result<bool, FollowError> {
        let status = status::status(&self.pool);
        let Some(desired) = self.pinned.filter(|_| status::is_observed(&self.pool, &status)) else {
            return Ok(true);
        };
        let now = (status.observed_generation, status.update_revision);
        if self.confirmed.as_ref() != Some(&now) {
            let history = History::of(&self.pool, self.client.revisions().await?);
            match history.newest(&now.1) {
                Some(running) if running == desired => self.confirmed = Some(now),
                Some(running) => return Err(StatusError::OtherRevision { desired, running }.into()),
                // The operator has yet to store the revision, or to give an old revision the highest number.
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// Message of the condition Progressing; `None` when it is about an earlier spec.
fn progress_message(pool: &DynamicObject) -> Option<String> {
    let status = status::status(pool);
    let progress = conditions::find(&status.conditions, conditions::PROGRESSING)?;
    Some(progress.message.clone()).filter(|_| status::is_observed(pool, &status))
}
