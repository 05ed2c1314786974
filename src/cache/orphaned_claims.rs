//! Claims that have outlived their pools: which they are, and the PodDisruptionBudgets that may cover their sandboxes.

use crate::cache::index::Index;
use crate::cache::pod_disruption_budget_snapshot::{Access, BudgetSnapshot};
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::snapshot::PoolPresence;
use crate::model::Key;
use crate::model::claim::Claim;
use crate::model::pod_disruption_budget::{DisruptionBudget, orphan_budget_name};
use crate::model::sandbox::{Owner, Sandbox};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Index {
    /// The budgets of users and pools, and the claim's own budget. Empty while a pool exists that keeps a budget over
    /// the sandboxes of the claim, unless the claim still has its own budget.
    pub(crate) fn orphan_budgets(&self, claim: &Claim, pool: PoolPresence) -> BudgetSnapshot {
        let own = orphan_budget_name(&claim.key.name);
        let in_namespace = self.disruption_budgets.by_namespace.get(&claim.key.namespace);
        let has_own = in_namespace.is_some_and(|budgets| budgets.contains_key(&own));
        if self.disruption_budgets.access != Access::Listed || (pool == PoolPresence::Present && !has_own) {
            return BudgetSnapshot::default();
        }
        let budgets = in_namespace.into_iter().flat_map(BTreeMap::values);
        let concerns = |budget: &&Arc<DisruptionBudget>| {
            budget.key.name == own || !matches!(budget.owner, Owner::Claim { .. })
        };
        let memory = self
            .claim_memory(claim)
            .and_then(|memory| memory.budget.as_deref());
        let concerned = budgets.filter(concerns).cloned().collect();
        BudgetSnapshot::new(Access::Listed, concerned, memory, [own], in_namespace)
    }

    /// The claims that own pods with the label of a pool.
    pub(crate) fn claims_with_sandboxes_of(&self, pool: &Key) -> Vec<ReconcileRequest> {
        let claims: BTreeSet<_> = self.sandboxes_of(pool).filter_map(claim_of).collect();
        claims.into_iter().map(ReconcileRequest::Claim).collect()
    }

    /// The claims of a namespace whose pools are gone or being deleted, and those that still have the budget of such a
    /// claim.
    pub(crate) fn orphaned_claims(&self, namespace: &str) -> Vec<ReconcileRequest> {
        let pools = self.sandboxes.keys().filter(|pool| pool.namespace == namespace);
        let lives = |pool: &Key| self.pools.get(pool).is_some_and(|pool| !pool.terminating);
        let without = pools.filter(|pool| !lives(pool));
        let orphaned = without
            .flat_map(|pool| self.sandboxes_of(pool))
            .filter_map(claim_of);
        let budgets = self.disruption_budgets.by_namespace.get(namespace);
        let with_budget = budgets
            .into_iter()
            .flat_map(BTreeMap::values)
            .filter_map(|budget| keeper(budget));
        let claims: BTreeSet<_> = orphaned.chain(with_budget).collect();
        claims.into_iter().map(ReconcileRequest::Claim).collect()
    }
}

/// The claim that owns a pod.
pub(crate) fn claim_of(sandbox: &Arc<Sandbox>) -> Option<Key> {
    claim_named_by(&sandbox.owner, &sandbox.key)
}

/// The claim that keeps a budget.
pub(crate) fn keeper(budget: &DisruptionBudget) -> Option<Key> {
    claim_named_by(&budget.owner, &budget.key)
}

fn claim_named_by(owner: &Owner, of: &Key) -> Option<Key> {
    match owner {
        Owner::Claim { name, .. } => Some(Key::new(of.namespace.clone(), name.clone())),
        Owner::Pool { .. } | Owner::Other => None,
    }
}
