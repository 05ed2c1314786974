//! A simulated API server: it keeps objects as JSON, answers writes one after the other, and makes each pod Ready.

// The objects are made here, so their members are there.
#![allow(clippy::indexing_slicing)]

use crate::Outcome;
use jiff::{SignedDuration, Timestamp};
use json_patch::PatchOperation;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use warmpool::executor::pod_body::pod_body;
use warmpool::executor::pod_patch::claiming_patch;
use warmpool::executor::pool_status_patch::changed;
use warmpool::model::request::{PodChange, Request, RevisionStep};

/// What one write takes.
const SERVICE: SignedDuration = SignedDuration::from_micros(5_500);
/// From a pod's creation to its node, and from there to Ready.
const STEP: SignedDuration = SignedDuration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Pool,
    Claim,
    Pod,
    Revision,
}

/// An event of a watch, as its text.
pub struct Event {
    pub at: Timestamp,
    pub kind: Kind,
    pub gone: bool,
    pub text: String,
}

#[derive(Default)]
pub struct ApiServer {
    objects: BTreeMap<(Kind, String), Value>,
    /// Names of the pods of each claim.
    bound: BTreeMap<String, Vec<String>>,
    version: u64,
    free_at: Timestamp,
    pub events: Vec<Event>,
}

impl ApiServer {
    /// Serves a request sent at `now`. Returns when it is answered, and the object as the answer shows it.
    pub fn serve(&mut self, request: &Request, now: Timestamp) -> Outcome<(Timestamp, Option<String>)> {
        let at = self.free_at.max(now).checked_add(SERVICE)?;
        self.free_at = at;
        let answer = match request {
            Request::CreatePod(creation) => {
                let text = self.create(Kind::Pod, pod_body(creation), at)?;
                self.warm_up(&creation.pod.name, at)?;
                Some(text)
            }
            Request::WritePod(write) => {
                let name = write.sandbox.key.name.as_str();
                match &write.change {
                    PodChange::Bind { claim, pool } => {
                        self.bound
                            .entry(claim.key.name.to_string())
                            .or_default()
                            .push(name.into());
                        let mut patch = claiming_patch(claim, &write.sandbox, pool)?;
                        // The API server lets a missing member pass for null, and this crate does not.
                        patch.0.retain(
                            |step| !matches!(step, PatchOperation::Test(test) if test.value.is_null()),
                        );
                        Some(self.edit(Kind::Pod, name, at, |pod| Ok(json_patch::patch(pod, &patch)?))?)
                    }
                    _ => return Err("an unexpected write on a pod".into()),
                }
            }
            Request::WriteClaim(write) => {
                let status = json!(&*write.status);
                let name = &write.claim.key.name;
                Some(self.edit(Kind::Claim, name, at, |claim| {
                    claim["status"] = status;
                    Ok(())
                })?)
            }
            Request::WritePool(write) => {
                let status = json!({"status": changed(&write.pool.status, &write.status)});
                Some(self.merge(Kind::Pool, &write.pool.key.name, at, &status)?)
            }
            Request::Revision(request) => match &request.step {
                RevisionStep::Create {
                    hash,
                    template,
                    number,
                } => {
                    let pool = &request.pool;
                    let body = json!({
                        "metadata": {
                            "name": format!("{}-{hash}", pool.key.name),
                            "labels": {"warmpool.dev/pool": pool.key.name, "warmpool.dev/revision": hash},
                            "ownerReferences": [{
                                "apiVersion": "warmpool.dev/v1alpha1", "kind": "Pool", "name": pool.key.name,
                                "uid": pool.uid, "controller": true,
                            }],
                        },
                        "revision": number,
                        "data": {"spec": {"template": template.value}},
                    });
                    Some(self.create(Kind::Revision, body, at)?)
                }
                _ => return Err("an unexpected request about a revision".into()),
            },
            other => return Err(format!("an unexpected request: {other:?}").into()),
        };
        Ok((at, answer))
    }

    /// Adds an object. Returns its text.
    pub fn create(&mut self, kind: Kind, mut object: Value, at: Timestamp) -> Outcome<String> {
        self.version += 1;
        let uid = format!("6f0c1e5e-0000-4000-8000-{:012}", self.version);
        let more = json!({
            "metadata": {
                "namespace": "bench", "uid": uid, "generation": 1, "creationTimestamp": at.to_string(),
                "managedFields": managed_fields(at),
            },
        });
        json_patch::merge(&mut object, &more);
        if kind == Kind::Pod {
            json_patch::merge(&mut object, &defaults());
        }
        self.put(kind, object, at)
    }

