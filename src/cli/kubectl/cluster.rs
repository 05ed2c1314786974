//! Connects to the cluster and classifies errors of requests.

use crate::cache::index::Index;
use crate::cli::kubectl::connection::Connection;
use crate::cli::list_objects;
use crate::client::call::call_within;
use crate::client::connect::{self, ClientOptions, ConfigError};
use crate::client::error_chain::chain;
use crate::client::identity::Component;
use crate::client::request_errors::CallError;
use crate::model::Key;
use kube::api::{ListParams, ObjectMeta};
use kube::config::{InferConfigError, KubeconfigError};
use kube::core::Status;
use kube::core::{ApiResource, DynamicObject};
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use std::time::Duration;
use thiserror::Error;

/// Prefix of an error from the API server, as in kubectl.
pub(super) const FROM_SERVER: &str = "Error from server";

/// A request failed, or could not be sent.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig cannot be used: {0}")]
    Kubeconfig(#[from] KubeconfigError),
    /// Neither a kubeconfig nor a ServiceAccount was found.
    #[error("no cluster to connect to; set --kubeconfig or --context: {0}")]
    NoCluster(#[from] InferConfigError),
    /// The client could not be built from the kubeconfig.
    #[error("cannot build a client from the kubeconfig: {}", chain(.0))]
    Client(#[source] kube::Error),
    /// The API server does not serve the kind.
    #[error(
        "the server doesn't have a resource type \"pools\"; install the CRDs with 'warmpool crds | kubectl apply -f -'"
    )]
    NoPools,
    /// The API server answered with an error.
    #[error("{FROM_SERVER}{}: {}", reason(.0), .0.message)]
    Rejected(#[source] Box<Status>),
    /// Several rights are missing. Holds the API server's message about each.
    #[error("{FROM_SERVER} (Forbidden): {}", .0.join(&format!("\n{FROM_SERVER} (Forbidden): ")))]
    Forbidden(Vec<String>),
    /// No answer came, so whether a write took effect is unknown.
    #[error("no answer from the API server at {url}: {}", chain(source))]
    NoAnswer {
        /// Address of the API server.
        url: String,
        /// Cause.
        source: CallError,
    },
}

/// A client for one namespace of a cluster.
#[derive(Clone)]
pub struct Cluster {
    /// The client.
    pub(super) client: Client,
    /// The namespace.
    pub namespace: String,
    url: String,
    /// Longest wait for one answer; zero: no limit.
    deadline: Duration,
}

impl Cluster {
    /// Builds a client from the kubeconfig. Sends no request.
    pub async fn open(connection: &Connection) -> Result<Self, ClusterError> {
        Self::open_as(connection, Component::Kubectl).await
    }

    /// As [`Cluster::open`], with the name of another sender in the requests.
    pub async fn open_as(connection: &Connection, component: Component) -> Result<Self, ClusterError> {
        let kubeconfig = connection.kubeconfig.as_deref();
        let mut config = connect::config(kubeconfig, connection.context.as_deref())
            .await
            .map_err(|error| match error {
                ConfigError::Kubeconfig(source) => ClusterError::Kubeconfig(source),
                ConfigError::NoCluster(source) => ClusterError::NoCluster(source),
            })?;
        if let Some(user) = &connection.as_user {
            config.auth_info.impersonate = Some(user.clone());
            config.auth_info.impersonate_groups = Some(connection.as_group.clone());
        }
        let url = config.cluster_url.to_string();
        let namespace = connection.namespace.as_ref().unwrap_or(&config.default_namespace);
        let namespace = namespace.clone();
        let client = connect::client(config, ClientOptions::of(component)).map_err(ClusterError::Client)?;
        Ok(Self {
            client,
            namespace,
            url,
            deadline: connection.deadline(),
        })
    }

    /// The objects of a kind in the namespace, as JSON.
    pub(super) fn objects<K: Resource<DynamicType = ()>>(&self) -> Api<DynamicObject> {
        Api::namespaced_with(
            self.client.clone(),
            &self.namespace,
            &ApiResource::erase::<K>(&()),
        )
    }

    /// Names of the objects of a kind with these labels, in `namespace` or, for `None`, in all namespaces.
    pub(super) async fn named_with<K: Resource<DynamicType = ()>>(
        &self,
        namespace: Option<&str>,
        labels: &str,
    ) -> Result<Vec<Key>, ClusterError> {
        let kind = ApiResource::erase::<K>(&());
        let objects: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &kind),
            None => Api::all_with(self.client.clone(), &kind),
        };
        let parameters = ListParams::default().labels(labels);
        let listed = self.ask(objects.list_metadata(&parameters)).await?;
        let key = |metadata: ObjectMeta| Some(Key::new(metadata.namespace?, metadata.name?));
        Ok(listed
            .items
            .into_iter()
            .filter_map(|object| key(object.metadata))
            .collect())
    }

    /// Sends a request and waits for the answer.
    pub(super) async fn ask<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, ClusterError> {
        call_within(self.deadline, request)
            .await
            .map_err(|e| self.classify(e))
    }

    /// Reads every object of the namespace that the planner uses.
    pub(super) async fn read(&self) -> Result<Index, ClusterError> {
        self.read_of(Some(&self.namespace)).await
    }

    /// Reads every object of `namespace`, or of all namespaces for `None`, that the planner uses.
    ///
    /// # Errors
    /// The error of the first list that failed; [`ClusterError::Forbidden`] with every list that is not allowed.
    pub async fn read_of(&self, namespace: Option<&str>) -> Result<Index, ClusterError> {
        let read = list_objects::read(&self.client, namespace, self.deadline).await;
        read.map_err(|mut errors| match errors.len() {
            1 => errors
                .pop()
                .map_or(ClusterError::NoPools, |error| self.classify(error)),
            _ => ClusterError::Forbidden(errors.iter().map(CallError::message).collect()),
        })
    }

    /// Returns an error of a watch that a retry cannot fix. Prints a warning about other failed starts.
    pub(super) fn check_watch_error(&self, error: watcher::Error) -> Result<(), ClusterError> {
        let (watcher::Error::InitialListFailed(source) | watcher::Error::WatchStartFailed(source)) = error
        else {
            return Ok(());
        };
        match source {
            kube::Error::Api(status) if matches!(status.code, 401 | 403 | 404) => {
                Err(self.classify(kube::Error::Api(status).into()))
            }
            other => {
                eprintln!("Warning: retrying the watch: {}", chain(&other));
                Ok(())
            }
        }
    }

    fn classify(&self, error: CallError) -> ClusterError {
        match error {
            // A 404 about an object has the reason NotFound; a 404 about an unknown path has none.
            CallError::Kube(kube::Error::Api(status))
                if status.code == 404 && status.reason != "NotFound" =>
            {
                ClusterError::NoPools
            }
            CallError::Kube(kube::Error::Api(status)) => ClusterError::Rejected(status),
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
