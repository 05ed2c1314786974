//! `kubectl warmpool status`: one screen about a pool, once or again and again.

use crate::cli::kubectl::cluster::{Cluster, ClusterError, FROM_SERVER};
use crate::cli::kubectl::connection::Connection;
use crate::cli::kubectl::operator_lease;
use crate::cli::kubectl::pool_name::PoolArgument;
use crate::cli::kubectl::pool_screen::screen;
use crate::cli::kubectl::print::{self, PrintError};
use crate::cli::kubectl::terminal::{width, wrapped};
use crate::cli::runtime::block_on;
use crate::model::Key;
use jiff::Timestamp;
use std::io::IsTerminal;
use std::time::Duration;
use thiserror::Error;

/// Time between two screens.
const INTERVAL: Duration = Duration::from_secs(2);
/// Clears the terminal and goes to its first line.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Arguments of `kubectl warmpool status`.
#[derive(clap::Args)]
#[command(after_help = "\
Exit code 0: the state was printed. Exit code 1: the pool does not exist, or the call failed. Exit code 2: the arguments are \
wrong. With --watch the call ends when a signal ends it.

Examples:
  kubectl warmpool status python
  kubectl warmpool status python --watch")]
pub(super) struct Arguments {
    #[command(flatten)]
    pool: PoolArgument,
    /// Print the state anew every two seconds
    #[arg(short, long)]
    watch: bool,
}

/// The state was not printed.
#[derive(Debug, Error)]
pub enum StateError {
    /// The pool does not exist. Holds its name.
    #[error("{FROM_SERVER} (NotFound): pools.warmpool.dev {0:?} not found")]
    NotFound(String),
    /// The cluster could not be read.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The state could not be printed.
    #[error(transparent)]
    Print(#[from] PrintError),
    /// The runtime could not be set up.
    #[error("cannot set up the runtime: {0}")]
    Runtime(#[from] std::io::Error),
}

/// Runs the verb.
pub(super) fn run(connection: &Connection, arguments: &Arguments) -> Result<(), StateError> {
    block_on(async {
        let cluster = Cluster::open(connection).await?;
        let clear = if std::io::stdout().is_terminal() {
            CLEAR
        } else {
            ""
        };
        print::out(&text(&cluster, arguments).await?)?;
        if !arguments.watch {
            return Ok(());
        }
        loop {
            tokio::time::sleep(INTERVAL).await;
            let text = text(&cluster, arguments).await?;
            print::out(&format!("{clear}{text}"))?;
        }
    })?
}

async fn text(cluster: &Cluster, arguments: &Arguments) -> Result<String, StateError> {
    let name = &arguments.pool.pool.0;
    let index = cluster.read().await?;
    let key = Key::new(cluster.namespace.as_str(), name);
    let lines = screen(&index, &key, Timestamp::now()).ok_or_else(|| StateError::NotFound(name.clone()))?;
    let hint = operator_lease::hint(cluster).await;
    let width = width();
    let lines: Vec<_> = hint
        .iter()
        .chain(&lines)
        .map(|line| wrapped(line, width))
        .collect();
    Ok(lines.join("\n") + "\n")
}
