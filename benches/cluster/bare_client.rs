//! The least that a kube-rs client does for a claim: the operator's three requests and its watches, without its decisions.
//!
//! It runs in place of the operator, as a process of its own, so its processor time compares with the operator's. It
//! creates the sandboxes of a pool once, binds any of them to a claim, publishes it and creates another. It decodes only
//! what that takes, skips the answers of its requests, checks nothing and survives no error.

use crate::Outcome;
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::{Node, Pod, PodTemplate};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::Request;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Config, Resource};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::process::ExitCode;
use warmpool::api::{Pool, SandboxClaim, labels};

/// Requests in flight while the pool is filled.
const AT_ONCE: usize = 16;

/// Serves claims until it is killed.
pub fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = runtime
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(run()));
    if let Err(error) = outcome {
        eprintln!("error: {error}");
    }
    ExitCode::FAILURE
}

async fn run() -> Outcome<()> {
    let mut config = Config::infer().await?;
    config.default_retry = false;
    let client = Client::try_from(config)?;
    let (events, seen) = unbounded();
    let watches: [BoxFuture<'static, ()>; 7] = [
        Box::pin(watch::<BarePool>(client.clone(), events.clone(), "")),
        Box::pin(watch::<BareClaim>(client.clone(), events.clone(), "")),
        Box::pin(watch::<BarePod>(client.clone(), events.clone(), labels::POOL)),
        Box::pin(watch::<Named<ControllerRevision>>(
            client.clone(),
            events.clone(),
            labels::POOL,
        )),
        Box::pin(watch::<Named<PodTemplate>>(client.clone(), events.clone(), "")),
        Box::pin(watch::<Named<PodDisruptionBudget>>(
            client.clone(),
            events.clone(),
            "",
        )),
        Box::pin(watch::<Named<Node>>(client.clone(), events, "")),
    ];
    for watch in watches {
        drop(tokio::spawn(watch));
    }
    Server::new(client).run(seen).await
}

/// What matters of an event.
enum Seen {
    Pool(BarePool),
    Claim(BareClaim),
    Pod(BarePod),
    Nothing,
}

async fn watch<K>(client: Client, events: UnboundedSender<Seen>, selector: &str)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static + Into<Seen>,
{
    let config = watcher::Config::default().labels(selector).timeout(20);
    let mut watch = kube::runtime::watcher(Api::<K>::all(client), config).boxed();
    while let Some(event) = watch.next().await {
        if let Ok(Event::Apply(object) | Event::InitApply(object)) = event {
            _ = events.unbounded_send(object.into());
        }
    }
}

#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = Pool)]
struct BarePool {
    #[serde(deserialize_with = "metadata")]
    metadata: ObjectMeta,
    spec: PoolSpec,
}

#[derive(Clone, Debug, Deserialize)]
struct PoolSpec {
    replicas: usize,
    template: Value,
}

#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = SandboxClaim)]
struct BareClaim {
    #[serde(deserialize_with = "metadata")]
    metadata: ObjectMeta,
    status: Option<IgnoredAny>,
}

#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = Pod)]
struct BarePod {
    #[serde(deserialize_with = "metadata")]
    metadata: ObjectMeta,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

/// An object of which nothing but its name is read.
#[derive(Clone, Debug, Deserialize)]
#[serde(bound = "")]
struct Named<K> {
    #[serde(deserialize_with = "metadata")]
    metadata: ObjectMeta,
    #[serde(skip)]
    kind: std::marker::PhantomData<K>,
}

impl<K: Resource<DynamicType = ()>> Resource for Named<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind(_: &()) -> std::borrow::Cow<'_, str> {
        K::kind(&())
    }
    fn group(_: &()) -> std::borrow::Cow<'_, str> {
        K::group(&())
    }
    fn version(_: &()) -> std::borrow::Cow<'_, str> {
        K::version(&())
    }
    fn plural(_: &()) -> std::borrow::Cow<'_, str> {
        K::plural(&())
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The few fields of metadata that are read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: Option<String>,
    uid: String,
    resource_version: String,
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
}

fn metadata<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error> {
    let read = Metadata::deserialize(from)?;
    Ok(ObjectMeta {
        name: Some(read.name),
        namespace: read.namespace,
        uid: Some(read.uid),
        resource_version: Some(read.resource_version),
        generation: read.generation,
        labels: read.labels,
        ..ObjectMeta::default()
    })
}

impl From<BarePool> for Seen {
    fn from(pool: BarePool) -> Self {
        Self::Pool(pool)
    }
}

