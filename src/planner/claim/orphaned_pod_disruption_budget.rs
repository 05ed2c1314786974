//! The PodDisruptionBudget of a claim whose pool is gone. It is deleted with the claim.

use crate::api::claim::Disruption;
use crate::cache::pod_disruption_budget_snapshot::Access;
use crate::cache::snapshot::{ClaimSnapshot, PoolPresence};
use crate::model::pod_disruption_budget::{BudgetStep, DisruptionBudget, orphan_budget, orphan_budget_name};
use crate::model::sandbox::{Owner, Sandbox};
use jiff::Timestamp;
use std::sync::Arc;

/// The next write of the budget, or when it is due.
pub(crate) fn next_step(snapshot: &ClaimSnapshot) -> (Option<BudgetStep>, Option<Timestamp>) {
    let known = &snapshot.disruption_budgets;
    let taken_back = |step: &BudgetStep| known.taken_back.get(step.name()).copied();
    let due = |step: BudgetStep| {
        let due = known
            .progress
            .next_at()?
            .max(taken_back(&step).unwrap_or(Timestamp::MIN));
        Some((step, due))
    };
    match step(snapshot).and_then(due) {
        None => (None, None),
        Some((step, due)) if due <= snapshot.now => (Some(step), None),
        Some((_, due)) => (None, Some(due)),
    }
}

fn step(snapshot: &ClaimSnapshot) -> Option<BudgetStep> {
    let (claim, known) = (&snapshot.claim, &snapshot.disruption_budgets);
    if known.access != Access::Listed {
        return None;
    }
    let name = orphan_budget_name(&claim.key.name);
    let mut budgets = known.budgets.iter();
    let own = budgets.find(|budget| budget.key.name == name);
    let wanted = is_wanted(snapshot).then(|| orphan_budget(&claim.uid));
    match (own, wanted) {
        (None, Some(_)) if snapshot.pool_presence == PoolPresence::Present => None,
        (None, Some(wanted)) => Some(BudgetStep::Create(name, wanted)),
        (Some(own), _) if !own.is_of_claim(&claim.uid) => None,
        (Some(own), Some(wanted)) if own.spec != wanted => Some(BudgetStep::Change(Arc::clone(own), wanted)),
        (Some(own), None) => Some(BudgetStep::Delete(Arc::clone(own))),
        (None, None) | (Some(_), Some(_)) => None,
    }
}

/// Whether the claim needs its own budget: one of its sandboxes must not be evicted, and no other budget covers any of
/// them, because the API server evicts no pod that two budgets cover. The budget of a deleted pool does not count,
/// because it is about to be deleted. The budget of a terminating pool counts, because it may exist for long. When the
/// pool exists again, the claim keeps its budget until the watch shows that of the pool.
fn is_wanted(snapshot: &ClaimSnapshot) -> bool {
    let pool_counts = snapshot.pool_presence != PoolPresence::Absent;
    let others = |budget: &&Arc<DisruptionBudget>| match budget.owner {
        Owner::Pool { .. } => pool_counts,
        Owner::Claim { .. } => false,
        Owner::Other => true,
    };
    let others = snapshot.disruption_budgets.budgets.iter().filter(others);
    let others: Vec<_> = others.collect();
    let is_covered = |sandbox: &Sandbox| {
        let labels = sandbox.all_labels();
        others.iter().any(|budget| budget.covers(&labels))
    };
    let guarded = |sandbox: &&Arc<Sandbox>| !sandbox.terminating && !sandbox.allows_disruption;
    snapshot.resolved_spec.disruption != Disruption::Allow
        && snapshot.sandboxes.iter().any(|sandbox| guarded(&sandbox))
        && !snapshot.sandboxes.iter().any(|sandbox| is_covered(sandbox))
}
