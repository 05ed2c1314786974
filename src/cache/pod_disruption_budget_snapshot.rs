//! The PodDisruptionBudgets that concern a pool, as plans see them.

use crate::model::pod_disruption_budget::{BudgetProgress, BudgetStep, DisruptionBudget};
use crate::model::retry::RETRY_DELAY;
use jiff::Timestamp;
use k8s_openapi::api::policy::v1::PodDisruptionBudgetSpec;
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the operator knows of PodDisruptionBudgets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Nothing yet: none is written.
    #[default]
    Unknown,
    /// They are listed.
    Listed,
    /// The operator's role lacks the right to list them: none is written.
    Denied,
}

/// What a process remembers of its writes of a pool's budgets.
#[derive(Clone, Debug, Default)]
pub struct BudgetMemory {
    /// What is known of the last request.
    pub progress: BudgetProgress,
    /// When this process sent the last one.
    pub written_at: Option<Timestamp>,
    /// By name, the last write of each that the API server answered as done.
    done: BTreeMap<SmolStr, DoneWrite>,
}

/// A write that the API server answered as done.
#[derive(Clone, Debug)]
struct DoneWrite {
    /// What the budget was to ask for; `None`: it was to be deleted.
    spec: Option<PodDisruptionBudgetSpec>,
    at: Timestamp,
}

impl BudgetMemory {
    /// A request about the budgets is sent at `now`.
    pub fn note_write(&mut self, now: Timestamp) {
        self.progress = std::mem::take(&mut self.progress).sent();
        self.written_at = Some(now);
    }

    /// The API server answered `step` as done at `now`.
    pub(crate) fn note_done(&mut self, step: &BudgetStep, now: Timestamp) {
        let spec = match step {
            BudgetStep::Create(_, spec) | BudgetStep::Change(_, spec) => Some(spec.clone()),
            BudgetStep::Delete(_) => None,
        };
        self.done.insert(step.name().into(), DoneWrite { spec, at: now });
    }

    /// When the budget with this name may be written again, if it is not as this process wrote it last: a webhook or
    /// another controller took the write back. `budget`: as last seen.
    fn taken_back(&self, name: &str, budget: Option<&DisruptionBudget>) -> Option<Timestamp> {
        let done = self.done.get(name)?;
        let is_kept = done.spec.as_ref() == budget.map(|budget| &budget.spec);
        (!is_kept).then(|| done.at.checked_add(RETRY_DELAY).unwrap_or(Timestamp::MAX))
    }

    /// Forgets when requests were sent, answered or failed: the clock was set back.
    pub(crate) fn forget_moments(&mut self) {
        self.progress.forget_moments();
        self.written_at = None;
        self.done.clear();
    }
}

/// The budgets that concern one pool, at one moment.
#[derive(Clone, Debug, Default)]
pub struct BudgetSnapshot {
    /// Whether the budgets are known.
    pub access: Access,
    /// The budgets of the pool and of users in its namespace, by name.
    pub budgets: Vec<Arc<DisruptionBudget>>,
    /// What is known of the last request about the pool's budgets.
    pub progress: BudgetProgress,
    /// When this process sent the last one; `None`: not yet.
    pub written_at: Option<Timestamp>,
    /// When each budget may be written again whose last write was taken back, by name.
    pub taken_back: BTreeMap<SmolStr, Timestamp>,
}

impl BudgetSnapshot {
    /// The snapshot of `budgets`. `memory` is that of the budgets with the names `own`, and `stored` are all budgets of
    /// the namespace.
    pub(crate) fn new(
        access: Access,
        budgets: Vec<Arc<DisruptionBudget>>,
        memory: Option<&BudgetMemory>,
        own: impl IntoIterator<Item = SmolStr>,
        stored: Option<&BTreeMap<SmolStr, Arc<DisruptionBudget>>>,
    ) -> Self {
        let taken_back = |name: SmolStr| {
            let budget = stored.and_then(|budgets| budgets.get(&name));
            let until = memory?.taken_back(&name, budget.map(Arc::as_ref))?;
            Some((name, until))
        };
        Self {
            access,
            budgets,
            progress: memory.map(|memory| memory.progress.clone()).unwrap_or_default(),
            written_at: memory.and_then(|memory| memory.written_at),
            taken_back: own.into_iter().filter_map(taken_back).collect(),
        }
    }
}