impl From<BareClaim> for Seen {
    fn from(claim: BareClaim) -> Self {
        Self::Claim(claim)
    }
}

impl From<BarePod> for Seen {
    fn from(pod: BarePod) -> Self {
        Self::Pod(pod)
    }
}

impl<K> From<Named<K>> for Seen {
    fn from(_: Named<K>) -> Self {
        Self::Nothing
    }
}

/// Names of an object in requests.
#[derive(Clone)]
struct Object {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
}

impl Object {
    fn of(metadata: ObjectMeta) -> Self {
        Self {
            name: metadata.name.unwrap_or_default(),
            namespace: metadata.namespace.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            resource_version: metadata.resource_version.unwrap_or_default(),
        }
    }
}

struct Server {
    client: Client,
    pool: Option<(BarePool, Object)>,
    created: usize,
    is_full: bool,
    available: BTreeMap<String, Object>,
    /// UIDs of claims and available pods that were seen before.
    known: HashSet<String>,
    waiting: VecDeque<Object>,
}

impl Server {
    fn new(client: Client) -> Self {
        Self {
            client,
            pool: None,
            created: 0,
            is_full: false,
            available: BTreeMap::new(),
            known: HashSet::new(),
            waiting: VecDeque::new(),
        }
    }

    async fn run(mut self, mut seen: UnboundedReceiver<Seen>) -> Outcome<()> {
        while let Some(seen) = seen.next().await {
            match seen {
                Seen::Pool(pool) if self.pool.is_none() => self.fill(pool).await?,
                Seen::Claim(claim) if claim.status.is_none() => {
                    let claim = Object::of(claim.metadata);
                    if self.known.insert(claim.uid.clone()) {
                        self.waiting.push_back(claim);
                    }
                }
                Seen::Pod(pod) => self.apply_pod(pod).await?,
                Seen::Pool(_) | Seen::Claim(_) | Seen::Nothing => {}
            }
            self.serve();
        }
        Ok(())
    }

    /// Creates the sandboxes of the pool.
    async fn fill(&mut self, pool: BarePool) -> Outcome<()> {
        let object = Object::of(pool.metadata.clone());
        let count = pool.spec.replicas;
        self.pool = Some((pool, object));
        let creations: Vec<_> = (0..count).filter_map(|_| self.creation()).collect();
        let mut done = futures::stream::iter(creations).buffer_unordered(AT_ONCE);
        while let Some(created) = done.next().await {
            created?;
        }
        Ok(())
    }

    async fn apply_pod(&mut self, pod: BarePod) -> Outcome<()> {
        let is_warm = pod
            .metadata
            .labels
            .as_ref()
            .and_then(|all| all.get(labels::STATE))
            .is_some_and(|state| state == labels::WARM);
        let mut conditions = pod.status.conditions.iter();
        let is_ready = conditions.any(|condition| condition.kind == "Ready" && condition.status == "True");
        let pod = Object::of(pod.metadata);
        // A pod that is being bound is known already, and never available again.
        if is_warm && is_ready && self.known.insert(pod.uid.clone()) {
            self.available.insert(pod.name.clone(), pod);
        }
        match &self.pool {
            Some((pool, object)) if !self.is_full && self.available.len() >= pool.spec.replicas => {
                self.is_full = true;
                publish_pool(&self.client, pool, object).await
            }
            _ => Ok(()),
        }
    }

    /// Binds a sandbox to each waiting claim.
    fn serve(&mut self) {
        while !self.waiting.is_empty()
            && let Some((_, pod)) = self.available.pop_first()
            && let Some(claim) = self.waiting.pop_front()
        {
            let client = self.client.clone();
            let creation = self.creation();
            let pool_uid = self.pool.as_ref().map(|(_, pool)| pool.uid.clone());
            drop(tokio::spawn(async move {
                let served = async {
                    bind(&client, &claim, &pod, &pool_uid.unwrap_or_default()).await?;
                    publish(&client, &claim, &pod).await?;
                    match creation {
                        Some(creation) => creation.await,
                        None => Ok(()),
                    }
                };
                if let Err(error) = served.await {
                    eprintln!("claim {} is not served: {error}", claim.name);
                }
            }));
        }
    }

