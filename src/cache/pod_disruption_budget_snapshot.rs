//! The PodDisruptionBudgets that concern a pool, as plans see them.

use crate::model::pod_disruption_budget::{BudgetProgress, DisruptionBudget};
use jiff::Timestamp;
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
}

impl BudgetMemory {
    /// A request about the budgets is sent at `now`.
    pub fn note_write(&mut self, now: Timestamp) {
        self.progress = std::mem::take(&mut self.progress).sent();
        self.written_at = Some(now);
    }

    /// Forgets when requests were sent or failed: the clock was set back.
    pub(crate) fn forget_moments(&mut self) {
        self.progress.forget_moments();
        self.written_at = None;
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
}
