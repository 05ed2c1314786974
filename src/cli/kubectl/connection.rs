//! The flags that select a cluster, a namespace and a user, as in kubectl.

use crate::client::call::DEADLINE;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Flags that every verb accepts.
#[derive(Args)]
pub struct Connection {
    /// Namespace to use [default: the namespace of the kubeconfig context]
    #[arg(short, long, global = true)]
    pub namespace: Option<String>,
    /// Kubeconfig context to use [default: the current context]
    #[arg(long, global = true)]
    pub context: Option<String>,
    /// Path of the kubeconfig [default: as for kubectl]
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// User to act as
    #[arg(long = "as", global = true, value_name = "USER")]
    pub as_user: Option<String>,
    /// Group to act as; may be repeated
    #[arg(long, global = true, value_name = "GROUP", requires = "as_user")]
    pub as_group: Vec<String>,
    /// How long to wait for the answer to one request, as in 5s or 1m; 0 sets no limit [default: 15s]
    #[arg(long, global = true, value_name = "DURATION", value_parser = crate::cli::duration::parse)]
    request_timeout: Option<Duration>,
}

impl Connection {
    /// Longest wait for the answer to one request; zero: no limit.
    pub fn deadline(&self) -> Duration {
        self.request_timeout.unwrap_or(DEADLINE)
    }
}