    fn delete(&mut self, kind: Kind, name: &str, at: Timestamp) {
        if let Some(object) = self.objects.remove(&(kind, name.to_string())) {
            let text = object.to_string();
            self.events.push(Event {
                at,
                kind,
                gone: true,
                text,
            });
        }
    }

    /// Deletes a claim, and then its pods as the garbage collector does.
    pub fn release(&mut self, claim: &str, at: Timestamp) {
        self.delete(Kind::Claim, claim, at);
        for pod in self.bound.remove(claim).unwrap_or_default() {
            self.delete(Kind::Pod, &pod, at);
        }
    }

    fn put(&mut self, kind: Kind, mut object: Value, at: Timestamp) -> Outcome<String> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let name = object["metadata"]["name"].as_str().ok_or("no name")?.to_string();
        let text = object.to_string();
        self.objects.insert((kind, name), object);
        self.events.push(Event {
            at,
            kind,
            gone: false,
            text: text.clone(),
        });
        Ok(text)
    }

    fn edit(
        &mut self,
        kind: Kind,
        name: &str,
        at: Timestamp,
        change: impl FnOnce(&mut Value) -> Outcome<()>,
    ) -> Outcome<String> {
        let stored = self.objects.get(&(kind, name.to_string()));
        let mut object = stored.cloned().ok_or_else(|| format!("no {kind:?} {name}"))?;
        change(&mut object)?;
        self.put(kind, object, at)
    }

    fn merge(&mut self, kind: Kind, name: &str, at: Timestamp, patch: &Value) -> Outcome<String> {
        self.edit(kind, name, at, |object| {
            json_patch::merge(object, patch);
            Ok(())
        })
    }

    /// The scheduler and the kubelet.
    pub fn warm_up(&mut self, name: &str, created: Timestamp) -> Outcome<()> {
        let node = format!("node-{}", self.version % 4);
        let scheduled = created.checked_add(STEP)?;
        self.merge(
            Kind::Pod,
            name,
            scheduled,
            &json!({
                "spec": {"nodeName": node},
                "status": {"phase": "Pending", "conditions": [condition("PodScheduled", scheduled)]},
            }),
        )?;
        let ready = scheduled.checked_add(STEP)?;
        let conditions = ["Initialized", "Ready", "ContainersReady", "PodScheduled"];
        self.merge(Kind::Pod, name, ready, &json!({"status": {
            "phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}],
            "conditions": conditions.map(|type_| condition(type_, ready)),
            "containerStatuses": [{
                "name": "sandbox", "ready": true, "started": true, "restartCount": 0, "image": "image:1", "imageID": "",
                "state": {"running": {"startedAt": ready.to_string()}}, "lastState": {},
            }],
        }}))?;
        Ok(())
    }
}

fn condition(type_: &str, at: Timestamp) -> Value {
    json!({"type": type_, "status": "True", "lastProbeTime": null, "lastTransitionTime": at.to_string()})
}

/// What the API server and admission add to a pod.
fn defaults() -> Value {
    let mount = "/var/run/secrets/kubernetes.io/serviceaccount";
    json!({
        "spec": {
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default", "serviceAccount": "default", "securityContext": {},
            "schedulerName": "default-scheduler", "priority": 0, "enableServiceLinks": true,
            "preemptionPolicy": "PreemptLowerPriority",
            "containers": [{
                "name": "sandbox", "image": "image:1", "resources": {}, "imagePullPolicy": "IfNotPresent",
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                "volumeMounts": [{"name": "kube-api-access-x2k4z", "readOnly": true, "mountPath": mount}],
            }],
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
            "volumes": [{"name": "kube-api-access-x2k4z", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            ]}}],
        },
        "status": {"phase": "Pending", "qosClass": "BestEffort"},
    })
}

fn managed_fields(at: Timestamp) -> Value {
    let fields = json!({
        "f:metadata": {
            "f:labels": {".": {}, "f:warmpool.dev/pool": {}, "f:warmpool.dev/revision": {}, "f:warmpool.dev/state": {}},
            "f:ownerReferences": {".": {}, "k:{\"uid\":\"6f0c1e5e-0000-4000-8000-000000000000\"}": {}},
        },
        "f:spec": {"f:containers": {"k:{\"name\":\"sandbox\"}": {
            ".": {}, "f:image": {}, "f:imagePullPolicy": {}, "f:name": {}, "f:resources": {},
            "f:terminationMessagePath": {}, "f:terminationMessagePolicy": {},
        }}, "f:dnsPolicy": {}, "f:enableServiceLinks": {}, "f:restartPolicy": {}, "f:schedulerName": {}},
    });
    json!([{
        "manager": "warmpool", "operation": "Update", "apiVersion": "v1", "time": at.to_string(),
        "fieldsType": "FieldsV1", "fieldsV1": fields,
    }])
}
