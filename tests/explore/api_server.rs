//! The API server, as far as it decides: object versions, conditional writes and the order of events. It knows objects
//! only as JSON, and shares no code with the operator.

use crate::object::Object;
use crate::request::{HttpAnswer, HttpRequest, Verb};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use warmpool::cache::synced_cache::KINDS;

/// Versions start here, so that a number of ten digits is a version and nothing else.
const FIRST_VERSION: u64 = 1_000_000_000;

/// The node of every pod in a world without nodes.
const NO_NODE: &str = "node";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    Pools,
    Claims,
    Pods,
    Revisions,
    Templates,
    Nodes,
}

impl Kind {
    pub const ALL: [Self; KINDS] = [
        Self::Pools,
        Self::Claims,
        Self::Pods,
        Self::Revisions,
        Self::Templates,
        Self::Nodes,
    ];

    pub fn of(plural: &str) -> Option<Self> {
        match plural {
            "pools" => Some(Self::Pools),
            "sandboxclaims" => Some(Self::Claims),
            "pods" => Some(Self::Pods),
            "controllerrevisions" => Some(Self::Revisions),
            "podtemplates" => Some(Self::Templates),
            "nodes" => Some(Self::Nodes),
            _ => None,
        }
    }
}

/// An event of a watch: an object is now this, or was last this and is gone.
#[derive(Clone, Debug)]
pub struct Event {
    pub kind: Kind,
    pub gone: bool,
    pub object: Arc<Object>,
}

#[derive(Clone, Debug)]
pub struct ApiServer {
    /// By kind and name.
    objects: [Arc<BTreeMap<String, Arc<Object>>>; Kind::ALL.len()],
    version: u64,
    uids: u64,
    /// A quota has no room for another pod.
    pub quota: bool,
    /// A policy forbids the request at hand.
    pub rejects: bool,
    /// No pod has a node before it runs.
    pub nodeless: bool,
    /// Pools and claims stay for a while when they are deleted.
    pub lingering: bool,
    /// Nothing is known of nodes, and one takes every pod.
    pub without_nodes: bool,
    /// Events that are not on their way to a watch yet.
    pub news: Vec<Event>,
}

impl Default for ApiServer {
    fn default() -> Self {
        Self {
            objects: Default::default(),
            version: FIRST_VERSION,
            uids: 0,
            quota: false,
            rejects: false,
            nodeless: false,
            lingering: false,
            without_nodes: true,
            news: Vec::new(),
        }
    }
}

impl ApiServer {
    pub fn all(&self) -> impl Iterator<Item = (Kind, &Arc<Object>)> {
        let kinds = Kind::ALL.into_iter();
        kinds.flat_map(|kind| self.list(kind).map(move |object| (kind, object)))
    }

    pub fn list(&self, kind: Kind) -> impl Iterator<Item = &Arc<Object>> {
        self.objects[kind as usize].values()
    }

    pub fn get(&self, kind: Kind, name: &str) -> Option<&Arc<Object>> {
        self.objects[kind as usize].get(name)
    }

    fn objects_mut(&mut self, kind: Kind) -> &mut BTreeMap<String, Arc<Object>> {
        Arc::make_mut(&mut self.objects[kind as usize])
    }

    pub fn uid(&self, kind: Kind, uid: &str) -> Option<&Arc<Object>> {
        self.list(kind).find(|object| object.uid() == uid)
    }

    /// The owner of a pod is gone.
    pub fn is_orphan(&self, pod: &Object) -> bool {
        let (kind, uid) = pod.owner();
        let kind = if kind == "Pool" { Kind::Pools } else { Kind::Claims };
        self.uid(kind, uid).is_none()
    }

    /// The node of a pod is cordoned.
    pub fn is_on_cordoned(&self, pod: &Object) -> bool {
        self.is_cordoned(pod.at("/spec/nodeName"))
    }

    /// A user may cordon this node. One stays open, or no replacement could ever have a place.
    pub fn may_be_cordoned(&self, node: &str) -> bool {
        let open = || self.list(Kind::Nodes).filter(|node| !node.is_cordoned());
        open().count() > 1 && open().any(|other| other.name() == node)
    }

    /// There is this node, and it is cordoned.
    pub fn is_cordoned(&self, node: &str) -> bool {
        self.get(Kind::Nodes, node).is_some_and(|node| node.is_cordoned())
    }

