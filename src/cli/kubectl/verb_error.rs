//! The errors that every verb may meet. Some verbs have more.

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

/// Makes a variant `Verb` of an error of one verb take over what every verb meets.
macro_rules! wraps_verb_error {
    ($error:ty) => {
        impl<E: Into<VerbError>> From<E> for $error {
            fn from(error: E) -> Self {
                Self::Verb(error.into())
            }
        }
    };
}
pub(crate) use wraps_verb_error;
