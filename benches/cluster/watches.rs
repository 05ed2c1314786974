//! Watches claims and pods, so that measurements can wait for a state.

use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use warmpool::model::sandbox::Sandbox;
use warmpool::model::stored::{StoredClaim, StoredPod};

/// A state that a watch updates and measurements wait on.
pub struct WatchedState<S> {
    state: Mutex<S>,
    version: watch::Sender<u64>,
}

impl<S: Default> WatchedState<S> {
    fn new() -> Self {
        Self {
            state: Mutex::default(),
            version: watch::Sender::new(0),
        }
    }
}

impl<S> WatchedState<S> {
    pub fn with<T>(&self, access: impl FnOnce(&mut S) -> T) -> T {
        access(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until `check` returns a value. Calls it again after every event.
    pub async fn until<T>(&self, mut check: impl FnMut(&mut S) -> Option<T>) -> T {
        let mut version = self.version.subscribe();
        loop {
            version.mark_unchanged();
            if let Some(found) = self.with(&mut check) {
                return found;
            }
            // The sender lives as long as `self`, so this cannot fail.
            _ = version.changed().await;
        }
    }
}

/// A watch and its state. Dropping it ends the watch.
pub struct Watched<S> {
    pub state: Arc<WatchedState<S>>,
    task: AbortHandle,
}

impl<S> Drop for Watched<S> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Updates a state with the events of a watch.
pub trait ApplyEvents<K>: Default + Send + 'static {
    fn apply(&mut self, object: &K);
    fn delete(&mut self, object: &K);
}

/// Starts a watch.
pub fn watch_all<K, S>(api: Api<K>) -> Watched<S>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    S: ApplyEvents<K>,
{
    let state = Arc::new(WatchedState::<S>::new());
    let written = Arc::clone(&state);
    let task = tokio::spawn(async move {
        let mut events = kube::runtime::watcher(api, watcher::Config::default()).boxed();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Apply(object) | Event::InitApply(object)) => {
                    written.with(|state| state.apply(&object));
                }
                Ok(Event::Delete(object)) => written.with(|state| state.delete(&object)),
                Ok(Event::Init | Event::InitDone) => {}
                Err(error) => {
                    eprintln!("a watch of the benchmark failed, so its figures are invalid: {error}")
                }
            }
            written.version.send_modify(|version| *version += 1);
        }
    });
    Watched {
        state,
        task: task.abort_handle(),
    }
}

/// The claims of a namespace.
#[derive(Default)]
pub struct Claims {
    /// When the watch first showed each claim Ready.
    pub ready: HashMap<String, Instant>,
    /// Names of the claims in the order in which they became Ready.
    pub ready_order: Vec<String>,
    pub present: HashSet<String>,
    /// Names of all claims in the order of creation.
    pub creation_order: Vec<String>,
    /// The first pod of each claim that is Ready.
    pub bound: HashMap<String, String>,
    /// Number of claims whose sandbox was not Ready before the claim's creation.
    pub cold: usize,
    /// The first claim that failed, with its status.
    pub failed: Option<String>,
}

impl Claims {
    /// Starts over, so that the names of deleted claims may be used again.
    pub fn forget(&mut self) {
        *self = Self {
            present: std::mem::take(&mut self.present),
            ..Self::default()
        };
    }
}

impl ApplyEvents<StoredClaim> for Claims {
    fn apply(&mut self, claim: &StoredClaim) {
        let name = name(&claim.metadata);
        if self.present.insert(name.clone()) {
            self.creation_order.push(name.clone());
        }
        let status = &claim.status;
        if status.get("phase").is_some_and(|phase| phase == "Failed") && self.failed.is_none() {
            self.failed = Some(format!("claim {name} failed: {status}"));
        }
        let conditions = status.get("conditions").and_then(|c| c.as_array());
        let ready = |c: &serde_json::Value| {
            c.get("type").is_some_and(|t| t == "Ready") && c.get("status").is_some_and(|s| s == "True")
        };
        if conditions.is_some_and(|all| all.iter().any(ready)) && !self.ready.contains_key(&name) {
            self.ready.insert(name.clone(), Instant::now());
            let pod = status.pointer("/sandboxes/0/name").and_then(|pod| pod.as_str());
            self.bound.extend(pod.map(|pod| (name.clone(), pod.to_string())));
            self.ready_order.push(name);
            let warm = status.pointer("/sandboxes/0/warm").and_then(|w| w.as_bool());
            self.cold += usize::from(warm != Some(true));
        }
    }

    fn delete(&mut self, claim: &StoredClaim) {
        self.present.remove(&name(&claim.metadata));
    }
}

/// The unclaimed pods of a namespace.
#[derive(Default)]
pub struct Pods {
    /// Pods that a claim could take now.
    pub available: BTreeMap<String, Sandbox>,
    /// Existing pods, with their revision.
    pub unclaimed: BTreeMap<String, String>,
    /// Fewest available since the last reset.
    pub least: usize,
    /// How many were available after each event, where that is drawn.
    pub over_time: Option<Vec<(Instant, usize)>>,
}

impl Pods {
    /// Removes an available pod and returns it.
    pub fn take(&mut self) -> Option<Sandbox> {
        self.available.pop_first().map(|(_, sandbox)| sandbox)
    }

    fn note(&mut self) {
        let available = self.available.len();
        self.least = self.least.min(available);
        if let Some(over_time) = &mut self.over_time {
            over_time.push((Instant::now(), available));
        }
    }
}

impl ApplyEvents<StoredPod> for Pods {
    fn apply(&mut self, pod: &StoredPod) {
        let name = name(&pod.metadata);
        self.available.remove(&name);
        self.unclaimed.remove(&name);
        let sandbox = Sandbox::read(pod).filter(|s| s.state == "warm");
        if let Some(sandbox) = sandbox {
            self.unclaimed.insert(name.clone(), sandbox.revision.to_string());
            if !sandbox.terminating && sandbox.ready_since.is_some() {
                self.available.insert(name, sandbox);
            }
        }
        self.note();
    }

    fn delete(&mut self, pod: &StoredPod) {
        let name = name(&pod.metadata);
        self.available.remove(&name);
        self.unclaimed.remove(&name);
        self.note();
    }
}

fn name(metadata: &ObjectMeta) -> String {
    metadata.name.clone().unwrap_or_default()
}
