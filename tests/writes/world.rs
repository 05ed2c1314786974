//! The operator's own cache, planner and executor against an API server that a test scripts, on a paused clock.

use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use tower::Layer;
use warmpool::cache::reconcile_request::{ReconcileRequest, ReconcileSender};
use warmpool::cache::synced_cache::{Inputs, KINDS, SharedCache};
use warmpool::client::identity::{Component, Identify};
use warmpool::controllers::clock_step::clock_was_set;
use warmpool::controllers::context::Context;
use warmpool::controllers::{claim, pool, retry_loop};
use warmpool::executor::Executor;
use warmpool::model::Key;
use warmpool::telemetry::events::claims::ClaimEvents;
use warmpool::telemetry::metrics::Metrics;

/// The moment at which every world begins.
pub const BEGIN: Timestamp = Timestamp::constant(1_767_225_600, 0);
const BORN: &str = "2025-12-31T23:00:00Z";

/// A request as received.
#[derive(Clone, Debug)]
pub struct Asked {
    pub verb: String,
    pub namespace: String,
    /// `pods`, `sandboxclaims/status`.
    pub resource: String,
    pub name: String,
    pub body: Value,
    pub user_agent: String,
    pub query: String,
}

/// A webhook that is to admit a request cannot be asked.
pub const NOT_ADMITTED: Reply = Reply::Fails("Internal error occurred: failed calling webhook \"example\"");

