//! A pool, seen and planned for as the operator does it.

use crate::api::conditions;
use crate::cache::index::Index;
use crate::cache::snapshot::{Creation, PoolSnapshot};
use crate::model::Key;
use crate::model::pool::Pool;
use crate::planner;
use crate::planner::{Plan, Step};
use jiff::Timestamp;

/// A pool and what the planner would do about it.
pub(super) struct Outlook {
    pub(super) snapshot: PoolSnapshot,
    pub(super) plan: Plan,
}

impl Outlook {
    /// `None` when there is no such pool. What only the operator remembers, that creates were refused, is taken from the
    /// pool's conditions.
    pub(super) fn of(index: &Index, key: &Key, now: Timestamp) -> Option<Self> {
        let mut snapshot = index.pool_snapshot(key, now, 0)?;
        if let Some(message) = rejection(&snapshot.pool) {
            snapshot.creation = Creation::BackOff { until: now, message };
        }
        let mut plan = planner::plan(&snapshot);
        if snapshot.pool.terminating {
            // The operator leaves it to the garbage collector.
            plan.actions.clear();
        }
        Some(Self { snapshot, plan })
    }

    /// The API server's words, while it refuses pods of this pool.
    pub(super) fn rejection(&self) -> Option<String> {
        rejection(&self.snapshot.pool)
    }

    /// How many sandboxes the planner would create.
    pub(super) fn creations(&self) -> usize {
        let creates = |a: &&planner::Action| matches!(a.step, Step::CreatePod { .. });
        self.plan.actions.iter().filter(creates).count()
    }
}

fn rejection(pool: &Pool) -> Option<String> {
    let condition = conditions::find(&pool.status.conditions, conditions::REPLICA_FAILURE)?;
    (condition.status == "True").then(|| condition.message.clone())
}
