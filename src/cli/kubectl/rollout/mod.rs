//! `kubectl warmpool rollout`: parses the verb and runs it on one pool.

pub mod edit;
mod follow;
pub mod history;
pub mod pause;
pub mod restart;
pub mod resume;
pub mod status;
pub mod undo;

use crate::cli::kubectl::connection::Connection;
use crate::cli::kubectl::pool_client::PoolClient;
use crate::cli::kubectl::pool_target::PoolTarget;
use crate::cli::kubectl::verb_error::{VerbError, wraps_verb_error};
use crate::cli::runtime::block_on;
use clap::Subcommand;
use edit::EditError;
use follow::FollowError;
use history::HistoryError;
use std::process::ExitCode;
use thiserror::Error;
use undo::UndoError;

/// Arguments of `kubectl warmpool rollout`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Follow a rollout until it completes
    Status(follow::Arguments),
    /// List the revisions of the pool's template
    History(history::Arguments),
    /// Roll back to an earlier revision
    Undo(undo::Arguments),
    /// Pause the rollout; the pool still creates sandboxes of the old revision and serves claims
    #[command(after_help = "Examples:\n  kubectl warmpool rollout pause python")]
    Pause(edit::Arguments),
    /// Resume a paused rollout
    #[command(after_help = "Examples:\n  kubectl warmpool rollout resume python")]
    Resume(edit::Arguments),
    /// Replace every unclaimed sandbox with a new one of the same template, as a rollout
    #[command(after_help = "\
Writes the annotation kubectl.kubernetes.io/restartedAt into the template, which makes it a new revision.

Examples:
  kubectl warmpool rollout restart python && kubectl warmpool rollout status python")]
    Restart(edit::Arguments),
}

/// The verb failed.
#[derive(Debug, Error)]
pub(super) enum RolloutError {
    #[error(transparent)]
    Verb(VerbError),
    #[error(transparent)]
    Follow(#[from] FollowError),
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error(transparent)]
    Undo(#[from] UndoError),
    #[error(transparent)]
    Edit(#[from] EditError),
}

wraps_verb_error!(RolloutError);

/// Runs the verb.
pub(super) fn run(connection: &Connection, arguments: &Arguments) -> Result<ExitCode, RolloutError> {
    let verb = async |client: &PoolClient| {
        match &arguments.verb {
            Verb::Status(arguments) => follow::run(client, arguments).await?,
            Verb::History(arguments) => history::run(client, arguments).await?,
            Verb::Undo(arguments) => undo::run(client, arguments).await?,
            Verb::Pause(arguments) => pause::run(client, arguments).await?,
            Verb::Resume(arguments) => resume::run(client, arguments).await?,
            Verb::Restart(arguments) => restart::run(client, arguments).await?,
        }
        Ok(())
    };
    block_on(arguments.verb.pools().each(connection, verb))?
}

impl Verb {
    fn pools(&self) -> &PoolTarget {
        match self {
            Self::Status(arguments) => &arguments.pools,
            Self::History(arguments) => &arguments.pools,
            Self::Undo(arguments) => &arguments.pools,
            Self::Pause(arguments) | Self::Resume(arguments) | Self::Restart(arguments) => &arguments.pools,
        }
    }
}
