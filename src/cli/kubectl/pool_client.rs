//! Sends the requests about one pool.

use crate::api::{self, labels};
use crate::cli::kubectl::cluster::{Cluster, ClusterError};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject};
use serde_json::Value;

/// Field manager of the patches, in `metadata.managedFields`. kubectl uses this name for its rollout verbs.
const FIELD_MANAGER: &str = "kubectl-rollout";

/// A client for one pool and its ControllerRevisions.
pub(super) struct PoolClient {
    /// Name of the pool.
    pub(super) name: String,
    /// The pools of the namespace.
    pub(super) pools: Api<DynamicObject>,
    /// The cluster and the namespace.
    pub(super) cluster: Cluster,
    revisions: Api<ControllerRevision>,
}

impl PoolClient {
    /// A client for the pool `name`. Sends no request.
    pub(super) fn new(cluster: Cluster, name: &str) -> Self {
        let (client, namespace) = (&cluster.client, &cluster.namespace);
        let kind = ApiResource::erase::<api::Pool>(&());
        Self {
            name: name.into(),
            pools: Api::namespaced_with(client.clone(), namespace, &kind),
            revisions: Api::namespaced(client.clone(), namespace),
            cluster,
        }
    }

    /// Reads the pool.
    pub(super) async fn pool(&self) -> Result<DynamicObject, ClusterError> {
        self.cluster.ask(self.pools.get(&self.name)).await
    }

    /// Lists the revisions with the label of the pool. Some may belong to a deleted pool of the same name.
    pub(super) async fn revisions(&self) -> Result<Vec<ControllerRevision>, ClusterError> {
        let parameters = ListParams::default().labels(&format!("{}={}", labels::POOL, self.name));
        Ok(self.cluster.ask(self.revisions.list(&parameters)).await?.items)
    }

    /// Patches the pool and returns the new version. With `dry_run` the API server stores nothing.
    pub(super) async fn patch(
        &self,
        patch: &Patch<Value>,
        dry_run: bool,
    ) -> Result<DynamicObject, ClusterError> {
        let parameters = PatchParams {
            dry_run,
            field_manager: Some(FIELD_MANAGER.into()),
            ..PatchParams::default()
        };
        self.cluster
            .ask(self.pools.patch(&self.name, &parameters, patch))
            .await
    }
}