/// The answer to a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// It is carried out.
    Done,
    /// It is answered with this object.
    Object(Value),
    /// It is answered with this code.
    Code(u16),
    /// The API server throttles for this many seconds.
    Throttled(u32),
    /// It is answered with 422 that names this field; empty for none.
    Invalid(&'static str),
    /// It is answered with 500 and this message.
    Fails(&'static str),
    /// It is never answered.
    Never,
}

/// The step in which time passes.
const TICK: Duration = Duration::from_millis(10);

thread_local! {
    static NOW: Cell<Timestamp> = const { Cell::new(BEGIN) };
    /// The newest resource version of an object.
    static VERSION: Cell<u64> = const { Cell::new(100) };
}

fn now() -> Timestamp {
    NOW.get()
}

type Rule = Arc<Mutex<dyn FnMut(&Asked) -> Reply + Send>>;

/// Namespace, resource and name of an object.
type Id = (String, String, String);
/// What the API server stores.
type Objects = Arc<Mutex<BTreeMap<Id, Value>>>;

pub struct World {
    pub context: Context,
    client: Client,
    log: Arc<Mutex<Vec<Asked>>>,
    objects: Objects,
    queues: Queues,
    /// When time alone changes a plan.
    wakes: Vec<(ReconcileRequest, Timestamp)>,
}

/// What is to be reconciled.
struct Queues {
    pools: UnboundedReceiver<Key>,
    claims: UnboundedReceiver<Key>,
    failed_writes: UnboundedReceiver<()>,
    urgent: UnboundedReceiver<ReconcileRequest>,
}

/// An operator that has just started, with an empty cache that counts as complete.
fn operator(client: &Client) -> (Context, Queues) {
    let shared = SharedCache::new(Inputs { now, seed: || 1 });
    (0..KINDS).for_each(|_| shared.watch_synced());
    let ((pools, pool_receiver), (claims, claim_receiver)) = (unbounded(), unbounded());
    let (failed_writes, failure_receiver) = unbounded();
    let (urgent, urgent_receiver) = unbounded();
    let to_reconcile = ReconcileSender {
        pools,
        claims,
        failed_writes,
        urgent,
    };
    let (metrics, events) = (Metrics::default(), ClaimEvents::None);
    let executor = Executor::new(client.clone(), shared.clone(), to_reconcile, metrics, events);
    let queues = Queues {
        pools: pool_receiver,
        claims: claim_receiver,
        failed_writes: failure_receiver,
        urgent: urgent_receiver,
    };
    (Context { shared, executor }, queues)
}

impl World {
    /// A world without any object, whose API server answers by `rule`.
    pub fn new(rule: impl FnMut(&Asked) -> Reply + Send + 'static) -> Self {
        NOW.set(BEGIN);
        let log: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let objects = Objects::default();
        let (rule, kept): (Rule, _) = (Arc::new(Mutex::new(rule)), Arc::clone(&log));
        let stored = Arc::clone(&objects);
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (rule, log, objects) = (Arc::clone(&rule), Arc::clone(&kept), Arc::clone(&stored));
            async move {
                let asked = read(request).await;
                log.lock().unwrap().push(asked.clone());
                let reply = (rule.lock().unwrap())(&asked);
                answer(&asked, reply, &objects).await
            }
        });
        let client = Client::new(Identify(Component::Controller).layer(service), "default");
        let (context, queues) = operator(&client);
        Self {
            context,
            client,
            log,
            objects,
            queues,
            wakes: Vec::new(),
        }
    }

    /// Another operator takes over. It lists what is stored, and reconciles it.
    pub fn restart(&mut self) {
        (self.context, self.queues) = operator(&self.client);
        self.wakes.clear();
        let objects = self.objects.lock().unwrap().clone();
        let mut index = self.context.shared.lock();
        for ((_, resource, _), object) in objects {
            match resource.as_str() {
                "pools" => drop(index.apply_pool(&serde_json::from_value(object).unwrap())),
                "pods" => drop(index.apply_pod(&serde_json::from_value(object).unwrap())),
                "controllerrevisions" => {
                    index.apply_revision(&serde_json::from_value(object).unwrap());
                }
                "sandboxclaims" => {
                    index.apply_claim(&serde_json::from_value(object).unwrap(), false, now());
                }
                _ => {}
            }
        }
        drop(index);
        self.reconcile_all();
    }

    /// The objects of a resource, as they are stored.
    pub fn stored(&self, resource: &str) -> Vec<Value> {
        let objects = self.objects.lock().unwrap();
        let such = objects.iter().filter(|((_, of, _), _)| of == resource);
        such.map(|(_, object)| object.clone()).collect()
    }

    /// The wall clock is set.
    pub fn set_clock(&self, seconds: i64) {
        let step = SignedDuration::from_secs(seconds);
        NOW.set(now() + step);
        clock_was_set(&self.context, step);
    }

    /// Reconciles every object.
    pub fn reconcile_all(&mut self) {
        let all = self.context.shared.lock().all();
        self.trigger(all);
    }

    pub fn trigger(&mut self, to_reconcile: Vec<ReconcileRequest>) {
        for trigger in to_reconcile {
            self.reconcile(&trigger);
        }
    }

    fn reconcile(&mut self, trigger: &ReconcileRequest) {
        let next = match trigger {
            ReconcileRequest::Pool(key) => pool::step(&self.context, key, now()),
            ReconcileRequest::Claim(key) => claim::step(&self.context, key, now()),
            ReconcileRequest::FailedWrites => retry_loop::step(&self.context, now()),
        };
        self.wakes.retain(|(other, _)| other != trigger);
        self.wakes.extend(next.map(|next| (trigger.clone(), next)));
    }

    /// Lets time pass and reconciles what is requested or due meanwhile.
    pub async fn run_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            // Claims first: a reconcile of the pool must not hide a surplus write of the claim's reconcile.
            while let Ok(request) = self.queues.urgent.try_recv() {
                self.reconcile(&request);
            }
            while let Ok(key) = self.queues.claims.try_recv() {
                self.reconcile(&ReconcileRequest::Claim(key));
            }
            while let Ok(()) = self.queues.failed_writes.try_recv() {
                self.reconcile(&ReconcileRequest::FailedWrites);
            }
            while let Ok(key) = self.queues.pools.try_recv() {
                self.reconcile(&ReconcileRequest::Pool(key));
            }
            let due = self.wakes.iter().filter(|(_, at)| *at <= now());
            let due: Vec<_> = due.map(|(request, _)| request.clone()).collect();
            self.trigger(due);
            tokio::time::sleep(TICK).await;
            NOW.set(now() + SignedDuration::try_from(TICK).unwrap());
        }
    }

    /// Lets whole seconds pass.
    pub async fn pass(&mut self, seconds: u64) {
        self.run_for(Duration::from_secs(seconds)).await;
    }

    /// The API server stores an object.
    fn store(&self, resource: &str, object: &Value) {
        let id = id_of(resource, object);
        self.objects.lock().unwrap().insert(id, object.clone());
    }

    /// A pool is seen, with that many warm sandboxes `NAME-0`, `NAME-1`, ...
    pub fn pool(&self, namespace: &str, name: &str, sandboxes: usize) {
        let mut index = self.context.shared.lock();
        let pool = pool_of(namespace, name, sandboxes);
        self.store("pools", &pool);
        index.apply_pool(&serde_json::from_value(pool).unwrap());
        for n in 0..sandboxes {
            let stored = warm(namespace, name, &format!("{name}-{n}"));
            self.store("pods", &stored);
            index.apply_pod(&serde_json::from_value(stored).unwrap());
        }
    }

    /// A stored revision of a pool is seen.
    pub fn revision(&self, namespace: &str, pool: &str, number: usize) {
        let mut stored = json!({
            "metadata": metadata(namespace, &format!("{pool}-{number}")), "revision": number,
            "data": {"spec": {"template": {"spec": {"containers": [{"name": number.to_string()}]}}}},
        });
        stored["metadata"]["labels"] =
            json!({"warmpool.dev/pool": pool, "warmpool.dev/revision": number.to_string()});
        stored["metadata"]["ownerReferences"] = owner("Pool", pool, &format!("uid-{namespace}-{pool}"));
        self.store("controllerrevisions", &stored);
        let stored = serde_json::from_value(stored).unwrap();
        self.context.shared.lock().apply_revision(&stored);
    }

    /// A pool is seen to want that many sandboxes.
    pub fn pool_is_scaled(&mut self, namespace: &str, name: &str, replicas: usize) {
        let stored = pool_of(namespace, name, replicas);
        self.store("pools", &stored);
        let stored = serde_json::from_value(stored).unwrap();
        let to_reconcile = self.context.shared.lock().apply_pool(&stored);
        self.trigger(to_reconcile);
    }

    /// A claim is seen, with more of its spec, and reconciled.
    pub fn claim(&mut self, namespace: &str, name: &str, pool: &str, more: &Value) {
        let to_reconcile = self.claim_arrives(namespace, name, pool, more);
        self.trigger(to_reconcile);
    }

    /// A claim is seen, with more of its spec. Returns what to reconcile.
    pub fn claim_arrives(
        &mut self,
        namespace: &str,
        name: &str,
        pool: &str,
        more: &Value,
    ) -> Vec<ReconcileRequest> {
        let mut stored = json!({"metadata": metadata(namespace, name), "spec": {"poolRef": {"name": pool}}});
        stored["metadata"]["creationTimestamp"] = json!(BEGIN);
        let spec = stored["spec"].as_object_mut().unwrap();
        spec.extend(more.as_object().unwrap().clone());
        self.apply_claim(stored)
    }

    fn apply_claim(&mut self, stored: Value) -> Vec<ReconcileRequest> {
        self.store("sandboxclaims", &stored);
        let stored = serde_json::from_value(stored).unwrap();
        self.context.shared.lock().apply_claim(&stored, true, BEGIN)
    }

    /// A claim is seen with the status that was written last.
    pub fn claim_is_seen_as_written(&mut self, namespace: &str, name: &str) {
        let id = ["sandboxclaims", name].map(ToString::to_string);
        let [resource, name] = id;
        let stored = self.objects.lock().unwrap()[&(namespace.to_string(), resource, name)].clone();
        assert!(stored["status"].is_object(), "no status was written: {stored}");
        let to_reconcile = self.apply_claim(stored);
        self.trigger(to_reconcile);
    }

    /// The phases and reasons written for a claim, in their order.
    pub fn phases(&self, namespace: &str, name: &str) -> Vec<String> {
        let mut written = self.asked(namespace, "PUT", "sandboxclaims/status");
        written.retain(|asked| asked.name == name);
        let word = |value: &Value| value.as_str().unwrap().to_string();
        let words = written.iter().map(|asked| &asked.body["status"]).map(|status| {
            let reason = &status["conditions"][0]["reason"];
            format!("{} {}", word(&status["phase"]), word(reason))
        });
        words.collect()
    }

    /// A pod is seen gone.
    pub fn pod_goes(&mut self, namespace: &str, name: &str) {
        let stored = json!({"metadata": metadata(namespace, name)});
        let stored = serde_json::from_value(stored).unwrap();
        let to_reconcile = self.context.shared.lock().delete_pod(&stored);
        self.trigger(to_reconcile);
    }

    /// A pod is seen.
    pub fn pod_comes(&mut self, stored: Value) {
        self.store("pods", &stored);
        let stored = serde_json::from_value(stored).unwrap();
        let to_reconcile = self.context.shared.lock().apply_pod(&stored);
        self.trigger(to_reconcile);
    }

    /// A claim is seen gone.
    pub fn claim_goes(&mut self, namespace: &str, name: &str) {
        let stored = json!({"metadata": metadata(namespace, name)});
        let stored = serde_json::from_value(stored).unwrap();
        let to_reconcile = self.context.shared.lock().delete_claim(&stored);
        self.trigger(to_reconcile);
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Asked> {
        self.log.lock().unwrap().clone()
    }

    /// The requests so far of one verb on one resource in a namespace.
    pub fn asked(&self, namespace: &str, verb: &str, resource: &str) -> Vec<Asked> {
        let log = self.log.lock().unwrap();
        let such = |a: &&Asked| a.namespace == namespace && a.verb == verb && a.resource == resource;
        log.iter().filter(such).cloned().collect()
    }

    /// The claims of a namespace whose binding was written.
    pub fn bound(&self, namespace: &str) -> Vec<String> {
        let written = self.asked(namespace, "PUT", "sandboxclaims/status").into_iter();
        let bound = written.filter(|a| a.body["status"]["phase"] == "Bound");
        bound.map(|a| a.name).collect()
    }

    /// The number of requests by kind.
    pub fn tally(&self) -> BTreeMap<String, usize> {
        let mut tally = BTreeMap::new();
        for asked in self.log.lock().unwrap().iter() {
            let kind = format!("{} {} in {}", asked.verb, asked.resource, asked.namespace);
            *tally.entry(kind).or_default() += 1;
        }
        tally
    }

    pub fn pending(&self) -> Vec<String> {
        self.context.shared.lock().expectations.describe()
    }
}

