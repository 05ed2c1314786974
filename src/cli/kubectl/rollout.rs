//! `kubectl warmpool rollout`: one verb each for following, undoing and steering a rollout.

use crate::cli::kubectl::Connection;
use crate::cli::kubectl::cluster::ClusterError;
use crate::cli::kubectl::edit;
use crate::cli::kubectl::edit::{Edit, EditError};
use crate::cli::kubectl::follow;
use crate::cli::kubectl::follow::FollowError;
use crate::cli::kubectl::history;
use crate::cli::kubectl::history::HistoryError;
use crate::cli::kubectl::pool::PoolName;
use crate::cli::kubectl::session::Session;
use crate::cli::kubectl::undo;
use crate::cli::kubectl::undo::UndoError;
use clap::Subcommand;
use jiff::Timestamp;
use thiserror::Error;

/// Arguments of `kubectl warmpool rollout`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Follow a rollout to its end
    Status(follow::Arguments),
    /// List the templates that the pool has had
    History(history::Arguments),
    /// Go back to an earlier template
    Undo(undo::Arguments),
    /// Stop the rollout; the pool is kept full with the old template, and claims are served
    #[command(after_help = "Examples:\n  kubectl warmpool rollout pause python")]
    Pause(edit::Arguments),
    /// Let a paused rollout go on
    #[command(after_help = "Examples:\n  kubectl warmpool rollout resume python")]
    Resume(edit::Arguments),
    /// Replace every unclaimed sandbox by a new one of the same template, as a rollout
    #[command(after_help = "\
Writes the annotation kubectl.kubernetes.io/restartedAt into the template, which makes it a new revision.

Examples:
  kubectl warmpool rollout restart python && kubectl warmpool rollout status python")]
    Restart(edit::Arguments),
}

/// The pool that a verb is about.
#[derive(clap::Args)]
pub(super) struct Target {
    /// Name of the pool; pool/NAME and pool.warmpool.dev/NAME say the same
    #[arg(value_name = "POOL")]
    pub(super) pool: PoolName,
}

/// Why a verb failed.
#[derive(Debug, Error)]
pub(super) enum RolloutError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Follow(#[from] FollowError),
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error(transparent)]
    Undo(#[from] UndoError),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("the runtime could not be set up: {0}")]
    Runtime(#[from] std::io::Error),
}

/// Runs one of the verbs.
pub(super) fn run(connection: &Connection, arguments: &Arguments) -> Result<(), RolloutError> {
    crate::cli::block_on(async {
        let session = Session::open(connection, arguments.verb.pool()).await?;
        match &arguments.verb {
            Verb::Status(arguments) => follow::run(&session, arguments).await?,
            Verb::History(arguments) => history::run(&session, arguments).await?,
            Verb::Undo(arguments) => undo::run(&session, arguments).await?,
            Verb::Pause(arguments) => edit::run(&session, arguments, Edit::Pause).await?,
            Verb::Resume(arguments) => edit::run(&session, arguments, Edit::Resume).await?,
            Verb::Restart(arguments) => {
                edit::run(&session, arguments, Edit::Restart(Timestamp::now())).await?
            }
        }
        Ok(())
    })?
}

impl Verb {
    fn pool(&self) -> &PoolName {
        match self {
            Self::Status(arguments) => &arguments.target.pool,
            Self::History(arguments) => &arguments.target.pool,
            Self::Undo(arguments) => &arguments.target.pool,
            Self::Pause(arguments) | Self::Resume(arguments) | Self::Restart(arguments) => {
                &arguments.target.pool
            }
        }
    }
}
