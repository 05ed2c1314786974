//! The operator's own cache, planner and executor against an API server that a test scripts, on a paused clock.

use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use http::Method;
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
use warmpool::cache::shared::{Inputs, KINDS, SharedCache};
use warmpool::client::identity::{Component, Identify};
use warmpool::controllers::context::Context;
use warmpool::controllers::resync::clock_was_set;
use warmpool::controllers::{claim, pool};
use warmpool::executor::Executor;
use warmpool::model::Key;
use warmpool::model::stored::StoredPool;
use warmpool::telemetry::metrics::Metrics;

/// The moment at which every world begins, and at which its wall clock stands unless it is set.
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

thread_local! {
    static NOW: Cell<Timestamp> = const { Cell::new(BEGIN) };
}

fn now() -> Timestamp {
    NOW.get()
}

type Rule = Arc<Mutex<dyn FnMut(&Asked) -> Reply + Send>>;

pub struct World {
    pub context: Context,
    log: Arc<Mutex<Vec<Asked>>>,
    pools: UnboundedReceiver<Key>,
    claims: UnboundedReceiver<Key>,
    /// The claims as they were seen last.
    seen: BTreeMap<(String, String), Value>,
}

impl World {
    /// A world without any object, whose API server answers by `rule`.
    pub fn new(rule: impl FnMut(&Asked) -> Reply + Send + 'static) -> Self {
        NOW.set(BEGIN);
        let log: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (rule, kept): (Rule, _) = (Arc::new(Mutex::new(rule)), Arc::clone(&log));
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (rule, log) = (Arc::clone(&rule), Arc::clone(&kept));
            async move {
                let asked = read(request).await;
                log.lock().unwrap().push(asked.clone());
                let reply = (rule.lock().unwrap())(&asked);
                answer(&asked, reply).await
            }
        });
        let shared = SharedCache::new(Inputs { now, seed: || 1 });
        (0..KINDS).for_each(|_| shared.watch_synced());
        let ((pools, pool_receiver), (claims, claim_receiver)) = (unbounded(), unbounded());
        let client = Client::new(Identify(Component::Controller).layer(service), "default");
        let to_reconcile = ReconcileSender { pools, claims };
        let executor = Executor::new(client, shared.clone(), to_reconcile, Metrics::default());
        Self {
            context: Context { shared, executor },
            log,
            pools: pool_receiver,
            claims: claim_receiver,
            seen: BTreeMap::new(),
        }
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
        match trigger {
            ReconcileRequest::Pool(key) => drop(pool::step(&self.context, key, now())),
            ReconcileRequest::Claim(key) => {
                let (task, _) = claim::step(&self.context, key, now());
                if let Some(task) = task {
                    tokio::spawn(task.run(self.context.executor.clone()));
                }
            }
        }
    }

    /// Lets time pass and reconciles what is requested meanwhile.
    pub async fn run_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            // Claims first: a reconcile of the pool must not hide a surplus write of the claim's reconcile.
            while let Ok(key) = self.claims.try_recv() {
                self.reconcile(&ReconcileRequest::Claim(key));
            }
            while let Ok(key) = self.pools.try_recv() {
                self.reconcile(&ReconcileRequest::Pool(key));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The same for whole seconds, which the wall clock shows as well.
    pub async fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.run_for(Duration::from_secs(1)).await;
            NOW.set(now() + SignedDuration::from_secs(1));
        }
    }

    /// A pool is seen, with that many warm sandboxes `NAME-0`, `NAME-1`, ...
    pub fn pool(&self, namespace: &str, name: &str, sandboxes: usize) {
        let mut index = self.context.shared.lock();
        index.apply_pool(&pool_of(namespace, name, sandboxes));
        for n in 0..sandboxes {
            let stored = warm(namespace, name, &format!("{name}-{n}"));
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
        let stored = serde_json::from_value(stored).unwrap();
        self.context.shared.lock().apply_revision(&stored);
    }

    /// A pool is seen to want that many sandboxes.
    pub fn pool_is_scaled(&mut self, namespace: &str, name: &str, replicas: usize) {
        let stored = pool_of(namespace, name, replicas);
        let to_reconcile = self.context.shared.lock().apply_pool(&stored);
        self.trigger(to_reconcile);
    }

    /// A claim is seen, with more of its spec.
    pub fn claim(&mut self, namespace: &str, name: &str, pool: &str, more: &Value) {
        let mut stored = json!({"metadata": metadata(namespace, name), "spec": {"poolRef": {"name": pool}}});
        stored["metadata"]["creationTimestamp"] = json!(BEGIN);
        let spec = stored["spec"].as_object_mut().unwrap();
        spec.extend(more.as_object().unwrap().clone());
        self.claim_is_seen(stored);
    }

    fn claim_is_seen(&mut self, stored: Value) {
        let key = [&stored["metadata"]["namespace"], &stored["metadata"]["name"]];
        let [namespace, name] = key.map(|part| part.as_str().unwrap().to_string());
        self.seen.insert((namespace, name), stored.clone());
        let stored = serde_json::from_value(stored).unwrap();
        let to_reconcile = self.context.shared.lock().apply_claim(&stored, true, BEGIN);
        self.trigger(to_reconcile);
    }

    /// A claim is seen with the status that was written last.
    pub fn claim_is_seen_as_written(&mut self, namespace: &str, name: &str) {
        let mut written = self.asked(namespace, "PATCH", "sandboxclaims/status");
        written.retain(|asked| asked.name == name);
        let mut stored = self.seen[&(namespace.to_string(), name.to_string())].clone();
        stored["metadata"]["resourceVersion"] = json!("2");
        stored["status"] = written.last().unwrap().body["status"].clone();
        self.claim_is_seen(stored);
    }

    /// The phases and reasons written for a claim, in their order.
    pub fn phases(&self, namespace: &str, name: &str) -> Vec<String> {
        let mut written = self.asked(namespace, "PATCH", "sandboxclaims/status");
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
        let written = self.asked(namespace, "PATCH", "sandboxclaims/status").into_iter();
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

fn pool_of(namespace: &str, name: &str, replicas: usize) -> StoredPool {
    let stored = json!({
        "metadata": metadata(namespace, name),
        "spec": {
            "replicas": replicas, "updateStrategy": {"paused": true}, "template": {"spec": {"containers": []}},
        },
    });
    serde_json::from_value(stored).unwrap()
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

async fn answer(asked: &Asked, reply: Reply) -> io::Result<http::Response<Body>> {
    let (code, body) = match reply {
        Reply::Object(object) => (200, object),
        Reply::Never => return std::future::pending().await,
        Reply::Done if asked.verb == Method::DELETE.as_str() => (
            200,
            json!({"kind": "Status", "status": "Success", "metadata": {}}),
        ),
        Reply::Done => {
            let mut stored = json!({"metadata": metadata(&asked.namespace, &asked.name)});
            stored["metadata"]["resourceVersion"] = json!("2");
            if asked.verb == Method::POST.as_str() {
                let made = stored;
                stored = asked.body.clone();
                let metadata = stored["metadata"].as_object_mut().unwrap();
                metadata.extend(made["metadata"].as_object().unwrap().clone());
            }
            (200, stored)
        }
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
