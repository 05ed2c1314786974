//! `warmpool controller`

use crate::control;
use crate::observe::feed::SILENCE;
use clap::{Args, ValueEnum};
use kube::{Client, Config};
use std::io::IsTerminal;
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Arguments of `warmpool controller`.
#[derive(Args)]
pub struct Arguments {
    /// How log lines are written
    #[arg(long, value_enum, default_value_t = LogFormat::Text, env = "WARMPOOL_LOG_FORMAT")]
    log_format: LogFormat,
    /// Which log lines are written: a level, or a filter like "warmpool=debug,kube=warn"
    #[arg(
        long,
        value_name = "FILTER",
        default_value = "warn,warmpool=info",
        env = "WARMPOOL_LOG"
    )]
    log: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// Why the operator could not start.
#[derive(Debug, Error)]
pub enum ControllerError {
    /// The filter of `--log` is not understood.
    #[error(
        "--log {filter:?} is not understood ({source}); write a level like \"info\" or a filter like \"warmpool=debug\""
    )]
    Log {
        /// What was written.
        filter: String,
        /// Why it is not understood.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Neither a kubeconfig nor a ServiceAccount was found.
    #[error("no cluster to connect to: {0}")]
    Config(#[from] kube::config::InferConfigError),
    /// The client could not be made.
    #[error("the client could not be made: {0}")]
    Client(#[from] kube::Error),
    /// The runtime or the signal handlers could not be set up.
    #[error("the runtime could not be set up: {0}")]
    Runtime(#[from] std::io::Error),
}

/// Runs the operator until SIGTERM or SIGINT.
///
/// # Errors
/// As [`ControllerError`] says, before anything was written to the cluster.
pub fn run(arguments: &Arguments) -> Result<(), ControllerError> {
    let filter = EnvFilter::builder()
        .parse(&arguments.log)
        .map_err(|source| ControllerError::Log {
            filter: arguments.log.clone(),
            source,
        })?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match arguments.log_format {
        LogFormat::Text => subscriber.with_target(false).init(),
        LogFormat::Json => subscriber.json().flatten_event(true).init(),
    }
    super::block_on(async {
        let client = client().await?;
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tracing::info!(version = env!("CARGO_PKG_VERSION"), "starting");
        control::run(client, async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
        .await;
        Ok(())
    })?
}

/// A client for the cluster of the kubeconfig or of the ServiceAccount.
async fn client() -> Result<Client, ControllerError> {
    let mut config = Config::infer().await?;
    // kube-rs repeats any verb for minutes; here each write decides for itself what an error means.
    config.default_retry = false;
    // A list or watch has no other limit. It counts from the last byte either way: a connection may have been idle.
    config.read_timeout = Some(SILENCE);
    config.reset_reader_on_write = true;
    Ok(Client::try_from(config)?)
}
