//! The flags that select a cluster and a namespace, as in kubectl.

use clap::Args;
use std::path::PathBuf;

/// Flags that every verb of the plugin accepts.
#[derive(Args)]
pub(super) struct Connection {
    /// Namespace to use [default: the namespace of the kubeconfig context]
    #[arg(short, long, global = true)]
    pub(super) namespace: Option<String>,
    /// Kubeconfig context to use [default: the current context]
    #[arg(long, global = true)]
    pub(super) context: Option<String>,
    /// Path of the kubeconfig [default: as for kubectl]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
}
