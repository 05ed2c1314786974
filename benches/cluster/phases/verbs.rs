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
    /// It writes a pod, not a claim.
    of_pods: bool,
    method: http::Method,
    content_type: &'static str,
    body: Body,
}

/// The body of a write of an object, as the API server has it.
type Body = fn(&Value) -> Value;

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";

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
    let put = |figure: &'static str, of_pods: bool, body: Body| Write {
        figure,
        of_pods,
        method: http::Method::PUT,
        content_type: "application/json",
        body,
    };
    let patch = |figure: &'static str, of_pods: bool, content_type: &'static str, body: Body| Write {
        figure,
        of_pods,
        method: http::Method::PATCH,
        content_type,
        body,
    };
    let mut writes = [
        patch(WRITES[0], true, JSON_PATCH, binding_steps),
        patch(WRITES[1], true, MERGE_PATCH, binding),
        put(WRITES[2], true, bound),
        patch(WRITES[3], false, MERGE_PATCH, status),
        patch(WRITES[4], false, JSON_PATCH, status_steps),
        put(WRITES[5], false, published),
    ];
    let mut costs: BTreeMap<&str, Vec<Cost>> = BTreeMap::new();
    let mut note = |figure, cpu: f64, took: Duration| {
        let cpu = cpu - at_rest * took.as_secs_f64();
        costs.entry(figure).or_default().push(Cost { cpu, took });
    };
    for turn in 0..TURNS {
        for (number, write) in writes.iter().enumerate() {
            let (before, began) = (used()?, Instant::now());
            let created = objects.create(write.of_pods, turn * 10 + number).await?;
            if write.of_pods {
                note(WRITES[6], used()? - before, began.elapsed());
            }
            tokio::time::sleep(REST).await;
            let (before, began) = (used()?, Instant::now());
            for object in &created {
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
    fn path(&self, of_pods: bool) -> String {
        let group = if of_pods {
            "api/v1"
        } else {
            "apis/warmpool.dev/v1alpha1"
        };
        let plural = if of_pods { "pods" } else { "sandboxclaims" };
        format!("/{group}/namespaces/{}/{plural}", self.namespace)
    }

    async fn create(&self, of_pods: bool, batch: usize) -> Outcome<Vec<Value>> {
        let mut created = Vec::new();
        for number in 0..COUNT {
            let name = format!("verbs-{batch}-{number}");
            let body = if of_pods {
                self.pod(&name)
            } else {
                json!(claim(&name, json!({}))?)
            };
            created.push(
                self.send(http::Method::POST, "application/json", &self.path(of_pods), &body)
                    .await?,
            );
        }
        Ok(created)
    }

    async fn write(&self, write: &Write, object: &Value) -> Outcome<()> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let part = if write.of_pods { "" } else { "/status" };
        let path = format!("{}/{name}{part}", self.path(write.of_pods));
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

/// What the operator publishes of a claim with one sandbox.
fn claim_status() -> Value {
    let at = "2026-01-31T12:00:00Z";
    let condition = |type_| {
        json!({
            "type": type_, "status": "True", "reason": "Bound", "message": "1 sandbox is bound",
            "lastTransitionTime": at, "observedGeneration": 1,
        })
    };
    let conditions = ["Bound", "Ready"].map(condition);
    json!({
        "phase": "Bound", "observedGeneration": 1, "pool": POOL, "boundTime": at, "waitSeconds": 0.012,
        "conditions": conditions,
        "sandboxes": [{
            "name": "pool-by-hand-00000", "uid": "6f0c1e5e-0000-4000-8000-000000000002", "ip": "10.0.0.1",
            "node": "node-1", "revision": "by-hand", "boundTime": at, "warm": true,
        }],
    })
}

fn status(claim: &Value) -> Value {
    let metadata = &claim["metadata"];
    let metadata = json!({"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]});
    json!({"metadata": metadata, "status": claim_status()})
}

fn status_steps(claim: &Value) -> Value {
    let metadata = &claim["metadata"];
    json!([
        {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]},
        {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
        {"op": "add", "path": "/status", "value": claim_status()},
    ])
}

fn published(claim: &Value) -> Value {
    let metadata = &claim["metadata"];
    json!({
        "apiVersion": claim["apiVersion"], "kind": claim["kind"],
        "metadata": {
            "namespace": metadata["namespace"], "name": metadata["name"],
            "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"],
        },
        "status": claim_status(),
    })
}