fn metadata(namespace: &str, name: &str) -> Value {
    json!({
        "namespace": namespace, "name": name, "uid": format!("uid-{namespace}-{name}"), "resourceVersion": "1",
        "generation": 1, "creationTimestamp": BORN,
    })
}

fn pool_of(namespace: &str, name: &str, replicas: usize) -> Value {
    json!({
        "metadata": metadata(namespace, name),
        "spec": {
            "replicas": replicas, "updateStrategy": {"paused": true}, "template": {"spec": {"containers": []}},
        },
    })
}

/// A warm sandbox as it is stored.
pub fn warm(namespace: &str, pool: &str, name: &str) -> Value {
    let mut stored = json!({
        "metadata": metadata(namespace, name),
        "spec": {"nodeName": "node", "containers": []},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": BORN},
        ]},
    });
    stored["metadata"]["labels"] = json!({
        "warmpool.dev/pool": pool, "warmpool.dev/revision": "1", "warmpool.dev/state": "warm",
    });
    stored["metadata"]["ownerReferences"] = owner("Pool", pool, &format!("uid-{namespace}-{pool}"));
    stored
}

/// The owner references of a sandbox.
pub fn owner(kind: &str, name: &str, uid: &str) -> Value {
    json!([{
        "apiVersion": "warmpool.dev/v1alpha1", "kind": kind, "name": name, "uid": uid, "controller": true,
    }])
}