    /// The creation of one more sandbox.
    fn creation(&mut self) -> Option<impl Future<Output = Outcome<()>> + use<>> {
        let (pool, object) = self.pool.as_ref()?;
        self.created += 1;
        let body = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": format!("{}-bare-{:05}", object.name, self.created),
                "labels": {labels::POOL: object.name, labels::REVISION: "bare", labels::STATE: labels::WARM},
                "ownerReferences": [{
                    "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool", "name": object.name, "uid": object.uid,
                    "controller": true, "blockOwnerDeletion": false,
                }],
            },
            "spec": pool.spec.template.get("spec"),
        });
        let (client, namespace) = (self.client.clone(), object.namespace.clone());
        Some(async move {
            let pods: Api<BarePod> = Api::namespaced(client.clone(), &namespace);
            let body = serde_json::to_vec(&body)?;
            let request = Request::new(pods.resource_url()).create(&PostParams::default(), body)?;
            client.request::<IgnoredAny>(request).await?;
            Ok(())
        })
    }
}

/// The binding: the operator's tests and changes.
async fn bind(client: &Client, claim: &Object, pod: &Object, pool_uid: &str) -> Outcome<()> {
    let label = |name: &str| format!("/metadata/labels/{}", name.replace('/', "~1"));
    let test = |path: &str, value: Value| json!({"op": "test", "path": path, "value": value});
    let add = |path: String, value: Value| json!({"op": "add", "path": path, "value": value});
    let patch = json!([
        test("/metadata/uid", json!(pod.uid)),
        test(&label(labels::STATE), json!(labels::WARM)),
        test("/metadata/ownerReferences/0/uid", json!(pool_uid)),
        test("/status/phase", json!("Running")),
        add(label(labels::STATE), json!(labels::CLAIMED)),
        add(label(labels::CLAIM), json!(claim.name)),
        add(label(labels::CLAIM_UID), json!(claim.uid)),
        {"op": "replace", "path": "/metadata/ownerReferences/0", "value": {
            "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaim", "name": claim.name, "uid": claim.uid,
            "controller": true, "blockOwnerDeletion": false,
        }},
    ]);
    let pods: Api<BarePod> = Api::namespaced(client.clone(), &pod.namespace);
    let patch = Patch::Json::<()>(serde_json::from_value(patch)?);
    let request = Request::new(pods.resource_url()).patch(&pod.name, &PatchParams::default(), &patch)?;
    client.request::<IgnoredAny>(request).await?;
    Ok(())
}

/// The status of the claim, as long as the operator's.
async fn publish(client: &Client, claim: &Object, pod: &Object) -> Outcome<()> {
    let now = Timestamp::now();
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": message, "observedGeneration": 1,
            "lastTransitionTime": now,
        })
    };
    let body = json!({
        "apiVersion": "warmpool.dev/v1alpha1",
        "kind": "SandboxClaim",
        "metadata": {
            "namespace": claim.namespace, "name": claim.name, "uid": claim.uid, "resourceVersion": claim.resource_version,
        },
        "status": {
            "phase": "Bound",
            "observedGeneration": 1,
            "conditions": [
                condition("Bound", "Bound", "1 of 1 sandboxes are bound"),
                condition("Ready", "SandboxesReady", "1 of 1 sandboxes are Ready"),
            ],
            "sandboxes": [{"name": pod.name, "uid": pod.uid, "boundTime": now, "warm": true}],
        },
    });
    let claims: Api<BareClaim> = Api::namespaced(client.clone(), &claim.namespace);
    let body = serde_json::to_vec(&body)?;
    let request = Request::new(claims.resource_url()).replace_subresource(
        "status",
        &claim.name,
        &PostParams::default(),
        body,
    )?;
    client.request::<IgnoredAny>(request).await?;
    Ok(())
}

/// Says that the pool is full, which the benchmark waits for.
async fn publish_pool(client: &Client, pool: &BarePool, object: &Object) -> Outcome<()> {
    let (count, generation) = (pool.spec.replicas, pool.metadata.generation);
    let body = json!({
        "apiVersion": "warmpool.dev/v1alpha1",
        "kind": "Pool",
        "metadata": {"namespace": object.namespace, "name": object.name, "resourceVersion": object.resource_version},
        "status": {
            "observedGeneration": generation, "available": count, "updated": count, "total": count, "pendingClaims": 0,
        },
    });
    let pools: Api<BarePool> = Api::namespaced(client.clone(), &object.namespace);
    let request = Request::new(pools.resource_url()).patch_subresource(
        "status",
        &object.name,
        &PatchParams::default(),
        &Patch::Merge(body),
    )?;
    client.request::<IgnoredAny>(request).await?;
    Ok(())
}
