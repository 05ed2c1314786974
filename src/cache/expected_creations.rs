//! The creations that the watch has not shown, by pod and by pool.

use crate::cache::grouped::remove_from;
use crate::cache::write_stage::Progress;
use crate::model::Key;
use crate::model::request::PodCreation;
use crate::model::sandbox::{Owner, Sandbox};
use jiff::Timestamp;
use smol_str::SmolStr;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A creation.
#[derive(Clone, Debug)]
pub struct ExpectedCreation {
    /// The creation as it was decided.
    pub creation: Arc<PodCreation>,
    /// When it was decided.
    pub decided: Timestamp,
    /// How far it is.
    pub progress: Progress,
}

impl ExpectedCreation {
    /// Whether `sandbox`, which has the name, was created for the pool. A claim may own it by now.
    pub(crate) fn is_shown_by(&self, sandbox: &Sandbox) -> bool {
        let pool = &self.creation.pool;
        match &sandbox.owner {
            Owner::Pool { uid } => *uid == pool.uid,
            Owner::Claim { .. } => sandbox.pool == pool.key.name,
            Owner::Other => false,
        }
    }
}

/// The creations that the watch has not shown. What a plan asks of one pool costs nothing for those of other pools.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExpectedCreations {
    by_pod: HashMap<Key, ExpectedCreation>,
    /// Names of the pods by pool.
    of_pools: HashMap<Key, BTreeSet<SmolStr>>,
}

impl ExpectedCreations {
    pub(crate) fn insert(&mut self, expected: ExpectedCreation) {
        let (pod, pool) = (expected.creation.pod.clone(), expected.creation.pool.key.clone());
        self.remove(&pod);
        self.of_pools.entry(pool).or_default().insert(pod.name.clone());
        self.by_pod.insert(pod, expected);
    }

    pub(crate) fn remove(&mut self, pod: &Key) -> Option<ExpectedCreation> {
        let known = self.by_pod.remove(pod)?;
        remove_from(&mut self.of_pools, &known.creation.pool.key, |names| {
            names.remove(&pod.name)
        });
        Some(known)
    }

    pub(crate) fn get_mut(&mut self, pod: &Key) -> Option<&mut ExpectedCreation> {
        self.by_pod.get_mut(pod)
    }

    /// Those of one pool, by name.
    pub(crate) fn of_pool(&self, pool: &Key) -> impl Iterator<Item = &ExpectedCreation> {
        let names = self.of_pools.get(pool).into_iter().flatten();
        let key = |name: &SmolStr| Key::new(pool.namespace.clone(), name.clone());
        names.filter_map(move |name| self.by_pod.get(&key(name)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ExpectedCreation> {
        self.by_pod.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ExpectedCreation> {
        self.by_pod.values_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_pod.len()
    }
}
