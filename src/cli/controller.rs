//! `warmpool controller`

use crate::cache::watch::{SILENCE, SharedCache};
use crate::cli::duration;
use crate::client::connect::{ClientOptions, ConfigError, client, config};
use crate::client::identity::Component;
use crate::controllers::leader_election;
use crate::controllers::leader_election::timing::{Timing, TimingError};
use crate::controllers::operator;
use crate::telemetry::http::{ServeError, exposition, health, serve};
use crate::telemetry::metrics::Metrics;
use clap::builder::NonEmptyStringValueParser;
use clap::{ArgAction, Args, ValueEnum};
use kube::Client;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::Level;
use tracing_subscriber::filter::{EnvFilter, FilterExt as _, filter_fn};
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

/// Arguments of `warmpool controller`.
#[derive(Args)]
pub struct Arguments {
    /// Serve the pools and claims of this namespace alone; a Role in it is enough then [default: all namespaces]
    #[arg(long, value_name = "NS", env = "WARMPOOL_NAMESPACE", value_parser = NonEmptyStringValueParser::new())]
    namespace: Option<String>,
    #[command(flatten)]
    election: Election,
    /// How log lines are written
    #[arg(long, value_enum, default_value_t = LogFormat::Text, env = "WARMPOOL_LOG_FORMAT")]
    log_format: LogFormat,
    /// Which log lines are written: a level, or a filter like "warmpool=debug,kube=warn"
    #[arg(
        long,
        value_name = "FILTER",
        default_value = "warn,warmpool=info,kube_runtime::watcher=off,kube_client::client::builder=off",
        env = "WARMPOOL_LOG"
    )]
    log: String,
    /// Where /metrics is served: HOST:PORT, or :PORT for every address; 0 serves none
    #[arg(long, value_name = "ADDRESS", default_value = ":8080")]
    metrics_bind_address: String,
    /// Where /livez and /readyz are served: HOST:PORT, or :PORT for every address; 0 serves none
    #[arg(long, value_name = "ADDRESS", default_value = ":8081")]
    health_probe_bind_address: String,
}

/// Names and defaults are those of other Kubernetes controllers.
#[derive(Args)]
struct Election {
    /// Work only while holding a Lease that one process at a time can hold
    #[arg(
        long = "leader-elect",
        value_name = "BOOL",
        default_value_t = true,
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    on: bool,
    /// How long others leave a Lease alone that is not renewed
    #[arg(long = "leader-elect-lease-duration", value_name = "DURATION", default_value = "15s", value_parser = duration)]
    lease_duration: Duration,
    /// How long the leader tries to renew the Lease before it gives up and ends
    #[arg(long = "leader-elect-renew-deadline", value_name = "DURATION", default_value = "10s", value_parser = duration)]
    renew_deadline: Duration,
    /// Pause between two tries
    #[arg(long = "leader-elect-retry-period", value_name = "DURATION", default_value = "2s", value_parser = duration)]
    retry_period: Duration,
    /// Name of the Lease
    #[arg(
        long = "leader-elect-resource-name",
        value_name = "NAME",
        default_value = "warmpool"
    )]
    name: String,
    /// Namespace of the Lease [default: the operator's own, or that of the kubeconfig context]
    #[arg(
        id = "lease_namespace",
        long = "leader-elect-resource-namespace",
        value_name = "NS",
        env = "POD_NAMESPACE",
        value_parser = NonEmptyStringValueParser::new()
    )]
    namespace: Option<String>,
}

impl Election {
    fn settings(&self, client: &Client) -> Result<Option<leader_election::Settings>, TimingError> {
        if !self.on {
            return Ok(None);
        }
        let own = client.default_namespace();
        Ok(Some(leader_election::Settings {
            name: self.name.clone(),
            namespace: self.namespace.clone().unwrap_or_else(|| own.to_string()),
            identity: identity(),
            timing: Timing::new(self.lease_duration, self.renew_deadline, self.retry_period)?,
        }))
    }
}

/// The pod or machine, for people, and something that tells two processes there apart.
fn identity() -> String {
    let host = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    let place = std::env::var("POD_NAME").unwrap_or_else(|_| host());
    format!("{place}_{:016x}", rand::random::<u64>())
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
    /// No cluster is known.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The periods of leader election do not fit each other.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// It ended without having been told to.
    #[error(transparent)]
    Run(#[from] operator::RunError),
    /// The client could not be made.
    #[error("the client could not be made: {0}")]
    Client(#[from] kube::Error),
    /// The address of a flag cannot be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The runtime or the signal handlers could not be set up.
    #[error("the runtime could not be set up: {0}")]
    Runtime(#[from] std::io::Error),
}

/// Runs the operator until SIGTERM or SIGINT, and tells in the form of its log why it ended before.
pub fn main(arguments: &Arguments) -> ExitCode {
    let Err(error) = run(arguments) else {
        return ExitCode::SUCCESS;
    };
    match arguments.log_format {
        LogFormat::Json if tracing::enabled!(Level::ERROR) => tracing::error!("{error}"),
        // It has no log yet, or one that would not have it.
        LogFormat::Json | LogFormat::Text => eprintln!("error: {error}"),
    }
    ExitCode::FAILURE
}

/// Fails as [`ControllerError`] says; but for the loss of leadership before anything was written to the cluster.
fn run(arguments: &Arguments) -> Result<(), ControllerError> {
    let filter = EnvFilter::builder()
        .parse(&arguments.log)
        .map_err(|source| ControllerError::Log {
            filter: arguments.log.clone(),
            source,
        })?;
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // The library quotes there every answer that it does not understand, with all that is secret in it.
    let filter = filter.and(filter_fn(|line| line.target() != "kube_client::client"));
    let log = tracing_subscriber::registry();
    match arguments.log_format {
        LogFormat::Text => log.with(lines.with_target(false).with_filter(filter)).init(),
        LogFormat::Json => log
            .with(lines.json().flatten_event(true).with_filter(filter))
            .init(),
    }
    super::block_on(async {
        // First of all: a container's first process is not ended by a signal that it does not handle.
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (shared, metrics) = (SharedCache::default(), Metrics::default());
        let options = ClientOptions {
            component: Component::Controller,
            read_timeout: Some(SILENCE),
            metrics: Some(metrics.requests.clone()),
        };
        let client = client(config(None, None).await?, options)?;
        tracing::info!(version = env!("CARGO_PKG_VERSION"), "starting");
        let measured = exposition::routes(exposition::registry(&metrics, &shared));
        serve("metrics-bind-address", &arguments.metrics_bind_address, measured).await?;
        let health = health::routes(shared.clone());
        serve(
            "health-probe-bind-address",
            &arguments.health_probe_bind_address,
            health,
        )
        .await?;
        let settings = operator::Settings {
            namespace: arguments.namespace.clone(),
            election: arguments.election.settings(&client)?,
        };
        let term = watch::Sender::new(leader_election::Term::None);
        let stop = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        Ok(operator::run(client, settings, shared, metrics, term, stop).await?)
    })?
}
