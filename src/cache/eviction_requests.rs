//! The EvictionRequests of the cluster, by name and by pod.

use crate::cache::grouped::remove_from;
use crate::model::Key;
use crate::model::eviction_request::EvictionRequest;
use crate::model::sandbox::Sandbox;
use jiff::Timestamp;
use std::collections::{BTreeSet, HashMap};

/// The EvictionRequests. Several may name one pod.
#[derive(Clone, Debug, Default)]
pub(crate) struct EvictionRequests {
    known: HashMap<Key, EvictionRequest>,
    /// Keys of requests by the pod that they name.
    by_pod: HashMap<Key, BTreeSet<Key>>,
    /// The operator may not read them.
    pub(crate) denied: bool,
}

impl EvictionRequests {
    /// What is known without the right to read them.
    pub(crate) fn denied() -> Self {
        Self {
            denied: true,
            ..Self::default()
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&EvictionRequest> {
        self.known.get(key)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.known.keys()
    }

    pub(crate) fn insert(&mut self, key: &Key, request: EvictionRequest) {
        self.remove(key);
        self.by_pod
            .entry(request.pod.clone())
            .or_default()
            .insert(key.clone());
        self.known.insert(key.clone(), request);
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<EvictionRequest> {
        let request = self.known.remove(key)?;
        remove_from(&mut self.by_pod, &request.pod, |keys| keys.remove(key));
        Some(request)
    }

    /// Since when somebody has requested the eviction of the sandbox; `None` if nobody does.
    pub(crate) fn since(&self, sandbox: &Sandbox) -> Option<Timestamp> {
        let keys = self.by_pod.get(&sandbox.key)?;
        let requests = keys.iter().filter_map(|key| self.known.get(key));
        let of_pod = requests.filter(|request| request.pod_uid == sandbox.uid);
        of_pod.filter_map(|request| request.since).min()
    }
}
