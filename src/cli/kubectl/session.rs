//! One pool of one cluster, and the requests about it.

use crate::api;
use crate::api::labels;
use crate::cli::kubectl::Connection;
use crate::cli::kubectl::cluster::{Cluster, ClusterError};
use crate::cli::kubectl::pool::PoolName;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject};
use serde_json::Value;

/// Who has written a field, in `metadata.managedFields`; kubectl's name for its own rollout verbs.
const FIELD_MANAGER: &str = "kubectl-rollout";

/// One pool, and the way to reach it.
pub(super) struct Session {
    /// Name of the pool.
    pub(super) name: String,
    /// The pools of its namespace.
    pub(super) pools: Api<DynamicObject>,
    /// Its cluster and namespace.
    pub(super) cluster: Cluster,
    revisions: Api<ControllerRevision>,
}

impl Session {
    /// Makes ready to reach the pool `name`; asks nothing yet.
    pub(super) async fn open(connection: &Connection, name: &PoolName) -> Result<Self, ClusterError> {
        let cluster = Cluster::open(connection).await?;
        let (client, namespace) = (&cluster.client, &cluster.namespace);
        let kind = ApiResource::erase::<api::Pool>(&());
        Ok(Self {
            name: name.0.clone(),
            pools: Api::namespaced_with(client.clone(), namespace, &kind),
            revisions: Api::namespaced(client.clone(), namespace),
            cluster,
        })
    }

    /// The pool as it is now.
    pub(super) async fn pool(&self) -> Result<DynamicObject, ClusterError> {
        self.cluster.ask(self.pools.get(&self.name)).await
    }

    /// All revisions that bear the pool's name.
    pub(super) async fn revisions(&self) -> Result<Vec<ControllerRevision>, ClusterError> {
        let parameters = ListParams::default().labels(&format!("{}={}", labels::POOL, self.name));
        Ok(self.cluster.ask(self.revisions.list(&parameters)).await?.items)
    }

    /// Changes the pool, and gives what it is now. With `dry_run` nothing is stored.
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
