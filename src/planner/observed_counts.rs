//! Counts over the unclaimed sandboxes as seen, for the status.

use crate::cache::snapshot::SandboxEntry;
use crate::model::sandbox_state::SandboxState;

/// Unclaimed sandboxes as the watch shows them. The plan changes none of these numbers.
#[derive(Clone, Copy, Default)]
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
    /// Counts a sandbox that is in this state; `update` is the hash of the update revision.
    pub(crate) fn count(&mut self, entry: &SandboxEntry, state: SandboxState, update: &str) {
        let is_available = match state {
            SandboxState::Available => true,
            SandboxState::Warming => false,
            state => {
                self.draining += usize::from(state == SandboxState::Draining);
                return;
            }
        };
        if entry.is_leaving() {
            return;
        }
        let is_updated = entry.sandbox.revision == update;
        self.replicas += 1;
        self.ready += usize::from(entry.sandbox.ready_since.is_some());
        self.available += usize::from(is_available);
        self.updated += usize::from(is_updated);
        self.updated_available += usize::from(is_updated && is_available);
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
