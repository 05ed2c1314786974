//! The PodDisruptionBudget of a claim that has outlived its pool, whose own went with it. It goes with the claim.

use crate::api::claim::Disruption;
use crate::cache::pod_disruption_budget_snapshot::Access;
use crate::cache::snapshot::{ClaimSnapshot, PoolPresence};
use crate::model::pod_disruption_budget::{BudgetStep, DisruptionBudget, orphan_budget, orphan_budget_name};
use crate::model::sandbox::{Owner, Sandbox};
use jiff::Timestamp;
use std::sync::Arc;

/// The next write of the budget, or when it is due.
pub(crate) fn next_step(snapshot: &ClaimSnapshot) -> (Option<BudgetStep>, Option<Timestamp>) {
    let due = snapshot.disruption_budgets.progress.next_at();
    match step(snapshot).zip(due) {
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

/// A sandbox of the claim must not be evicted, and no other budget has it covered: the API server evicts no pod that two cover. The
/// budget of a pool that is gone is about to go, too. While a pool is being deleted, its budget may be there for long. Where a pool
/// exists again, the claim keeps its budget until that of the pool is seen.
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
