//! `warmpool controller`: sets up logs, endpoints and the client, and runs the operator.

use crate::cache::synced_cache::SharedCache;
use crate::cache::watch::SILENCE;
use crate::cli::duration;
use crate::cli::runtime::block_on;
use crate::client::connect::{ClientOptions, ConfigError, client, config};
use crate::client::error_chain::chain;
use crate::client::identity::Component;
use crate::controllers::leader_election;
use crate::controllers::leader_election::lease_metadata::default_lease;
use crate::controllers::leader_election::timing::{Timing, TimingError};
use crate::controllers::operator;
use crate::model::shard_selector::ShardSelector;
use crate::telemetry::events::claims::ClaimEvents;
use crate::telemetry::http::{ServeError, exposition, readiness, serve};
use crate::telemetry::json_log::JsonLog;
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
    /// Serve only the pools and claims of this namespace; a Role is then enough [default: all namespaces]
    #[arg(long, value_name = "NS", env = "WARMPOOL_NAMESPACE", value_parser = NonEmptyStringValueParser::new())]
    namespace: Option<String>,
    /// Serve only the pools whose labels match, in the syntax of kubectl get -l; each pool must match the selector of
    /// one operator [default: all pools]
    #[arg(long, value_name = "SELECTOR", env = "WARMPOOL_POOL_SELECTOR")]
    pool_selector: Option<ShardSelector>,
    #[command(flatten)]
    election: Election,
    /// Format of log lines
    #[arg(long, value_enum, default_value_t = LogFormat::Text, env = "WARMPOOL_LOG_FORMAT")]
    log_format: LogFormat,
    /// Log filter: a level, or directives like "warmpool=debug,kube=warn"
    #[arg(
        long,
        value_name = "FILTER",
        default_value = "warn,warmpool=info,kube_runtime::watcher=off,kube_client::client::builder=off",
        env = "WARMPOOL_LOG"
    )]
    log: String,
    /// Address of /metrics: HOST:PORT, or :PORT for all addresses; 0 disables it
    #[arg(long, value_name = "ADDRESS", default_value = ":8080")]
    metrics_bind_address: String,
    /// Address of /livez and /readyz: HOST:PORT, or :PORT for all addresses; 0 disables them
    #[arg(long, value_name = "ADDRESS", default_value = ":8081")]
    health_probe_bind_address: String,
    /// Which claims get events; each event is a write, and at most 5 a second are written
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = ClaimEvents::Notable)]
    claim_events: ClaimEvents,
}

/// Flags of leader election, with the names and defaults of kube-controller-manager.
#[derive(Args)]
struct Election {
    /// Run the controllers only while holding a Lease, which only one process at a time can hold
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
    /// How long other processes wait before they take over a Lease that is not renewed
    #[arg(long = "leader-elect-lease-duration", value_name = "DURATION", default_value = "15s", value_parser = duration::parse)]
    lease_duration: Duration,
    /// How long the leader tries to renew the Lease before it exits
    #[arg(long = "leader-elect-renew-deadline", value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    renew_deadline: Duration,
    /// Time between two attempts to acquire or renew the Lease
    #[arg(long = "leader-elect-retry-period", value_name = "DURATION", default_value = "2s", value_parser = duration::parse)]
    retry_period: Duration,
    /// Name of the Lease [default: warmpool; with --pool-selector, warmpool- and a hash of the selector]
    #[arg(
        long = "leader-elect-resource-name",
        value_name = "NAME",
        value_parser = NonEmptyStringValueParser::new()
    )]
    name: Option<String>,
    /// Namespace of the Lease [default: the namespace of the operator's pod or of the kubeconfig context]
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
    fn settings(
        &self,
        client: &Client,
        pools: &ShardSelector,
    ) -> Result<Option<leader_election::Settings>, TimingError> {
        if !self.on {
            return Ok(None);
        }
        let default = client.default_namespace();
        Ok(Some(leader_election::Settings {
            name: self.name.clone().unwrap_or_else(|| default_lease(pools)),
            namespace: self.namespace.clone().unwrap_or_else(|| default.to_string()),
            identity: identity(),
            pools: pools.clone(),
            timing: Timing::new(self.lease_duration, self.renew_deadline, self.retry_period)?,
        }))
    }
}

