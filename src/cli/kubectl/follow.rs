//! `rollout status`: follows a pool with a watch and prints a line for each change of how it stands.

use crate::api::conditions;
use crate::cli::kubectl::cluster::ClusterError;
use crate::cli::kubectl::history::History;
use crate::cli::kubectl::print;
use crate::cli::kubectl::print::PrintError;
use crate::cli::kubectl::session::Session;
use crate::cli::kubectl::status;
use crate::cli::kubectl::status::{Standing, StatusError};
use crate::cli::kubectl::{pool, rollout};
use futures::StreamExt;
use kube::core::DynamicObject;
use kube::runtime::{WatchStreamExt, watcher};
use std::pin::pin;
use std::time::Duration;
use thiserror::Error;

/// How soon the history is looked at again while the operator has not stored the revision yet.
const STORED_SOON: Duration = Duration::from_millis(200);

/// Arguments of `kubectl warmpool rollout status`.
#[derive(clap::Args)]
#[command(after_help = "\
Exit code 0: the rollout is complete, or complete up to the partition. Exit code 1: it failed, the time was up or \
the pool was deleted. A paused rollout is waited for, and so is one with the strategy OnReplenish, which ends only \
when claims have taken the old sandboxes: give it a --timeout, or look once with --watch=false.

Examples:
  kubectl warmpool rollout status python
  kubectl warmpool rollout status python --timeout=5m
  kubectl warmpool rollout status python --watch=false")]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) target: rollout::Target,
    /// Follow the rollout until it is done; with false look once
    #[arg(short, long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value_t = true, default_missing_value = "true", value_name = "BOOL")]
    watch: bool,
    /// How long to follow, as in 30s, 5m or 1h30m; 0 is for ever
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = crate::cli::duration)]
    timeout: Duration,
    /// Follow this revision only, and fail when the pool goes on to another; 0 is whichever is the newest
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
    revision: i64,
}

/// Why a rollout was not followed to a good end.
#[derive(Debug, Error)]
pub enum FollowError {
    /// It will not come to one.
    #[error(transparent)]
    Status(#[from] StatusError),
    /// The pool is gone, or another has its name.
    #[error("object has been deleted")]
    Deleted,
    /// The time of `--timeout` is up.
    #[error("timed out waiting for the condition{}", after(.0.as_deref()))]
    Timeout(Option<String>),
    /// A request failed.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A line could not be printed.
    #[error(transparent)]
    Print(#[from] PrintError),
}

fn after(message: Option<&str>) -> String {
    message.map_or_else(String::new, |m| format!("; the pool says: {m}"))
}

/// Follows the rollout.
pub(super) async fn run(session: &Session, arguments: &Arguments) -> Result<(), FollowError> {
    let mut follower = Follower {
        session,
        pinned: Some(arguments.revision).filter(|n| *n > 0),
        confirmed: None,
        said: String::new(),
        seen: session.pool().await?,
    };
    if !arguments.watch {
        return follower.look().await.map(drop);
    }
    if arguments.timeout.is_zero() {
        return follower.follow().await;
    }
    let followed = tokio::time::timeout(arguments.timeout, follower.follow()).await;
    followed.unwrap_or_else(|_| Err(FollowError::Timeout(message(&follower.seen))))
}

struct Follower<'a> {
    session: &'a Session,
    /// The only revision to be followed.
    pinned: Option<i64>,
    /// Generation and hash for which the pinned revision was found to be the right one.
    confirmed: Option<(i64, String)>,
    /// The last line printed.
    said: String,
    /// The pool as last seen.
    seen: DynamicObject,
}

/// What a look at the pool comes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Done,
    Waiting,
    /// The number of the revision that is rolled out is not known yet.
    Unstored,
}

impl Follower<'_> {
    async fn follow(&mut self) -> Result<(), FollowError> {
        let pools = self.session.pools.clone();
        let mut events = pin!(watcher::watch_object(pools, &self.session.name).default_backoff());
        let mut last = Look::Waiting;
        while last != Look::Done {
            let event = if last == Look::Unstored {
                tokio::time::timeout(STORED_SOON, events.next()).await.ok()
            } else {
                Some(events.next().await)
            };
            match event {
                None => {}
                Some(Some(Ok(Some(now)))) if pool::uid(&now) == pool::uid(&self.seen) => self.seen = now,
                Some(Some(Ok(_)) | None) => return Err(FollowError::Deleted),
                Some(Some(Err(error))) => {
                    self.session.cluster.survive(error)?;
                    continue;
                }
            }
            last = self.look().await?;
        }
        Ok(())
    }

    /// Says how the rollout stands, unless that was said last.
    async fn look(&mut self) -> Result<Look, FollowError> {
        let (look, line) = if self.is_pinned().await? {
            match status::standing(&self.seen)? {
                Standing::Waiting(line) => (Look::Waiting, line),
                Standing::Done(line) => (Look::Done, line),
            }
        } else {
            (Look::Unstored, status::UNOBSERVED.into())
        };
        if line != self.said {
            print::out(&format!("{line}\n"))?;
            self.said = line;
        }
        Ok(look)
    }

    /// Fails when another revision than the pinned one is rolled out; false when nobody can say yet.
    async fn is_pinned(&mut self) -> Result<bool, FollowError> {
        let status = status::read(&self.seen);
        let Some(desired) = self.pinned.filter(|_| status::is_observed(&self.seen, &status)) else {
            return Ok(true);
        };
        let now = (status.observed_generation, status.update_revision);
        if self.confirmed.as_ref() != Some(&now) {
            let history = History::of(&self.seen, self.session.revisions().await?);
            match history.newest(&now.1) {
                Some(running) if running == desired => self.confirmed = Some(now),
                Some(running) => return Err(StatusError::OtherRevision { desired, running }.into()),
                // The operator is about to store it, or to make an old one the newest.
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// The operator's own words about the rollout.
fn message(pool: &DynamicObject) -> Option<String> {
    let status = status::read(pool);
    let progress = conditions::find(&status.conditions, conditions::PROGRESSING)?;
    Some(progress.message.clone()).filter(|_| status::is_observed(pool, &status))
}
