//! Creates one namespace with one pool, and removes it.

use crate::Outcome;
use crate::at_once::AT_ONCE;
use crate::lab::{Lab, POLL, REST};
use crate::operator::Operator;
use crate::watches::{Claims, Pods, Watched, WatchedState, watch_all};
use futures::{StreamExt, stream};
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::sync::Arc;
use warmpool::api::{Pool, labels};
use warmpool::model::sandbox::Sandbox;
use warmpool::model::stored::{StoredClaim, StoredPod};

pub const POOL: &str = "pool";

/// Objects that are deleted before the next are listed.
const PAGE: u32 = 1_000;

pub struct Scene {
    pub client: Client,
    pub namespace: String,
    pub claims: Watched<Claims>,
    /// Set only where pods are measured, because a second watch costs processor time.
    pub pods: Option<Watched<Pods>>,
    pub operator: Option<Operator>,
    /// Claims that wait for other pools. They stay until the scene is closed.
    pub waiting: usize,
    protects: bool,
}

impl Scene {
    /// Creates an empty namespace and watches its claims. Starts no operator.
    pub async fn open(lab: &Lab<'_>, name: &str) -> Outcome<Self> {
        let client = lab.client.clone();
        // A phase runs several times, and the namespace of the last time may not be gone yet.
        let object = serde_json::from_value(json!({"metadata": {"generateName": format!("bench-{name}-")}}))?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let created = namespaces.create(&PostParams::default(), &object).await?;
        let namespace = created.metadata.name.unwrap_or_default();
        // The API server rejects pods until the namespace has its ServiceAccount.
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &namespace);
        while accounts.get_opt("default").await?.is_none() {
            tokio::time::sleep(POLL).await;
        }
        let claims = watch_all(Api::<StoredClaim>::namespaced(client.clone(), &namespace));
        Ok(Self {
            client,
            namespace,
            claims,
            pods: None,
            operator: None,
            waiting: 0,
            protects: lab.protects,
        })
    }

    /// Starts an operator and creates a pool, and waits until the pool is full and at rest.
    pub async fn at_rest(lab: &Lab<'_>, name: &str, replicas: usize) -> Outcome<Self> {
        Self::served_by(lab.start_operator(name)?, lab, name, replicas).await
    }

    /// The same with an operator that was started before.
    pub async fn served_by(operator: Operator, lab: &Lab<'_>, name: &str, replicas: usize) -> Outcome<Self> {
        let mut scene = Self::open(lab, name).await?;
        scene.operator = Some(operator);
        scene.create_pool(replicas, template("image:1")).await?;
        scene.rest().await?;
        Ok(scene)
    }

    /// The operator that runs.
    pub fn operator(&self) -> Outcome<&Operator> {
        Ok(self.operator.as_ref().ok_or("no operator")?)
    }

    /// Starts to watch the pods.
    pub fn watch_pods(&mut self) -> Arc<WatchedState<Pods>> {
        let api: Api<StoredPod> = Api::namespaced(self.client.clone(), &self.namespace);
        let watched = watch_all(api);
        let state = Arc::clone(&watched.state);
        self.pods = Some(watched);
        state
    }

    pub fn pools(&self) -> Api<Pool> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Creates the pool that the scene is about.
    pub async fn create_pool(&self, replicas: usize, template: Value) -> Outcome<Pool> {
        self.create_pool_named(POOL, replicas, template).await
    }

    pub async fn create_pool_named(&self, name: &str, replicas: usize, template: Value) -> Outcome<Pool> {
        let mut spec = json!({
            "replicas": replicas,
            "template": template,
            "updateStrategy": {"maxUnavailable": "25%"},
        });
        if !self.protects {
            json_patch::merge(&mut spec, &without_budgets());
        }
        let pool = serde_json::from_value(json!({
            "apiVersion": "warmpool.dev/v1alpha1",
            "kind": "Pool",
            "metadata": {"name": name},
            "spec": spec,
        }))?;
        Ok(self.pools().create(&PostParams::default(), &pool).await?)
    }

    pub async fn change_pool(&self, spec: Value) -> Outcome<()> {
        self.change_pool_named(POOL, spec).await
    }

    pub async fn change_pool_named(&self, name: &str, spec: Value) -> Outcome<()> {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.pools().patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits until the pool is full and no claim is left but those that wait for other pools, both at once and after [`REST`].
    pub async fn rest(&mut self) -> Outcome<()> {
        loop {
            self.until_full_without_claims().await?;
            tokio::time::sleep(REST).await;
            if self.is_full_without_claims().await? {
                return Ok(());
            }
        }
    }

    async fn until_full_without_claims(&mut self) -> Outcome<()> {
        while !self.is_full_without_claims().await? {
            if let Some(operator) = &mut self.operator {
                operator.is_running()?;
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Waits until `replicas` sandboxes are available, whatever claims hold. Counts pods, because the status is written at most
    /// once a second.
    pub async fn until_refilled(&self, replicas: usize) -> Outcome<()> {
        let pods: Api<StoredPod> = Api::namespaced(self.client.clone(), &self.namespace);
        let warm = ListParams::default()
            .labels(&format!("{}={}", labels::STATE, labels::WARM))
            .match_any();
        let is_ready =
            |pod: &StoredPod| Sandbox::read(pod).is_some_and(|sandbox| sandbox.ready_since.is_some());
        while pods.list(&warm).await?.iter().filter(|pod| is_ready(pod)).count() < replicas {
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    async fn is_full_without_claims(&self) -> Outcome<bool> {
        let pool = self.pools().get(POOL).await?;
        let status = pool.status.unwrap_or_default();
        let full = status.observed_generation == pool.metadata.generation.unwrap_or_default()
            && status.available == pool.spec.replicas
            && status.updated == pool.spec.replicas
            && status.total == pool.spec.replicas
            && status.pending_claims == 0;
        let left = self.claims.state.with(|claims| claims.present.len());
        Ok(full && left == self.waiting)
    }

    /// Ends the operator and deletes all objects, and waits until what they owned is collected, so that the next phase has the
    /// machine to itself.
    pub async fn close(mut self) -> Outcome<()> {
        drop(self.operator.take());
        self.delete_all::<StoredClaim>().await?;
        self.delete_all::<Pool>().await?;
        self.delete_all::<StoredPod>().await?;
        self.until_collected::<ControllerRevision>().await?;
        self.until_collected::<PodDisruptionBudget>().await
    }

    async fn until_collected<K>(&self) -> Outcome<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let objects: Api<K> = Api::namespaced(self.client.clone(), &self.namespace);
        let first = ListParams::default().limit(1);
        while !objects.list_metadata(&first).await?.items.is_empty() {
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Deletes all objects of a kind. One by one: the API server gives up the deletion of a collection after a minute. What could not
    /// be deleted is tried again, until the time limit of the phase.
    async fn delete_all<K>(&self) -> Outcome<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let objects: Api<K> = Api::namespaced(self.client.clone(), &self.namespace);
        let delete = DeleteParams::default().grace_period(0);
        loop {
            let page = ListParams::default().limit(PAGE);
            let left = objects.list_metadata(&page).await?.items;
            if left.is_empty() {
                return Ok(());
            }
            let names = left.into_iter().filter_map(|object| object.metadata.name);
            let deletions = names.map(|name| {
                let (objects, delete) = (&objects, &delete);
                async move { objects.delete(&name, delete).await }
            });
            let answers: Vec<_> = stream::iter(deletions).buffer_unordered(AT_ONCE).collect().await;
            let is_gone =
                |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.code == 404);
            for error in answers.into_iter().filter_map(Result::err) {
                if !is_gone(&error) {
                    println!("  a deletion is tried again: {error}");
                }
            }
        }
    }
}

/// The fields of a pool's spec that leave out its PodDisruptionBudgets and those of its claims.
pub fn without_budgets() -> Value {
    json!({"disruption": {"podDisruptionBudget": false}, "claimDefaults": {"disruption": "Allow"}})
}

/// The template of a phase's pods. KWOK makes them Ready at once.
pub fn template(image: &str) -> Value {
    json!({"spec": {"containers": [{"name": "sandbox", "image": image}]}})
}
