//! Plans one pool as the operator does, from what the cluster stores.

use crate::api::conditions;
use crate::cache::index::Index;
use crate::cache::snapshot::{Creation, PoolSnapshot};
use crate::model::Key;
use crate::model::pool::Pool;
use crate::planner::{self, Plan, Step};
use jiff::Timestamp;

/// A snapshot of a pool and the plan for it.
pub(super) struct PoolPlan {
    pub(super) snapshot: PoolSnapshot,
    pub(super) plan: Plan,
}

impl PoolPlan {
    /// Plans the pool `key`; `None` when it does not exist. Only the operator remembers that creations fail, so the
    /// condition ReplicaFailure stands in for that memory.
    pub(super) fn of(index: &Index, key: &Key, now: Timestamp) -> Option<Self> {
        let mut snapshot = planner::pool_snapshot(index, key, now, 0)?;
        if let Some(message) = creation_rejection(&snapshot.pool) {
            snapshot.creation = Creation::BackOff { until: now, message };
        }
        let plan = planner::plan(&snapshot);
        Some(Self { snapshot, plan })
    }

    /// The message of the API server while it rejects pods of this pool.
    pub(super) fn creation_rejection(&self) -> Option<String> {
        creation_rejection(&self.snapshot.pool)
    }

    /// Number of sandboxes that the plan creates.
    pub(super) fn creations(&self) -> usize {
        let creates = |a: &&planner::Action| matches!(a.step, Step::CreatePod { .. });
        self.plan.actions.iter().filter(creates).count()
    }
}

fn creation_rejection(pool: &Pool) -> Option<String> {
    let condition = conditions::find(&pool.status.conditions, conditions::REPLICA_FAILURE)?;
    (condition.status == "True").then(|| condition.message.clone())
}
