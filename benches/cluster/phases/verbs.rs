//! Measures what each verb costs the API server for the operator's writes, in its own processor time.
//!
//! The API server does other work now and then, such as collecting garbage. The kinds of writes take turns, so that it meets
//! each of them alike, and the median of the turns is recorded.

// The objects are made here, so their members are there.
#![allow(clippy::indexing_slicing)]

use crate::Outcome;
use crate::by_hand::Hand;
use crate::lab::Lab;
use crate::load::claim;
use crate::median::median;
use crate::parts;
use crate::report::Side;
use crate::rows::WRITES;
use crate::scene::{POOL, Scene, template};
use kube::Client;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Turns of each kind of writes.
const TURNS: usize = 7;
/// Writes of one kind in a row.
const COUNT: usize = 50;
/// How long the API server is left alone before and between them.
const REST: Duration = Duration::from_secs(1);

/// One way to send a write.
struct Write {
    /// The name of its figure.
    figure: &'static str,
    target: Target,
    method: http::Method,
    content_type: &'static str,
    body: Body,
}

/// What a write is sent to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Pod,
    /// A pod that is not there yet.
    NewPod,
    ClaimStatus,
    PoolStatus,
}

/// The body of a write of an object, as the API server has it.
type Body = fn(&Value) -> Value;

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

pub async fn run(lab: &Lab<'_>) -> Outcome<()> {
    let mut scene = Scene::open(lab, "verbs").await?;
    // Its pool owns the pods.
    Hand::new(&mut scene).await?;
    let objects = Objects {
        client: scene.client.clone(),
        namespace: scene.namespace.clone(),
        pool: scene.pools().get(POOL).await?.metadata.uid.unwrap_or_default(),
    };
    let used = || parts::cpu_of(lab.dir(), "apiserver");
    let (before, began) = (used()?, Instant::now());
    tokio::time::sleep(REST).await;
    let at_rest = (used()? - before) / began.elapsed().as_secs_f64();
    let put = |figure: &'static str, target: Target, body: Body| Write {
        figure,
        target,
        method: http::Method::PUT,
        content_type: "application/json",
        body,
    };
    let patch = |figure: &'static str, target: Target, content_type: &'static str, body: Body| Write {
        figure,
        target,
        method: http::Method::PATCH,
        content_type,
        body,
    };
    let mut writes = [
        patch(WRITES[0], Target::Pod, JSON_PATCH, binding_steps),
        patch(WRITES[1], Target::Pod, MERGE_PATCH, binding),
        put(WRITES[2], Target::Pod, bound),
        patch(WRITES[3], Target::ClaimStatus, MERGE_PATCH, claim_merge),
        patch(WRITES[4], Target::ClaimStatus, JSON_PATCH, claim_steps),
        put(WRITES[5], Target::ClaimStatus, claim_put),
        patch(WRITES[6], Target::PoolStatus, MERGE_PATCH, pool_merge),
        patch(WRITES[7], Target::PoolStatus, JSON_PATCH, pool_steps),
        put(WRITES[8], Target::PoolStatus, pool_put),
        patch(WRITES[10], Target::NewPod, APPLY, Value::clone),
    ];
    let mut costs: BTreeMap<&str, Vec<Cost>> = BTreeMap::new();
    let mut note = |figure, cpu: f64, took: Duration| {
        let cpu = cpu - at_rest * took.as_secs_f64();
        costs.entry(figure).or_default().push(Cost { cpu, took });
    };
    for turn in 0..TURNS {
        for (number, write) in writes.iter().enumerate() {
            let (before, began) = (used()?, Instant::now());
            let written = objects.prepare(write.target, turn * 10 + number).await?;
            if write.target == Target::Pod {
                note(WRITES[9], used()? - before, began.elapsed());
            }
            tokio::time::sleep(REST).await;
            let (before, began) = (used()?, Instant::now());
            for object in &written {
                objects.write(write, object).await?;
            }
            note(write.figure, used()? - before, began.elapsed());
        }
        writes.rotate_left(1);
    }
    for (figure, costs) in costs {
        let each = |of: fn(&Cost) -> f64| {
            let seconds: Vec<_> = costs.iter().map(of).collect();
            (median(&seconds).unwrap_or_default() * 1e5 / COUNT as f64).round() / 100.0
        };
        let figures = json!({"cpu": each(|cost| cost.cpu), "answered": each(|cost| cost.took.as_secs_f64())});
        println!("  {figure}: ms {figures}");
        lab.record(figure, Side::Ours, figures);
    }
    scene.close().await
}

