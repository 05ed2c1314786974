//! Builds the kube client of the operator, `warmpool plan` and the plugin.

use crate::client::count_requests::CountRequests;
use crate::client::identity::{Component, Identify};
use crate::client::retry_after::with_status;
use crate::client::utf8::as_text;
use crate::telemetry::metrics::requests::RequestMetrics;
use axum::http::Response;
use kube::client::ClientBuilder;
use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use std::path::Path;
use std::time::Duration;
use thiserror::Error;
use tower::util::MapResponseLayer;

/// Why no cluster is known.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig cannot be used: {0}")]
    Kubeconfig(#[from] KubeconfigError),
    /// Neither a kubeconfig nor a ServiceAccount was found.
    #[error("no cluster to connect to: {0}")]
    NoCluster(#[from] InferConfigError),
}

/// What differs between the clients of this program.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The sender.
    pub component: Component,
    /// Longest silence on a connection; `None`: no limit. A list or watch has no other limit.
    pub read_timeout: Option<Duration>,
    /// Counts the requests.
    pub metrics: Option<RequestMetrics>,
}

impl ClientOptions {
    /// Options without limits and metrics, for a command that ends soon.
    pub fn of(component: Component) -> Self {
        Self {
            component,
            read_timeout: None,
            metrics: None,
        }
    }
}

/// The cluster that kubectl's flags name. Without flags: that of the current kubeconfig context, or of the
/// ServiceAccount.
///
/// # Errors
/// When the kubeconfig cannot be used or no cluster is found.
pub async fn config(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Config, ConfigError> {
    let options = KubeConfigOptions {
        context: context.map(ToString::to_string),
        ..KubeConfigOptions::default()
    };
    match kubeconfig {
        Some(path) => Ok(Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &options).await?),
        None if context.is_some() => Ok(Config::from_kubeconfig(&options).await?),
        None => Ok(Config::infer().await?),
    }
}

/// A client for the cluster of `config`. It sends no request yet.
///
/// # Errors
/// When TLS or the authentication of `config` cannot be set up.
pub fn client(mut config: Config, options: ClientOptions) -> Result<Client, kube::Error> {
    // kube-rs repeats any verb for minutes by default; here the caller decides what an error means.
    config.default_retry = false;
    if options.read_timeout.is_some() {
        config.read_timeout = options.read_timeout;
        // A connection may have been idle before: the limit counts from the last byte sent or received.
        config.reset_reader_on_write = true;
    }
    let repair = MapResponseLayer::new(|answer: Response<_>| with_status(answer).map(as_text));
    let builder = ClientBuilder::try_from(config)?
        .with_layer(&repair)
        .with_layer(&Identify(options.component));
    Ok(match options.metrics {
        Some(metrics) => builder.with_layer(&CountRequests(metrics)).build(),
        None => builder.build(),
    })
}
