//! The pools that a verb acts on: one by its name, or all of the namespace with given labels.

use crate::api;
use crate::cli::kubectl::cluster::{Cluster, ClusterError};
use crate::cli::kubectl::connection::Connection;
use crate::cli::kubectl::pool_client::PoolClient;
use crate::cli::kubectl::pool_name::PoolName;
use crate::cli::kubectl::print;
use crate::cli::kubectl::selection::note_none;
use std::fmt::Display;
use std::process::ExitCode;

/// The argument and the flag that name the pools.
#[derive(clap::Args)]
pub(super) struct PoolTarget {
    /// Name of the pool: NAME, pool/NAME or pool.warmpool.dev/NAME
    #[arg(
        value_name = "POOL",
        required_unless_present = "selector",
        conflicts_with = "selector"
    )]
    pool: Option<PoolName>,
    /// Act on every pool of the namespace with these labels, as in lang=python
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
}

impl PoolTarget {
    /// The pool with this name, or those with these labels.
    pub(super) fn new(pool: Option<PoolName>, selector: Option<String>) -> Self {
        Self { pool, selector }
    }

    /// Runs `verb` on each pool. Of several, one that fails does not keep the verb from the others.
    ///
    /// # Errors
    /// That of the one pool that was named, or of the request that lists the pools.
    pub(super) async fn each<E: From<ClusterError> + Display>(
        &self,
        connection: &Connection,
        verb: impl AsyncFn(&PoolClient) -> Result<(), E>,
    ) -> Result<ExitCode, E> {
        let cluster = Cluster::open(connection).await?;
        if let Some(pool) = &self.pool {
            verb(&PoolClient::new(cluster, &pool.0)).await?;
            return Ok(ExitCode::SUCCESS);
        }
        let namespace = Some(cluster.namespace.as_str());
        let selector = self.selector.as_deref().unwrap_or_default();
        let pools = cluster.named_with::<api::Pool>(namespace, selector).await?;
        if pools.is_empty() {
            note_none("pools", namespace);
        }
        let mut code = ExitCode::SUCCESS;
        for pool in pools {
            if let Err(error) = verb(&PoolClient::new(cluster.clone(), &pool.name)).await {
                print::error(&error.to_string());
                code = ExitCode::FAILURE;
            }
        }
        Ok(code)
    }
}