/// What one turn cost.
struct Cost {
    /// Processor time of the API server, in seconds.
    cpu: f64,
    /// Until the last answer.
    took: Duration,
}

struct Objects {
    client: Client,
    namespace: String,
    pool: String,
}

impl Objects {
    fn path(&self, target: Target) -> String {
        let (group, plural) = match target {
            Target::Pod | Target::NewPod => ("api/v1", "pods"),
            Target::ClaimStatus => ("apis/warmpool.dev/v1alpha1", "sandboxclaims"),
            Target::PoolStatus => ("apis/warmpool.dev/v1alpha1", "pools"),
        };
        format!("/{group}/namespaces/{}/{plural}", self.namespace)
    }

    /// The objects that are written next. All but new pods are created.
    async fn prepare(&self, target: Target, batch: usize) -> Outcome<Vec<Value>> {
        let mut objects = Vec::new();
        for number in 0..COUNT {
            let name = format!("verbs-{batch}-{number}");
            objects.push(match target {
                Target::NewPod => self.pod(&name),
                Target::Pod => self.create(target, &self.pod(&name)).await?,
                Target::ClaimStatus => self.create(target, &json!(claim(&name, json!({}))?)).await?,
                Target::PoolStatus => self.pool_with_status(&name).await?,
            });
        }
        Ok(objects)
    }

    async fn create(&self, target: Target, body: &Value) -> Outcome<Value> {
        let path = self.path(target);
        self.send(http::Method::POST, "application/json", &path, body)
            .await
    }

    /// A pool as the operator meets it: its status was written before.
    async fn pool_with_status(&self, name: &str) -> Outcome<Value> {
        let body = json!({
            "apiVersion": "warmpool.dev/v1alpha1",
            "kind": "Pool",
            "metadata": {"name": name},
            "spec": {"replicas": 20, "template": template("image:1")},
        });
        let pool = self.create(Target::PoolStatus, &body).await?;
        let body = status_put(&pool, pool_status(19));
        let path = format!("{}/{name}/status", self.path(Target::PoolStatus));
        self.send(http::Method::PUT, "application/json", &path, &body)
            .await
    }

    async fn write(&self, write: &Write, object: &Value) -> Outcome<()> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let rest = match write.target {
            Target::Pod => "",
            Target::NewPod => "?fieldManager=bench",
            Target::ClaimStatus | Target::PoolStatus => "/status",
        };
        let path = format!("{}/{name}{rest}", self.path(write.target));
        let body = (write.body)(object);
        self.send(write.method.clone(), write.content_type, &path, &body)
            .await?;
        Ok(())
    }

    async fn send(
        &self,
        method: http::Method,
        content_type: &str,
        path: &str,
        body: &Value,
    ) -> Outcome<Value> {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, content_type)
            .body(body.to_string().into_bytes())?;
        Ok(self.client.request(request).await?)
    }

    /// A pod that no scheduler takes, so that nothing else writes it.
    fn pod(&self, name: &str) -> Value {
        let mut spec = template("image:1")["spec"].take();
        spec["schedulerName"] = json!("none");
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": {
                    "warmpool.dev/pool": POOL, "warmpool.dev/revision": "by-hand", "warmpool.dev/state": "warm",
                },
                "ownerReferences": [{
                    "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool", "name": POOL, "uid": self.pool,
                    "controller": true, "blockOwnerDeletion": false,
                }],
            },
            "spec": spec,
        })
    }
}

/// The pod with the labels of a claim. The pool stays its owner: an owner that does not exist would have it deleted.
fn bound(pod: &Value) -> Value {
    let mut pod = pod.clone();
    let labels = &mut pod["metadata"]["labels"];
    labels["warmpool.dev/state"] = json!("claimed");
    labels["warmpool.dev/claim"] = json!("run");
    labels["warmpool.dev/claim-uid"] = json!("6f0c1e5e-0000-4000-8000-000000000001");
    pod
}

