//! Counts over the unclaimed sandboxes as seen, for the status.

use crate::cache::snapshot::PoolSnapshot;
use crate::model::sandbox_state::SandboxState;

/// Unclaimed sandboxes as the watch shows them. The plan changes none of these numbers.
#[derive(Default)]
pub(crate) struct ObservedCounts {
    /// Warm sandboxes that run or are to run, without those with a write in flight that ends this.
    pub(crate) replicas: usize,
    /// Of `replicas`, the sandboxes that are Ready.
    pub(crate) ready: usize,
    /// Of `replicas`, the sandboxes that a claim could take.
    pub(crate) available: usize,
    /// Of `replicas`, the sandboxes of the update revision.
    pub(crate) updated: usize,
    /// Of `updated`, the available sandboxes.
    pub(crate) updated_available: usize,
    /// Sandboxes whose deletion waits for their preDelete hooks.
    pub(crate) draining: usize,
}

impl ObservedCounts {
    /// Counts the sandboxes of a snapshot; `update` is the hash of the update revision.
    pub(crate) fn of(snapshot: &PoolSnapshot, update: &str) -> Self {
        let mut counts = Self::default();
        for entry in &snapshot.sandboxes {
            let sandbox = &entry.sandbox;
            let rule = &snapshot.pool.spec.availability_rule;
            let available = match sandbox.state_at(&snapshot.pool.uid, rule, snapshot.now) {
                SandboxState::Available => true,
                SandboxState::Warming => false,
                state => {
                    counts.draining += usize::from(state == SandboxState::Draining);
                    continue;
                }
            };
            if entry.is_leaving() {
                continue;
            }
            let updated = sandbox.revision == update;
            counts.replicas += 1;
            counts.ready += usize::from(sandbox.ready_since.is_some());
            counts.available += usize::from(available);
            counts.updated += usize::from(updated);
            counts.updated_available += usize::from(updated && available);
        }
        counts
    }

    /// Of `replicas`, the sandboxes of old revisions.
    pub(crate) fn old(&self) -> usize {
        self.replicas - self.updated
    }
}

/// A count as the API writes it.
pub(crate) fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
