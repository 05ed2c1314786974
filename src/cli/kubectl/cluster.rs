//! The cluster and namespace that a call is about, and what its answers mean.

use crate::cache::index::Index;
use crate::cli::kubectl::Connection;
use crate::cli::live;
use crate::client::call::{CallError, call};
use crate::client::connect;
use crate::client::connect::{ClientOptions, ConfigError};
use crate::client::error_chain::chain;
use crate::client::identity::Component;
use kube::Client;
use kube::config::{InferConfigError, KubeconfigError};
use kube::core::Status;
use kube::runtime::watcher;
use thiserror::Error;

/// How the words of the API server begin, as kubectl prints them.
pub(super) const FROM_SERVER: &str = "Error from server";

/// Why a request has no useful answer.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig cannot be used: {0}")]
    Kubeconfig(#[from] KubeconfigError),
    /// Neither a kubeconfig nor a ServiceAccount was found.
    #[error("no cluster to connect to, name one with --kubeconfig or --context: {0}")]
    NoCluster(#[from] InferConfigError),
    /// The client could not be made.
    #[error("the client could not be made: {}", chain(.0))]
    Client(#[source] kube::Error),
    /// The API server does not know the kind.
    #[error("the server doesn't have a resource type \"pools\"; are the CRDs of warmpool installed?")]
    NoPools,
    /// The API server refuses.
    #[error("{FROM_SERVER}{}: {}", reason(.0), .0.message)]
    Refused(#[source] Box<Status>),
    /// There was no answer.
    #[error("the API server at {url} could not be asked: {}", chain(source))]
    NoAnswer {
        /// Its address.
        url: String,
        /// Why.
        source: CallError,
    },
}

/// One namespace of a cluster, and the client to reach it.
pub(super) struct Cluster {
    /// The client.
    pub(super) client: Client,
    /// The namespace.
    pub(super) namespace: String,
    url: String,
}

impl Cluster {
    /// Makes ready to reach the cluster; asks nothing yet.
    pub(super) async fn open(connection: &Connection) -> Result<Self, ClusterError> {
        let kubeconfig = connection.kubeconfig.as_deref();
        let config = connect::config(kubeconfig, connection.context.as_deref())
            .await
            .map_err(|error| match error {
                ConfigError::Kubeconfig(source) => ClusterError::Kubeconfig(source),
                ConfigError::NoCluster(source) => ClusterError::NoCluster(source),
            })?;
        let url = config.cluster_url.to_string();
        let namespace = connection.namespace.as_ref().unwrap_or(&config.default_namespace);
        let namespace = namespace.clone();
        let client =
            connect::client(config, ClientOptions::of(Component::Kubectl)).map_err(ClusterError::Client)?;
        Ok(Self {
            client,
            namespace,
            url,
        })
    }

    /// Sends a request and waits for the answer.
    pub(super) async fn ask<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, ClusterError> {
        call(request).await.map_err(|e| self.wrong(e))
    }

    /// Everything of the namespace that the planner looks at.
    pub(super) async fn read(&self) -> Result<Index, ClusterError> {
        let index = live::read(&self.client, Some(&self.namespace)).await;
        index.map_err(|e| self.wrong(e))
    }

    /// Lets a watch that broke off begin again, unless the API server refuses it.
    pub(super) fn survive(&self, error: watcher::Error) -> Result<(), ClusterError> {
        let (watcher::Error::InitialListFailed(source) | watcher::Error::WatchStartFailed(source)) = error
        else {
            return Ok(());
        };
        match source {
            kube::Error::Api(status) if matches!(status.code, 401 | 403 | 404) => {
                Err(self.wrong(kube::Error::Api(status).into()))
            }
            other => {
                eprintln!("Warning: the watch is tried again: {}", chain(&other));
                Ok(())
            }
        }
    }

    fn wrong(&self, error: CallError) -> ClusterError {
        match error {
            // What has no such reason is no answer about an object, but about the path.
            CallError::Kube(kube::Error::Api(status))
                if status.code == 404 && status.reason != "NotFound" =>
            {
                ClusterError::NoPools
            }
            CallError::Kube(kube::Error::Api(status)) => ClusterError::Refused(status),
            source => ClusterError::NoAnswer {
                url: self.url.clone(),
                source,
            },
        }
    }
}

fn reason(status: &Status) -> String {
    if status.reason.is_empty() {
        String::new()
    } else {
        format!(" ({})", status.reason)
    }
}
