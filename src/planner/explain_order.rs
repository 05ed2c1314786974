//! Which unclaimed sandbox is removed first, and which is claimed first.

use crate::cache::snapshot::PoolSnapshot;
use crate::model::sandbox::Sandbox;
use crate::planner::choose_sandbox::Claimable;
use crate::planner::draft::Draft;
use crate::planner::unclaimed_sandbox::UnclaimedSandbox;
use crate::planner::{evict, revise};
use std::sync::Arc;

/// The unclaimed sandboxes of a pool in both orders.
#[derive(Clone, Debug, Default)]
pub struct SandboxQueues {
    /// Sandboxes that neither drain nor have ended, the first to be removed first.
    pub removal: Vec<Arc<Sandbox>>,
    /// Sandboxes that a claim could take now, the first to be taken by a claim without a `revisionPolicy` first.
    pub claiming: Vec<Arc<Sandbox>>,
}

impl SandboxQueues {
    /// The queues of a pool.
    pub fn of(snapshot: &PoolSnapshot) -> Self {
        let revisions = revise::resolve(snapshot);
        let mut draft = Draft::new(snapshot, &revisions);
        evict::mark(&mut draft);
        draft.order();
        let sandbox = |unclaimed: &UnclaimedSandbox| Arc::clone(unclaimed.sandbox);
        let claimable = Claimable::of(&draft).in_order();
        let in_claiming_order = claimable.iter().filter_map(|index| draft.unclaimed.get(*index));
        Self {
            claiming: in_claiming_order.map(sandbox).collect(),
            removal: draft.unclaimed.iter().map(sandbox).collect(),
        }
    }
}
