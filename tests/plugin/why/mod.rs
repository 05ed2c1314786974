//! Checks `kubectl warmpool why`: the explanations for the objects of a cluster.

mod claims;
mod pods;
mod pools;
mod targets;

use crate::objects::{POOL_UID, owned_by_pool};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use warmpool::cli::documents::Documents;
use warmpool::cli::kubectl::why::explain;
use warmpool::model::revision::{Template, hash};

const CLAIM_UID: &str = "claim-uid";

fn now() -> Timestamp {
    "2026-01-31T12:00:00Z".parse().unwrap()
}

fn ago(seconds: i64) -> String {
    (now() - SignedDuration::from_secs(seconds)).to_string()
}

fn template(image: &str) -> Value {
    json!({"spec": {"containers": [{"name": "main", "image": image}]}})
}

fn revision_of(image: &str) -> String {
    hash(&Template::new(template(image)).canonical, 0)
}

/// The objects of one namespace with a pool `python` of image:2.
struct World(Vec<Value>);

impl World {
    /// Merges `spec` and `status` over those of the pool.
    fn new(replicas: i64, spec: &Value, status: &Value) -> Self {
        let mut pool = json!({
            "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool",
            "metadata": {"name": "python", "namespace": "ns", "uid": POOL_UID, "generation": 2, "resourceVersion": "9"},
            "spec": {"replicas": replicas, "template": template("image:2")},
            "status": {"observedGeneration": 2, "updateRevision": revision_of("image:2")},
        });
        json_patch::merge(&mut pool["spec"], spec);
        json_patch::merge(&mut pool["status"], status);
        Self(vec![pool])
    }

    /// Adds an unclaimed sandbox that has been available for a minute; `more` is merged over it.
    fn pod(mut self, name: &str, image: &str, more: &Value) -> Self {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": "ns", "uid": format!("{name}-uid"), "creationTimestamp": ago(90),
                "labels": {
                    "warmpool.dev/pool": "python", "warmpool.dev/state": "warm",
                    "warmpool.dev/revision": revision_of(image),
                },
                "ownerReferences": owned_by_pool(),
            },
            "spec": {"nodeName": "node-1"},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": ago(60)},
            ]},
        });
        json_patch::merge(&mut pod, more);
        self.0.push(pod);
        self
    }

    fn warming(self, name: &str) -> Self {
        let status = json!({"phase": "Pending", "conditions": null});
        self.pod(name, "image:2", &json!({"status": status}))
    }

    fn claim(mut self, name: &str, spec: &Value, status: &Value) -> Self {
        let mut claim = json!({
            "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaim",
            "metadata": {
                "name": name, "namespace": "ns", "uid": CLAIM_UID.to_string() + name, "generation": 1,
                "resourceVersion": format!("{}", 10 + self.0.len()), "creationTimestamp": ago(30),
            },
            "spec": {"poolRef": {"name": "python"}},
            "status": status,
        });
        json_patch::merge(&mut claim["spec"], spec);
        self.0.push(claim);
        self
    }

    fn revision(mut self, number: i64, image: &str) -> Self {
        self.0.push(json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": number,
            "metadata": {
                "name": format!("python-{}", revision_of(image)), "namespace": "ns",
                "labels": {"warmpool.dev/pool": "python", "warmpool.dev/revision": revision_of(image)},
                "ownerReferences": owned_by_pool(),
            },
            "data": {"spec": {"template": template(image)}},
        }));
        self
    }

    fn sentences(&self, target: &str) -> Option<Vec<String>> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": self.0});
        let index = Documents::read(&list.to_string())
            .unwrap()
            .into_index(Timestamp::UNIX_EPOCH);
        explain(&index, &target.parse().unwrap(), "ns", now())
    }

    fn why(&self, target: &str) -> String {
        self.sentences(target).unwrap().join("\n")
    }

    /// Asserts that the explanation has these sentences, in this order.
    #[track_caller]
    fn explains(&self, target: &str, sentences: &[&str]) {
        let answer = self.sentences(target).unwrap();
        let mut remaining = answer.iter();
        for sentence in sentences {
            assert!(
                remaining.any(|s| s == sentence),
                "{sentence:?} is missing in {answer:#?}"
            );
        }
    }
}

fn plain(replicas: i64) -> World {
    World::new(replicas, &json!({}), &json!({}))
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": ago(20),
    })
}
