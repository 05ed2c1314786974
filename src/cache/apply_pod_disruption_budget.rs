//! What events of PodDisruptionBudgets and answers about them change.

use crate::cache::index::Index;
use crate::cache::orphaned_claims::keeper;
use crate::cache::pod_disruption_budget_snapshot::{Access, BudgetMemory, BudgetSnapshot};
use crate::cache::pod_disruption_budgets::DisruptionBudgets;
use crate::cache::reconcile_request::ReconcileRequest;
use crate::cache::stale_answers::{WatchProgress, newer};
use crate::model::Key;
use crate::model::failure::Class;
use crate::model::pod_disruption_budget::{BudgetProgress, DisruptionBudget, Group};
use crate::model::pool::Pool;
use crate::model::request::{Answer, BudgetOwner, BudgetRequest, Outcome};
use crate::model::retry::Tries;
use crate::model::stored::{self, StoredDisruptionBudget};
use jiff::Timestamp;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

impl Index {
    /// The budgets that concern `pool`: no budget of another pool covers its sandboxes.
    pub(crate) fn budget_snapshot(&self, pool: &Pool) -> BudgetSnapshot {
        let in_namespace = self.disruption_budgets.by_namespace.get(&pool.key.namespace);
        let budgets = in_namespace.into_iter().flat_map(BTreeMap::values);
        let concerns = |budget: &&Arc<DisruptionBudget>| concerns(budget, pool);
        BudgetSnapshot::new(
            self.disruption_budgets.access,
            budgets.filter(concerns).cloned().collect(),
            self.pool_memory(pool).map(|memory| &memory.budgets),
            Group::ALL.map(|group| group.budget_name(&pool.key.name)),
            in_namespace,
        )
    }

    /// A PodDisruptionBudget was created or changed.
    pub fn apply_budget(&mut self, stored: &StoredDisruptionBudget) -> Vec<ReconcileRequest> {
        self.watch_progress.budgets.up_to(&stored.metadata);
        self.take_over_budget(stored)
    }

    /// Stores a budget that a watch or an answer showed. Most events change only its status, which changes nothing
    /// here.
    fn take_over_budget(&mut self, stored: &StoredDisruptionBudget) -> Vec<ReconcileRequest> {
        let budget = DisruptionBudget::read(stored);
        let known = self.disruption_budgets.get(&budget.key);
        if known.is_some_and(|known| {
            known.uid == budget.uid && newer(&known.resource_version, &budget.resource_version)
        }) {
            return Vec::new();
        }
        let same = known.is_some_and(|known| {
            (&known.uid, &known.owner, &known.spec) == (&budget.uid, &budget.owner, &budget.spec)
        });
        let to_reconcile = if same {
            Vec::new()
        } else {
            self.concerned_by(&budget)
        };
        let of_namespace = &mut self.disruption_budgets.by_namespace;
        of_namespace
            .entry(budget.key.namespace.clone())
            .or_default()
            .insert(budget.key.name.clone(), Arc::new(budget));
        to_reconcile
    }

    /// A PodDisruptionBudget is gone.
    pub fn delete_budget(&mut self, stored: &StoredDisruptionBudget) -> Vec<ReconcileRequest> {
        self.watch_progress.budgets.up_to(&stored.metadata);
        let gone = self.disruption_budgets.remove(&stored::key(&stored.metadata));
        gone.map_or_else(Vec::new, |gone| self.concerned_by(&gone))
    }

    /// After a list: budgets missing from it are gone. Everything is reconciled after a list.
    pub fn retain_budgets(&mut self, listed: &HashSet<Key>) {
        self.watch_progress.budgets.by_list();
        let known = self.disruption_budgets.by_namespace.values();
        let keys: Vec<_> = known.flat_map(BTreeMap::values).map(|b| b.key.clone()).collect();
        for key in keys.iter().filter(|key| !listed.contains(key)) {
            self.disruption_budgets.remove(key);
        }
        self.disruption_budgets.access = Access::Listed;
    }