/// The name of the pod or host, and a random part that distinguishes processes on the same host.
fn identity() -> String {
    let host = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    let location = std::env::var("POD_NAME").unwrap_or_else(|_| host());
    format!("{location}_{:016x}", rand::random::<u64>())
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    /// One readable line per event
    Text,
    /// One JSON object per line
    Json,
}

/// The operator did not start, or stopped without a signal.
#[derive(Debug, Error)]
pub enum ControllerError {
    /// The filter of `--log` is invalid.
    #[error(
        "--log {filter:?} is invalid ({source}); write a level like \"info\" or a filter like \"warmpool=debug\""
    )]
    Log {
        /// The value of the flag.
        filter: String,
        /// Cause.
        source: tracing_subscriber::filter::ParseError,
    },
    /// No cluster is known.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The durations of leader election contradict each other.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// The controllers ended without a signal.
    #[error(transparent)]
    Run(#[from] operator::RunError),
    /// The client could not be built.
    #[error("cannot build the client: {}", chain(.0))]
    Client(#[from] kube::Error),
    /// An address cannot be bound.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The runtime or the signal handlers could not be set up.
    #[error("cannot set up the runtime: {0}")]
    Runtime(#[from] std::io::Error),
}

/// Runs the operator until SIGTERM or SIGINT. Reports an error in the format of the log.
pub fn main(arguments: &Arguments) -> ExitCode {
    let Err(error) = run(arguments) else {
        return ExitCode::SUCCESS;
    };
    match arguments.log_format {
        LogFormat::Json if tracing::enabled!(Level::ERROR) => tracing::error!("{error}"),
        // The log is not set up yet, or it filters errors out.
        LogFormat::Json | LogFormat::Text => eprintln!("error: {error}"),
    }
    ExitCode::FAILURE
}

/// What the operator serves, for the log.
fn scope(namespace: Option<&str>, pools: &ShardSelector) -> String {
    let namespaces = namespace.map_or("all namespaces".to_string(), |name| format!("namespace {name}"));
    if pools.selects_all() {
        namespaces
    } else {
        format!("{namespaces}, pools with {pools}")
    }
}

/// Sets up the log, the endpoints and the client, and runs the controllers until a signal comes.
///
/// # Errors
/// See [`ControllerError`].
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
    // kube logs there every response that it cannot decode, including secrets.
    let filter = filter.and(filter_fn(|line| line.target() != "kube_client::client"));
    let log = tracing_subscriber::registry();
    match arguments.log_format {
        LogFormat::Text => log.with(lines.with_target(false).with_filter(filter)).init(),
        LogFormat::Json => log.with(lines.event_format(JsonLog).with_filter(filter)).init(),
    }
    block_on(async {
        // Before anything else, because the kernel does not end the first process of a container by a signal without a
        // handler.
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (shared, metrics) = (SharedCache::default(), Metrics::default());
        let options = ClientOptions {
            component: Component::Controller,
            read_timeout: Some(SILENCE),
            metrics: Some(metrics.requests.clone()),
        };
        let config = config(None, None).await?;
        let pools = arguments.pool_selector.clone().unwrap_or_default();
        let scope = scope(arguments.namespace.as_deref(), &pools);
        shared.lock().shard = pools.clone();
        tracing::info!(version = env!("CARGO_PKG_VERSION"), cluster = %config.cluster_url, scope, "starting");
        let client = client(config, options)?;
        let measured = exposition::routes(exposition::registry(&metrics, &shared));
        serve("metrics-bind-address", &arguments.metrics_bind_address, measured).await?;
        let health = readiness::routes(shared.clone(), metrics.requests.clone());
        serve(
            "health-probe-bind-address",
            &arguments.health_probe_bind_address,
            health,
        )
        .await?;
        let settings = operator::Settings {
            namespace: arguments.namespace.clone(),
            election: arguments.election.settings(&client, &pools)?,
            claim_events: arguments.claim_events,
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
