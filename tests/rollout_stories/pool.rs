//! Runs `warmpool plan` on a step, written as `kubectl get -o yaml` prints objects.

use crate::Moves;
use crate::story::Step;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::io::Write;
use std::process::{Command, Stdio};

const OLD: &str = "image:1";
const NEW: &str = "image:2";

/// The plan of one step.
pub struct Snapshot {
    pub moves: Moves,
    pub status: Value,
    replicas: i64,
}

impl Snapshot {
    /// Plans the step. `pool` holds the fields that all steps of the story share.
    pub fn plan(pool: &Map<String, Value>, step: &Step) -> Self {
        let mut fields = pool.clone();
        fields.extend(step.pool.clone());
        let replicas = fields.remove("replicas").unwrap_or_else(|| json!(0));
        // The stories write 0 by leaving the field out, and the default of the API is not 0.
        fields.entry("maxUnavailable").or_insert_with(|| json!(0));
        let (old, new) = (revision(OLD), revision(NEW));
        let current = if step.finished { &new } else { &old };
        let mut documents = vec![
            pool_document(NEW, &replicas, &Value::Object(fields), current),
            stored_revision(OLD, &old, 1),
            stored_revision(NEW, &new, 2),
        ];
        let has = &step.has;
        let sets = [
            ("old", has.old, &old, true, false),
            ("old-evicted", has.old_evicted, &old, true, true),
            ("new", has.new, &new, true, false),
            ("new-evicted", has.new_evicted, &new, true, true),
            ("new-warming", has.new_warming, &new, false, false),
            ("new-warming-evicted", has.new_warming_evicted, &new, false, true),
        ];
        for (name, count, hash, ready, evicted) in sets {
            documents.extend((0..count).map(|n| pod(&format!("{name}-{n}"), hash, ready, evicted)));
        }
        let planned = warmpool_plan(&documents);
        Self {
            moves: moves(&planned, &documents, &new),
            status: planned["status"].clone(),
            replicas: replicas.as_i64().unwrap(),
        }
    }

    /// Sandboxes still to move, from the status alone: those that the update revision lacks, but at most the old ones that
    /// the partition does not keep.
    pub fn to_move(&self) -> usize {
        let number = |field: &str| self.status[field].as_i64().unwrap();
        let lacking = number("expectedUpdated") - number("updated");
        let kept = self.replicas - number("expectedUpdated");
        let not_kept = number("replicas") - number("updated") - kept;
        usize::try_from(lacking.min(not_kept).max(0)).unwrap()
    }
}

fn moves(planned: &Value, documents: &[Value], new: &str) -> Moves {
    let mut moves = Moves::default();
    let mut gone = HashSet::new();
    for action in planned["actions"].as_array().unwrap() {
        match action["action"].as_str().unwrap() {
            "CreatePod" if action["revision"] == new => moves.created_new += 1,
            "CreatePod" => moves.created_old += 1,
            "DeletePod" => {
                let name = &action["pod"];
                assert!(gone.insert(name.to_string()), "{name} is deleted twice");
                let pod = documents.iter().find(|d| d["metadata"]["name"] == *name);
                let pod = pod.expect("the plan deletes only pods of the input");
                let ready = pod["status"]["conditions"][0]["status"] == "True";
                let sides = if ready {
                    &mut moves.deleted_available
                } else {
                    &mut moves.deleted_warming
                };
                if pod["metadata"]["labels"]["warmpool.dev/revision"] == new {
                    sides.new += 1;
                } else {
                    sides.old += 1;
                }
            }
            other => panic!("{other} is no action of a rollout: {planned}"),
        }
    }
    moves
}

fn template(image: &str) -> Value {
    json!({"spec": {"containers": [{"name": "main", "image": image}]}})
}

fn pool_document(image: &str, replicas: &Value, strategy: &Value, current: &str) -> Value {
    json!({
        "apiVersion": "warmpool.dev/v1alpha1",
        "kind": "Pool",
        "metadata": {"name": "python", "namespace": "default", "uid": "pool-uid", "generation": 2},
        "spec": {"replicas": replicas, "template": template(image), "updateStrategy": strategy},
        "status": {"currentRevision": current},
    })
}

/// The revision of the template with `image`, as the binary names it.
fn revision(image: &str) -> String {
    let planned = warmpool_plan(&[pool_document(image, &json!(0), &json!({}), "")]);
    planned["status"]["updateRevision"].as_str().unwrap().to_string()
}

fn stored_revision(image: &str, hash: &str, number: i64) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": format!("python-{hash}"),
            "namespace": "default",
            "uid": format!("uid-{hash}"),
            "labels": {"warmpool.dev/pool": "python", "warmpool.dev/revision": hash},
            "ownerReferences": [owner()],
        },
        "revision": number,
        "data": {"spec": {"template": template(image)}},
    })
}

fn pod(name: &str, hash: &str, ready: bool, evicted: bool) -> Value {
    let mut labels = json!({
        "warmpool.dev/pool": "python", "warmpool.dev/revision": hash, "warmpool.dev/state": "warm",
    });
    if evicted {
        labels["warmpool.dev/evict"] = json!("true");
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": format!("uid-{name}"),
            "creationTimestamp": "2026-01-31T11:58:00Z",
            "labels": labels,
            "ownerReferences": [owner()],
        },
        "spec": {"nodeName": "node-1", "containers": []},
        "status": {
            "phase": "Running",
            "conditions": [{
                "type": "Ready",
                "status": if ready { "True" } else { "False" },
                "lastTransitionTime": "2026-01-31T11:58:05Z",
            }],
        },
    })
}

fn owner() -> Value {
    json!({
        "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool", "name": "python", "uid": "pool-uid",
        "controller": true,
    })
}

/// The plan that `warmpool plan -f - -o json` prints for the only pool among the documents.
fn warmpool_plan(documents: &[Value]) -> Value {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": documents});
    let mut child = Command::new(env!("CARGO_BIN_EXE_warmpool"))
        .args(["plan", "-f", "-", "-o", "json", "--now", "2026-01-31T12:00:00Z"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(list.to_string().as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    printed["pools"][0].clone()
}