    /// The operator may not read PodDisruptionBudgets. Forgets what it knew of them, and returns whether the missing
    /// right is new.
    pub fn deny_budgets(&mut self) -> bool {
        let before = self.disruption_budgets.access;
        self.disruption_budgets = DisruptionBudgets {
            access: Access::Denied,
            ..DisruptionBudgets::default()
        };
        before != Access::Denied
    }

    /// A request about a budget is answered.
    pub(crate) fn budget_answered(
        &mut self,
        request: &BudgetRequest,
        outcome: Outcome,
        before: WatchProgress,
        now: Timestamp,
    ) -> Vec<ReconcileRequest> {
        let key = Key::new(request.owner.key().namespace.clone(), request.step.name());
        let mut to_reconcile = vec![match &request.owner {
            BudgetOwner::Pool(pool) => ReconcileRequest::Pool(pool.key.clone()),
            BudgetOwner::Claim(claim) => ReconcileRequest::Claim(claim.key.clone()),
        }];
        match &outcome {
            Ok(Answer::DisruptionBudget(stored)) => {
                let version = stored::resource_version(&stored.metadata);
                if !self.watch_progress.budgets.knows_better(&version, before.budgets) {
                    to_reconcile.extend(self.take_over_budget(stored));
                }
            }
            Ok(Answer::Deleted) => {
                self.disruption_budgets.remove(&key);
            }
            Err(failure) if failure.class == Class::Gone => {
                self.disruption_budgets.remove(&key);
            }
            Ok(_) | Err(_) => {}
        }
        let Some(memory) = self.budget_memory_mut(&request.owner) else {
            return to_reconcile;
        };
        let before = match std::mem::take(&mut memory.progress) {
            BudgetProgress::Sent(tries) => tries,
            BudgetProgress::Idle | BudgetProgress::Failed(_) => None,
        };
        match outcome {
            Err(failure) if failure.class != Class::Gone => {
                memory.progress = BudgetProgress::Failed(Tries::after(before.as_ref(), failure, now));
            }
            Ok(_) => memory.note_done(&request.step, now),
            Err(_) => {}
        }
        to_reconcile
    }

    /// What is remembered of the last request about the budgets of a pool or claim; `None` when that is gone.
    pub(crate) fn budget_memory_mut(&mut self, owner: &BudgetOwner) -> Option<&mut BudgetMemory> {
        match owner {
            BudgetOwner::Pool(pool) => self.pool_memory_mut(pool).map(|memory| &mut memory.budgets),
            BudgetOwner::Claim(claim) => {
                let memory = self.claim_memory_mut(claim)?;
                Some(memory.budget.get_or_insert_default())
            }
        }
    }

    /// What to reconcile for a budget: the pool or claim that keeps it, or all whose sandboxes it may cover.
    fn concerned_by(&self, budget: &DisruptionBudget) -> Vec<ReconcileRequest> {
        if let Some(claim) = keeper(budget) {
            return vec![ReconcileRequest::Claim(claim)];
        }
        let concerned =
            |pool: &&Arc<Pool>| pool.key.namespace == budget.key.namespace && concerns(budget, pool);
        let pools = self.pools.values().filter(concerned);
        let pools = pools.map(|pool| ReconcileRequest::Pool(pool.key.clone()));
        pools.chain(self.orphaned_claims(&budget.key.namespace)).collect()
    }
}

/// Whether the plan of the pool looks at the budget: it is the pool's own or a user's, or it has the name of the pool's
/// own.
fn concerns(budget: &DisruptionBudget, pool: &Pool) -> bool {
    budget.is_of_user() || budget.is_of_pool(&pool.uid) || is_named_for(budget, pool)
}

/// The budget has the name of one that the operator keeps for `pool`.
fn is_named_for(budget: &DisruptionBudget, pool: &Pool) -> bool {
    let mut groups = Group::ALL.into_iter();
    groups.any(|group| group.is_named(&budget.key.name, &pool.key.name))
}
