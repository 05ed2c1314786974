//! Sends the operator's own writes without an operator: the floor.
//!
//! The writes are the same, byte for byte, for claims that the benchmark POSTs. Each claim is served as it comes, and its
//! replacement is created at once. Near the limit of the machine an operator may be faster, because it chooses the order.

use crate::Outcome;
use crate::at_once::at_once;
use crate::lab::{POLL, REST};
use crate::load::{claim, claims};
use crate::scene::{POOL, Scene, template};
use crate::watches::{Pods, WatchedState};
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::Request;
use kube::{Api, Client};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use warmpool::api::labels;
use warmpool::executor::claim_status_body::claim_status_body;
use warmpool::executor::pod_patch::claiming_patch;
use warmpool::model::claim::Claim;
use warmpool::model::known_nodes::KnownNodes;
use warmpool::model::pool::Pool;
use warmpool::model::sandbox::Sandbox;
use warmpool::model::stored::{StoredClaim, StoredPod};
use warmpool::planner::claim::binding;

#[derive(Clone)]
pub struct Hand {
    client: Client,
    namespace: String,
    pool_uid: String,
    pods: Arc<WatchedState<Pods>>,
    created: Arc<AtomicUsize>,
}

impl Hand {
    /// Owns its pods through a Pool that no operator reconciles.
    pub async fn new(scene: &mut Scene) -> Outcome<Self> {
        let pool = scene.create_pool(0, template("image:1")).await?;
        Ok(Self {
            client: scene.client.clone(),
            namespace: scene.namespace.clone(),
            pool_uid: pool.metadata.uid.unwrap_or_default(),
            pods: scene.watch_pods(),
            created: Arc::default(),
        })
    }

    /// Creates as many pods as are missing to `count`, and waits until that many are available.
    pub async fn fill(&self, count: usize) -> Outcome<()> {
        let missing = count.saturating_sub(self.pods.with(|pods| pods.available.len()));
        at_once((0..missing).map(|_| self.create())).await?;
        self.available(count).await;
        Ok(())
    }

    /// Deletes the claims, waits until their pods are gone and all others are available, and rests as long as an operator does
    /// before a phase. Otherwise the garbage of one load would slow down the next.
    pub async fn rest(&self, scene: &Scene) -> Outcome<()> {
        claims(scene)
            .delete_collection(&DeleteParams::default(), &ListParams::default())
            .await?;
        scene
            .claims
            .state
            .until(|claims| claims.present.is_empty().then_some(()))
            .await;
        let pods: Api<StoredPod> = Api::namespaced(self.client.clone(), &self.namespace);
        let bound = ListParams::default()
            .labels(&format!("{}={}", labels::STATE, labels::CLAIMED))
            .limit(1);
        while !pods.list_metadata(&bound).await?.items.is_empty() {
            tokio::time::sleep(POLL).await;
        }
        self.pods
            .until(|pods| (pods.available.len() == pods.unclaimed.len()).then_some(()))
            .await;
        tokio::time::sleep(REST).await;
        Ok(())
    }

    /// Deletes `count` of the pods and creates another for each.
    pub async fn replace(&self, count: usize) -> Outcome<()> {
        let victims: Vec<_> = self
            .pods
            .with(|pods| (0..count).map_while(|_| pods.take()).collect());
        at_once(victims.into_iter().map(|victim| self.replace_one(victim))).await?;
        Ok(())
    }

    /// Waits until `count` pods are available.
    pub async fn available(&self, count: usize) {
        self.pods
            .until(|pods| (pods.available.len() >= count).then_some(()))
            .await;
    }

    async fn replace_one(&self, victim: Sandbox) -> Outcome<()> {
        let pods: Api<StoredPod> = Api::namespaced(self.client.clone(), &self.namespace);
        pods.delete(&victim.key.name, &DeleteParams::default()).await?;
        self.create().await
    }

    async fn create(&self) -> Outcome<()> {
        let number = self.created.fetch_add(1, Ordering::Relaxed);
        let pods: Api<StoredPod> = Api::namespaced(self.client.clone(), &self.namespace);
        let body = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": format!("{POOL}-by-hand-{number:05}"),
                "labels": {
                    "warmpool.dev/pool": POOL, "warmpool.dev/revision": "by-hand", "warmpool.dev/state": "warm",
                },
                "ownerReferences": [{
                    "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool", "name": POOL, "uid": self.pool_uid,
                    "controller": true, "blockOwnerDeletion": false,
                }],
            },
            "spec": template("image:1").get("spec"),
        });
        self.post::<StoredPod>(pods.resource_url(), serde_json::to_vec(&body)?)
            .await?;
        Ok(())
    }

    /// POSTs a claim for `replicas` sandboxes, binds them with one write each, and publishes them with one more.
    pub async fn serve(&self, name: &str, replicas: usize) -> Outcome<()> {
        let claims: Api<StoredClaim> = Api::namespaced(self.client.clone(), &self.namespace);
        let body = serde_json::to_vec(&claim(name, json!({"replicas": replicas}))?)?;
        let stored: StoredClaim = self.post(claims.resource_url(), body).await?;
        let claim = Claim::read(&stored, 0, Timestamp::now());
        let bound = at_once((0..replicas).map(|_| self.claim_pod(&claim))).await?;
        let spec = claim.resolved_spec(None);
        let status = binding(
            &claim,
            &spec,
            &bound,
            &KnownNodes::default(),
            |_| true,
            Timestamp::now(),
        );
        let body = serde_json::to_vec(&claim_status_body(&claim, &status))?;
        let request = Request::new(claims.resource_url());
        let request = request.replace_subresource("status", name, &PostParams::default(), body)?;
        self.client.request::<StoredClaim>(request).await?;
        Ok(())
    }

    /// Claims one of the available pods, and waits for one where there is none.
    async fn claim_pod(&self, claim: &Claim) -> Outcome<Arc<Sandbox>> {
        let pods: Api<StoredPod> = Api::namespaced(self.client.clone(), &self.namespace);
        let sandbox = self.pods.until(Pods::take).await;
        let patch = claiming_patch(claim, &sandbox, &Pool::default())?;
        let patch = Patch::Json::<()>(patch);
        let bound = pods
            .patch(&sandbox.key.name, &PatchParams::default(), &patch)
            .await?;
        let bound = Sandbox::read(&bound).ok_or("the bound pod has no labels")?;
        Ok(Arc::new(bound))
    }

    /// Serves a claim, for use as a load's `submit`. With `replace`, creates a replacement afterwards.
    pub fn submit(&self, replace: bool) -> impl Fn(String) -> BoxFuture<'static, Outcome<()>> + use<> {
        let hand = self.clone();
        move |name| {
            let hand = hand.clone();
            Box::pin(async move {
                hand.serve(&name, 1).await?;
                if replace {
                    hand.create().await?;
                }
                Ok(())
            })
        }
    }

    async fn post<K: serde::de::DeserializeOwned>(&self, url: &str, body: Vec<u8>) -> Outcome<K> {
        let request = Request::new(url).create(&PostParams::default(), body)?;
        Ok(self.client.request(request).await?)
    }
}
