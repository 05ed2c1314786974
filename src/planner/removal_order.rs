//! The order in which unclaimed sandboxes are removed. Claims take from the other end.

use crate::cache::snapshot::PoolSnapshot;
use crate::model::sandbox::Sandbox;
use crate::planner::draft::{Draft, UnclaimedSandbox};
use crate::planner::revise;
use jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// The pool's unclaimed sandboxes as they are queued up.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// All that neither drain nor have ended, the first to be removed first.
    pub removal: Vec<Arc<Sandbox>>,
    /// Those that a claim could take now, the first to be taken by a claim without a `revisionPolicy` first.
    pub claiming: Vec<Arc<Sandbox>>,
}

impl Lines {
    /// The queues of a pool.
    pub fn of(snapshot: &PoolSnapshot) -> Self {
        let revisions = revise::resolve(snapshot);
        let unclaimed = Draft::new(snapshot, &revisions).unclaimed;
        let names = |unclaimed: &UnclaimedSandbox| Arc::clone(&unclaimed.sandbox);
        let takeable = unclaimed.iter().rev().filter(|i| i.may_be_claimed());
        let (updated, old): (Vec<_>, Vec<_>) = takeable.partition(|i| i.updated);
        Self {
            claiming: updated.into_iter().chain(old).map(names).collect(),
            removal: unclaimed.iter().map(names).collect(),
        }
    }
}

/// Sorts into the order of removal, first to go first: unscheduled; Pending, Unknown, Running; not
/// available; not ready; lower deletion cost; more of the pool's sandboxes on its node; ready for a shorter
/// time; more restarts; newer; then name. It is the order of a ReplicaSet (`ActivePodsWithRanks`), with
/// availability before readiness and without its logarithmic buckets of age.
pub(crate) fn by_removal(unclaimed: &mut [UnclaimedSandbox]) {
    let mut on_node: HashMap<String, usize> = HashMap::new();
    for node in unclaimed.iter().filter_map(|i| i.sandbox.node.clone()) {
        *on_node.entry(node).or_default() += 1;
    }
    unclaimed.sort_by_cached_key(|i| {
        let sandbox = &i.sandbox;
        let neighbours = sandbox
            .node
            .as_ref()
            .and_then(|n| on_node.get(n))
            .copied()
            .unwrap_or(0);
        (
            (
                sandbox.node.is_some(),
                sandbox.phase,
                i.available,
                sandbox.ready_since.is_some(),
            ),
            sandbox.deletion_cost,
            Reverse(neighbours),
            Reverse(sandbox.ready_since.unwrap_or(Timestamp::MAX)),
            Reverse(sandbox.restarts),
            Reverse(sandbox.created),
            sandbox.key.name.clone(),
        )
    });
}
