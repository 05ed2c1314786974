//! The PodDisruptionBudgets of the cluster, those of pools and those of users.

use crate::cache::pod_disruption_budget_snapshot::Access;
use crate::model::Key;
use crate::model::pod_disruption_budget::DisruptionBudget;
use smol_str::SmolStr;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The PodDisruptionBudgets, by namespace and name.
#[derive(Clone, Debug, Default)]
pub(crate) struct DisruptionBudgets {
    pub(crate) by_namespace: HashMap<SmolStr, BTreeMap<SmolStr, Arc<DisruptionBudget>>>,
    pub(crate) access: Access,
}

impl DisruptionBudgets {
    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<DisruptionBudget>> {
        self.by_namespace.get(&key.namespace)?.get(&key.name)
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<Arc<DisruptionBudget>> {
        let in_namespace = self.by_namespace.get_mut(&key.namespace)?;
        let removed = in_namespace.remove(&key.name);
        if in_namespace.is_empty() {
            self.by_namespace.remove(&key.namespace);
        }
        removed
    }
}