fn binding(pod: &Value) -> Value {
    let bound = bound(pod);
    let (metadata, after) = (&pod["metadata"], &bound["metadata"]);
    json!({"metadata": {
        "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"],
        "labels": after["labels"], "ownerReferences": after["ownerReferences"],
    }})
}

fn binding_steps(pod: &Value) -> Value {
    let (before, bound) = (&pod["metadata"], bound(pod));
    let after = &bound["metadata"];
    json!([
        {"op": "test", "path": "/metadata/uid", "value": before["uid"]},
        {"op": "test", "path": "/metadata/labels/warmpool.dev~1state", "value": "warm"},
        {"op": "test", "path": "/metadata/deletionTimestamp", "value": null},
        {"op": "test", "path": "/metadata/ownerReferences/0/uid", "value": before["ownerReferences"][0]["uid"]},
        {"op": "test", "path": "/status/phase", "value": "Pending"},
        {"op": "replace", "path": "/metadata/labels", "value": after["labels"]},
        {"op": "replace", "path": "/metadata/ownerReferences/0", "value": after["ownerReferences"][0]},
    ])
}

/// The times in what the operator publishes.
const AT: &str = "2026-01-31T12:00:00Z";

fn conditions(types: [&str; 2], reason: &str, message: &str) -> Value {
    let condition = |type_| {
        json!({
            "type": type_, "status": "True", "reason": reason, "message": message, "lastTransitionTime": AT,
            "observedGeneration": 1,
        })
    };
    json!(types.map(condition))
}

/// What the operator publishes of a claim with one sandbox.
fn claim_status() -> Value {
    json!({
        "phase": "Bound", "observedGeneration": 1, "pool": POOL, "boundTime": AT, "waitSeconds": 0.012,
        "conditions": conditions(["Bound", "Ready"], "Bound", "1 sandbox is bound"),
        "sandboxes": [{
            "name": "pool-by-hand-00000", "uid": "6f0c1e5e-0000-4000-8000-000000000002", "ip": "10.0.0.1",
            "node": "node-1", "revision": "by-hand", "boundTime": AT, "warm": true,
        }],
    })
}

/// What the operator publishes of a pool.
fn pool_status(available: usize) -> Value {
    let types = ["Available", "Progressing"];
    json!({
        "observedGeneration": 1, "desiredReplicas": 20, "replicas": 20, "ready": available, "available": available,
        "updated": 20, "updatedAvailable": available, "expectedUpdated": 20, "claimed": 3, "total": 23, "draining": 0,
        "pendingClaims": 0, "currentRevision": "bcdfghjklm", "updateRevision": "bcdfghjklm",
        "selector": "warmpool.dev/pool=pool,warmpool.dev/state=warm",
        "conditions": conditions(types, "Available", "20 of 20 sandboxes are available"),
    })
}

fn claim_merge(claim: &Value) -> Value {
    let metadata = &claim["metadata"];
    let metadata = json!({"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]});
    json!({"metadata": metadata, "status": claim_status()})
}

fn claim_steps(claim: &Value) -> Value {
    let metadata = &claim["metadata"];
    json!([
        {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]},
        {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
        {"op": "add", "path": "/status", "value": claim_status()},
    ])
}

fn claim_put(claim: &Value) -> Value {
    status_put(claim, claim_status())
}

fn pool_merge(pool: &Value) -> Value {
    json!({"metadata": {"uid": pool["metadata"]["uid"]}, "status": pool_status(20)})
}

fn pool_steps(pool: &Value) -> Value {
    json!([
        {"op": "test", "path": "/metadata/uid", "value": pool["metadata"]["uid"]},
        {"op": "add", "path": "/status", "value": pool_status(20)},
    ])
}

fn pool_put(pool: &Value) -> Value {
    status_put(pool, pool_status(20))
}

fn status_put(object: &Value, status: Value) -> Value {
    let metadata = &object["metadata"];
    json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"],
        "metadata": {
            "namespace": metadata["namespace"], "name": metadata["name"],
            "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"],
        },
        "status": status,
    })
}
