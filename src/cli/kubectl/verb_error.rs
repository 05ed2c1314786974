//! Why a verb that has no errors of its own did not end well.

use crate::cli::kubectl::cluster::{ClusterError, FROM_SERVER};
use crate::cli::kubectl::print::PrintError;
use thiserror::Error;

/// Why a verb failed.
#[derive(Debug, Error)]
pub enum VerbError {
    /// A request failed, or no cluster was found.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The pool does not exist. Holds its name.
    #[error("{FROM_SERVER} (NotFound): pools.warmpool.dev {0:?} not found")]
    NoPool(String),
    /// The outcome could not be printed.
    #[error(transparent)]
    Print(#[from] PrintError),
    /// The runtime could not be set up.
    #[error("cannot set up the runtime: {0}")]
    Runtime(#[from] std::io::Error),
}