async fn read(request: http::Request<Body>) -> Asked {
    let (parts, body) = request.into_parts();
    let body = body.collect_bytes().await.unwrap();
    let mut path = parts
        .uri
        .path()
        .split('/')
        .skip_while(|part| *part != "namespaces")
        .skip(1);
    let namespace = path.next().unwrap_or_default().to_string();
    let mut resource = path.next().unwrap_or_default().to_string();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let name = path.next().or_else(|| body["metadata"]["name"].as_str());
    let name = name.unwrap_or_default().to_string();
    let user_agent = parts.headers.get(http::header::USER_AGENT);
    let user_agent = user_agent.map_or("", |value| value.to_str().unwrap()).to_string();
    if let Some(part) = path.next() {
        resource = format!("{resource}/{part}");
    }
    Asked {
        verb: parts.method.to_string(),
        namespace,
        resource,
        name,
        body,
        user_agent,
        query: parts.uri.query().unwrap_or_default().to_string(),
    }
}

fn id_of(resource: &str, object: &Value) -> Id {
    let part = |field: &str| object["metadata"][field].as_str().unwrap().to_string();
    (part("namespace"), resource.to_string(), part("name"))
}

/// Carries out a request on what is stored.
fn carry_out(asked: &Asked, objects: &mut BTreeMap<Id, Value>) -> (u16, Value) {
    let resource = asked.resource.split('/').next().unwrap_or_default().to_string();
    let id = (asked.namespace.clone(), resource, asked.name.clone());
    let new = || json!({"metadata": metadata(&asked.namespace, &asked.name)});
    match asked.verb.as_str() {
        "DELETE" => {
            objects.remove(&id);
            return (
                200,
                json!({"kind": "Status", "status": "Success", "metadata": {}}),
            );
        }
        "GET" => return (200, objects.get(&id).cloned().unwrap_or_else(new)),
        "POST" => {
            let mut made = asked.body.clone();
            let metadata = made["metadata"].as_object_mut().unwrap();
            metadata.extend(new()["metadata"].as_object().unwrap().clone());
            metadata.insert("creationTimestamp".to_string(), json!(now()));
            objects.insert(id.clone(), made);
        }
        _ => {}
    }
    let mut stored = objects.get(&id).cloned().unwrap_or_else(new);
    if asked.body.is_array() {
        // To the API server, null is also where nothing is.
        for field in ["deletionTimestamp", "annotations"] {
            let metadata = stored["metadata"].as_object_mut().unwrap();
            metadata.entry(field).or_insert(Value::Null);
        }
        let patch: json_patch::Patch = serde_json::from_value(asked.body.clone()).unwrap();
        if json_patch::patch(&mut stored, &patch).is_err() {
            return refusal(422, &json!({}));
        }
    } else if asked.verb == "PATCH" {
        let mut patch = asked.body.clone();
        patch["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("resourceVersion");
        json_patch::merge(&mut stored, &patch);
    } else if asked.verb == "PUT" {
        stored["status"] = asked.body["status"].clone();
    }
    let version = VERSION.get() + 1;
    VERSION.set(version);
    stored["metadata"]["resourceVersion"] = json!(version.to_string());
    objects.insert(id, stored.clone());
    (200, stored)
}

async fn answer(asked: &Asked, reply: Reply, objects: &Objects) -> io::Result<http::Response<Body>> {
    let (code, body) = match reply {
        Reply::Object(object) => (200, object),
        Reply::Never => return std::future::pending().await,
        Reply::Done => carry_out(asked, &mut objects.lock().unwrap()),
        Reply::Fails(words) => (
            500,
            json!({"kind": "Status", "status": "Failure", "code": 500, "message": words}),
        ),
        Reply::Code(429) => refusal(429, &json!({"retryAfterSeconds": 30})),
        Reply::Code(code) => refusal(code, &json!({})),
        Reply::Throttled(seconds) => refusal(429, &json!({"retryAfterSeconds": seconds})),
        Reply::Invalid("") => refusal(422, &json!({"causes": [{"message": "not for you"}]})),
        Reply::Invalid(field) => refusal(
            422,
            &json!({"causes": [{"reason": "FieldValueInvalid", "message": "not so", "field": field}]}),
        ),
    };
    let body = Body::from(body.to_string().into_bytes());
    Ok(http::Response::builder().status(code).body(body).unwrap())
}

fn refusal(code: u16, details: &Value) -> (u16, Value) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
        "reason": "Refused", "message": format!("answered with {code}"), "details": details,
    });
    (code, status)
}