    /// The node of a pod does not exist any more, where nodes are known at all.
    pub fn is_without_node(&self, pod: &Object) -> bool {
        let name = pod.at("/spec/nodeName");
        !matches!(name, "" | NO_NODE) && self.get(Kind::Nodes, name).is_none()
    }

    /// The node that takes the next pod: of those that are not cordoned the one with the fewest pods. `None`: none does.
    pub fn free_node(&self) -> Option<String> {
        if self.without_nodes {
            return Some(NO_NODE.to_string());
        }
        let pods_on = |name: &str| {
            let pods = self
                .list(Kind::Pods)
                .filter(|pod| pod.at("/spec/nodeName") == name);
            pods.count()
        };
        let open = self.list(Kind::Nodes).filter(|node| !node.is_cordoned());
        let free = open.min_by_key(|node| (pods_on(node.name()), node.name().to_string()));
        free.map(|node| node.name().to_string())
    }

    /// Objects created so far: the seed of fresh names.
    pub fn seed(&self) -> u64 {
        self.uids
    }

    /// Serves a request.
    pub fn serve(&mut self, request: &HttpRequest, now: &str) -> HttpAnswer {
        let stored = self.get(request.kind, &request.name).cloned();
        match (request.verb, stored) {
            (_, Some(_)) if self.rejects => HttpAnswer::refusal(403, "Forbidden"),
            // A quota decides before the name does.
            (Verb::Create, _) if request.kind == Kind::Pods && self.quota => {
                HttpAnswer::refusal(403, "Forbidden")
            }
            (Verb::Create, Some(_)) => HttpAnswer::refusal(409, "AlreadyExists"),
            (Verb::Create, None) => {
                let created = self.create(request.kind, request.body.clone(), now);
                HttpAnswer::object(&created)
            }
            (_, None) => HttpAnswer::refusal(404, "NotFound"),
            (Verb::Get, Some(stored)) => HttpAnswer::object(&stored),
            (Verb::Delete, Some(stored)) => self.conditional_delete(request, &stored, now),
            (Verb::JsonPatch, Some(stored)) => match json_patched(&stored.value, &request.body) {
                Some(value) => HttpAnswer::object(&self.put(request.kind, value)),
                None => HttpAnswer::refusal(422, "Invalid"),
            },
            (Verb::MergePatch, Some(stored)) => {
                if !is_as_in(&request.body["metadata"], &stored) {
                    return HttpAnswer::refusal(409, "Conflict");
                }
                let mut value = stored.value.clone();
                let change = if request.status {
                    json!({"status": request.body["status"]})
                } else {
                    request.body.clone()
                };
                json_patch::merge(&mut value, &change);
                HttpAnswer::object(&self.put(request.kind, value))
            }
            // The API server takes no status of a custom resource without the version that it was decided on.
            (Verb::ReplaceStatus, Some(_)) if request.body["metadata"]["resourceVersion"].is_null() => {
                HttpAnswer::refusal(422, "Invalid")
            }
            (Verb::ReplaceStatus, Some(stored)) if !is_as_in(&request.body["metadata"], &stored) => {
                HttpAnswer::refusal(409, "Conflict")
            }
            (Verb::ReplaceStatus, Some(stored)) => {
                let mut value = stored.value.clone();
                value["status"] = request.body["status"].clone();
                HttpAnswer::object(&self.put(request.kind, value))
            }
        }
    }

    fn conditional_delete(&mut self, request: &HttpRequest, stored: &Arc<Object>, now: &str) -> HttpAnswer {
        if !is_as_in(&request.body["preconditions"], stored) {
            return HttpAnswer::refusal(409, "Conflict");
        }
        self.delete(request.kind, request.name.clone(), now);
        HttpAnswer::object(stored)
    }

    pub fn create(&mut self, kind: Kind, mut value: Value, now: &str) -> Arc<Object> {
        self.uids += 1;
        let metadata = value["metadata"].as_object_mut().unwrap();
        metadata.insert("uid".into(), json!(format!("uid-{:05}", self.uids)));
        metadata.insert("namespace".into(), json!("default"));
        metadata.insert("generation".into(), json!(1));
        metadata.entry("creationTimestamp").or_insert_with(|| json!(now));
        if kind == Kind::Pods {
            value["status"] = json!({"phase": "Pending"});
        }
        self.put(kind, value)
    }

