//! One pool of one cluster, and the requests about it.

use super::Connection;
use super::pool::PoolName;
use crate::api::{self, labels};
use crate::apply::outcome::{CallError, call};
use crate::observe::feed::chain;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::api::{ListParams, Patch, PatchParams};
use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::core::{ApiResource, DynamicObject, Status};
use kube::runtime::watcher;
use kube::{Api, Client, Config};
use serde_json::Value;
use thiserror::Error;

/// How the words of the API server begin, as kubectl prints them.
pub(super) const FROM_SERVER: &str = "Error from server";

/// Who has written a field, in `metadata.managedFields`; kubectl's name for its own rollout verbs.
const FIELD_MANAGER: &str = "kubectl-rollout";

/// Why a request has no useful answer.
#[derive(Debug, Error)]
pub enum SessionError {
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

/// One pool, and the client to reach it.
pub(super) struct Session {
    /// Name of the pool.
    pub(super) name: String,
    /// The pools of its namespace.
    pub(super) pools: Api<DynamicObject>,
    revisions: Api<ControllerRevision>,
    url: String,
}

impl Session {
    /// Makes ready to reach the pool `name`; asks nothing yet.
    pub(super) async fn open(connection: &Connection, name: &PoolName) -> Result<Self, SessionError> {
        let options = KubeConfigOptions {
            context: connection.context.clone(),
            ..KubeConfigOptions::default()
        };
        let mut config = match &connection.kubeconfig {
            Some(path) => Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &options).await?,
            None if options.context.is_some() => Config::from_kubeconfig(&options).await?,
            None => Config::infer().await?,
        };
        // A user wants to see a refusal, not to wait for a retry.
        config.default_retry = false;
        let url = config.cluster_url.to_string();
        let namespace = connection.namespace.as_ref().unwrap_or(&config.default_namespace);
        let namespace = namespace.clone();
        let client = Client::try_from(config).map_err(SessionError::Client)?;
        let kind = ApiResource::erase::<api::Pool>(&());
        Ok(Self {
            name: name.0.clone(),
            pools: Api::namespaced_with(client.clone(), &namespace, &kind),
            revisions: Api::namespaced(client, &namespace),
            url,
        })
    }

    /// The pool as it is now.
    pub(super) async fn pool(&self) -> Result<DynamicObject, SessionError> {
        call(self.pools.get(&self.name)).await.map_err(|e| self.wrong(e))
    }

    /// All revisions that bear the pool's name.
    pub(super) async fn revisions(&self) -> Result<Vec<ControllerRevision>, SessionError> {
        let parameters = ListParams::default().labels(&format!("{}={}", labels::POOL, self.name));
        let list = call(self.revisions.list(&parameters)).await;
        Ok(list.map_err(|e| self.wrong(e))?.items)
    }

    /// Changes the pool, and gives what it is now. With `dry_run` nothing is stored.
    pub(super) async fn patch(
        &self,
        patch: &Patch<Value>,
        dry_run: bool,
    ) -> Result<DynamicObject, SessionError> {
        let parameters = PatchParams {
            dry_run,
            field_manager: Some(FIELD_MANAGER.into()),
            ..PatchParams::default()
        };
        call(self.pools.patch(&self.name, &parameters, patch))
            .await
            .map_err(|e| self.wrong(e))
    }

    /// Lets a watch that broke off begin again, unless the API server refuses it.
    pub(super) fn survive(&self, error: watcher::Error) -> Result<(), SessionError> {
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

    fn wrong(&self, error: CallError) -> SessionError {
        match error {
            // What has no such reason is no answer about an object, but about the path.
            CallError::Kube(kube::Error::Api(status))
                if status.code == 404 && status.reason != "NotFound" =>
            {
                SessionError::NoPools
            }
            CallError::Kube(kube::Error::Api(status)) => SessionError::Refused(status),
            source => SessionError::NoAnswer {
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