    /// Stores `value` as a new version, unless it changes nothing.
    fn put(&mut self, kind: Kind, mut value: Value) -> Arc<Object> {
        let name = value["metadata"]["name"].as_str().unwrap().to_string();
        if let Some(stored) = self.get(kind, &name).filter(|stored| stored.value == value) {
            return Arc::clone(stored);
        }
        self.version += 1;
        value["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Object::new(value);
        self.objects_mut(kind).insert(name, Arc::clone(&object));
        self.announce(kind, false, &object);
        object
    }

    fn announce(&mut self, kind: Kind, gone: bool, object: &Arc<Object>) {
        let object = Arc::clone(object);
        self.news.push(Event { kind, gone, object });
    }

    /// A change by another than the operator.
    pub fn edit(&mut self, kind: Kind, name: &str, change: impl FnOnce(&mut Value)) {
        if let Some(stored) = self.get(kind, name) {
            let mut value = stored.value.clone();
            change(&mut value);
            if value["spec"] != stored.value["spec"] {
                let generation = value["metadata"]["generation"].as_u64().unwrap();
                value["metadata"]["generation"] = json!(generation + 1);
            }
            self.put(kind, value);
        }
    }

    /// A pod stays for a while when it is deleted, if a node has it; so do pools and claims in some worlds. All else goes
    /// at once.
    pub fn delete(&mut self, kind: Kind, name: String, now: &str) {
        let stays = |object: &Arc<Object>| match kind {
            Kind::Pods => !self.nodeless || object.phase() != "Pending",
            Kind::Pools | Kind::Claims => self.lingering,
            Kind::Revisions | Kind::Templates | Kind::Nodes => false,
        };
        match self.get(kind, &name).filter(|object| stays(object)) {
            Some(object) if object.terminating() => {}
            Some(_) => self.edit(kind, &name, |object| {
                let generation = object["metadata"]["generation"].as_u64().unwrap();
                object["metadata"]["generation"] = json!(generation + 1);
                object["metadata"]["deletionTimestamp"] = json!(now);
            }),
            None => self.end(kind, name),
        }
    }

    /// An object goes, and with a pool its revisions; its pods are left to the garbage collector.
    pub fn end(&mut self, kind: Kind, name: String) {
        let pool = self.get(kind, &name).filter(|_| kind == Kind::Pools).cloned();
        self.remove(kind, name);
        let Some(pool) = pool else {
            return;
        };
        let revisions = self.list(Kind::Revisions).filter(|r| r.owner().1 == pool.uid());
        let names: Vec<_> = revisions.map(|revision| revision.name().to_string()).collect();
        names
            .into_iter()
            .for_each(|name| self.remove(Kind::Revisions, name));
    }

    /// The object is gone. A deletion has a version of its own.
    fn remove(&mut self, kind: Kind, name: String) {
        if let Some(stored) = self.objects_mut(kind).remove(&name) {
            self.version += 1;
            let mut value = stored.value.clone();
            value["metadata"]["resourceVersion"] = json!(self.version.to_string());
            self.announce(kind, true, &Object::new(value));
        }
    }
}

/// Whether the UID and the resource version in `conditions`, where they are given, are those of `stored`.
fn is_as_in(conditions: &Value, stored: &Object) -> bool {
    let given = |field: &str| conditions[field].as_str();
    let same = |field: &str| given(field).is_none_or(|v| v == stored.at(&format!("/metadata/{field}")));
    same("uid") && same("resourceVersion")
}

/// `value` after a JSON Patch; `None` when one of its tests fails. For the API server a `test` of an absent member
/// against null holds; the library does not see it so.
fn json_patched(value: &Value, patch: &Value) -> Option<Value> {
    let absent = |operation: &Value| {
        let path = operation["path"].as_str().unwrap();
        operation["op"] == "test" && operation["value"].is_null() && value.pointer(path).is_none()
    };
    let operations = patch.as_array().unwrap().iter().filter(|o| !absent(o)).cloned();
    let patch: json_patch::Patch = serde_json::from_value(operations.collect()).unwrap();
    let mut patched = value.clone();
    json_patch::patch(&mut patched, &patch).ok()?;
    Some(patched)
}
